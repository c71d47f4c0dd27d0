// The last step of a sort by one byte: a block ranks a tile (byte_digits.cuh), orders it by bin (byte_tile.cuh) and writes the indices; it
// also writes a tile of the output's keys, which are runs whose lengths are the bins' sizes. See byte_sort.cu and low_bytes.cu.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../primitives/kernel_setup.h"
#include "borrowed_indices.cuh"
#include "byte_digits.cuh"
#include "byte_tile.cuh"
#include "pass_arguments.h"
#include "radix_control.cuh"
#include "staged_record.cuh"

namespace gpusort {

constexpr int kByteBins = 256;

struct ByteSortArguments {
  KeyOrder<uint8_t> order;
  bool codes_meet = false;  // different keys may have one code: floats and bool
  const uint8_t* keys_in = nullptr;
  uint8_t* keys_out = nullptr;  // null: not wanted
  void* indices_out = nullptr;  // aligned to 16 bytes
  int index_bytes = 8;
  uint32_t length = 0;
  uint32_t rounds = 0;           // a block takes 512 times as many keys at a time
  uint32_t halo_warps = 0;       // 1: the last ones of the tile before are the first of these
  uint32_t tile_items = 0;       // the others
  uint32_t tiles = 0;            // counted from the 16-byte boundary at or before the first key
  uint32_t tiles_per_group = 0;  // neighbouring tiles that one block counts
  uint32_t groups = 0;
  uint32_t* tile_tables = nullptr;   // [tiles][256]: how many of each code the tiles before it in its group have
  uint32_t* group_tables = nullptr;  // [groups][256]
  uint32_t* bins = nullptr;          // [256]
  // Only where codes meet. The bits of four keys that tell NaNs and True from other keys, and the pattern that comes back for these: the
  // least of theirs. Besides them -0.0 becomes 0.0.
  uint32_t magnitude = 0;
  uint32_t last_pattern = 0;
  // Only where codes meet: whether each group has other patterns than those that come back for their codes, and for the kernels that mend
  // these (ambiguous_keys.h, equal_codes.h) whether any has. Nothing of the control words is set before.
  uint32_t* group_patterns = nullptr;
  RadixControl* control = nullptr;
};

// Keys of 32 or 64 bits of which only a byte was sorted by: how they are written.
template <class Key>
struct WideKeys {
  Key* keys_out = nullptr;
  Key high = 0;                   // the code without this byte
  Key flip = 0;                   // from a code to the key's bits
  uint32_t borrowed_begin = ~0u;  // see borrowed_indices.cuh

  __device__ __forceinline__ Key key(uint32_t byte) const { return (high | byte) ^ flip; }
};

// kPermutePeriod: for tests of the verification, see tile_ranks.cuh. Key: of the output.
template <class Index, int kWords, int kPermutePeriod, class Key = uint8_t>
struct ScatterBlock : StagedBins {
  static constexpr bool kWide = sizeof(Key) > 1;
  const ByteSortArguments& arguments;
  const uint32_t items;
  const WideKeys<Key> wide;
  bool other_patterns = false;  // some key is not the pattern that comes back for its code

  __device__ ScatterBlock(const ByteSortArguments& a, uint32_t shared_base, const WideKeys<Key>& wide_keys = {})
      : StagedBins{shared_base}, arguments(a), items(a.tile_items), wide(wide_keys) {}

  // The first code whose bin ends after `position`.
  __device__ __forceinline__ uint32_t code_at(uint32_t position) const {
    uint32_t code = 0;
#pragma unroll
    for (uint32_t step = kByteBins / 2; step > 0; step /= 2) {
      if (load_shared(shared + kEnds + (code + step - 1) * 4) <= position) code += step;
    }
    return code;
  }

  // A tile of the output's wide keys: a warp writes some hundred neighbours at a time, mostly of one bin.
  __device__ __forceinline__ void write_wide_keys(uint32_t tile) const {
    constexpr uint32_t kPerVector = 16 / sizeof(Key), kVectors = 8, kChunk = 32 * kPerVector * kVectors;
    const uint32_t lane = thread % 32, first = tile * items;
    const uint32_t end = tile + 1 == arguments.tiles ? arguments.length : min(first + items, arguments.length);
    const bool aligned = reinterpret_cast<uintptr_t>(wide.keys_out) % 16 == 0;
#pragma unroll 1
    for (uint32_t begin = first + thread / 32 * kChunk; begin < end; begin += kByteWarps * kChunk) {
      uint32_t code = code_at(begin);
      uint32_t bin_end = load_shared(shared + kEnds + code * 4);
      if (aligned && end - begin >= kChunk && bin_end - begin >= kChunk) {
        const Key key = wide.key(code);
        uint4* out = reinterpret_cast<uint4*>(wide.keys_out + begin) + lane;
        const uint32_t low = static_cast<uint32_t>(key), second = sizeof(Key) == 8 ? static_cast<uint32_t>(uint64_t{key} >> 32) : low;
#pragma unroll
        for (uint32_t k = 0; k < kVectors; ++k) __stcs(out + k * 32, make_uint4(low, second, low, second));
        continue;
      }
#pragma unroll 1
      for (uint32_t i = begin + lane; i < min(begin + kChunk, end); i += 32) {
        while (bin_end <= i) bin_end = load_shared(shared + kEnds + ++code * 4);
        wide.keys_out[i] = wide.key(code);
      }
    }
  }

  // A tile of the output's keys.
  __device__ __forceinline__ void write_keys(uint32_t tile) const {
    uint8_t* keys = arguments.keys_out;
    const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(keys) & 15);
    const int64_t share_first = static_cast<int64_t>(tile) * items - misaligned;
    const bool last = tile + 1 == arguments.tiles;
#pragma unroll 1
    for (uint32_t at = thread * 16; last || at < items; at += kByteSortThreads * 16) {
      const int64_t first = share_first + at;
      if (first >= arguments.length) return;
      const uint32_t begin = static_cast<uint32_t>(max(first, int64_t{0}));
      const uint32_t end = static_cast<uint32_t>(min(first + 16, static_cast<int64_t>(arguments.length)));
      uint32_t code = code_at(begin);
      uint32_t bin_end = load_shared(shared + kEnds + code * 4);
      uint32_t bits = bits_of_code(arguments.order, static_cast<uint8_t>(code));
      if (end - begin == 16 && bin_end >= end) {
        const uint32_t four = bits * 0x01010101u;
        *reinterpret_cast<uint4*>(keys + begin) = make_uint4(four, four, four, four);
        continue;
      }
#pragma unroll 1
      for (uint32_t i = begin; i < end; ++i) {
        while (bin_end <= i) bin_end = load_shared(shared + kEnds + ++code * 4);
        keys[i] = bits_of_code(arguments.order, static_cast<uint8_t>(code));
      }
    }
  }

  // Of four keys: patterns become those that come back for their codes.
  __device__ __forceinline__ uint32_t unify(uint32_t four) const {
    const uint32_t last = __vcmpgeu4(four & arguments.magnitude, arguments.last_pattern);  // 0xff where a NaN, or True
    const uint32_t patterns = (four & ~last) | (arguments.last_pattern & last);
    return patterns & ~__vcmpeq4(patterns, 0x80808080u);
  }

  // Writes the pair at `place` of the staged tile as far as it lies in `region` and is written by this tile. Returns whether its order is
  // wrong.
  __device__ __forceinline__ bool write_pair(const StagedRegion& region, uint32_t place, uint32_t word, uint32_t before,
                                             uint32_t first) const {
    const uint32_t p0 = word & 0xffff, p1 = word >> 16, inside = place - region.begin, count = region.end - region.begin;
    const bool wrong = (inside - 1 < count - 1 && before > p0) || (inside < count && inside + 1 < count && p0 > p1);
    const uint32_t here = place - region.written_begin, written = region.written_end - region.written_begin;
    Index* out = static_cast<Index*>(arguments.indices_out) + static_cast<uint32_t>(region.offset + place);
    const bool has0 = here < written, has1 = here + 1 < written;
    if (kWide && static_cast<uint32_t>(region.offset + place) + 2 > wide.borrowed_begin) {
      const uint32_t position = region.offset + place;
      int64_t* row = static_cast<int64_t*>(arguments.indices_out);
      if (has0) store_wide_index(row, position, wide.borrowed_begin, first + p0);
      if (has1) store_wide_index(row, position + 1, wide.borrowed_begin, first + p1);
    } else if (has0 && has1) {
      if constexpr (sizeof(Index) == 8)
        __stcs(reinterpret_cast<uint4*>(out), make_uint4(first + p0, 0, first + p1, 0));
      else
        __stcs(reinterpret_cast<uint2*>(out), make_uint2(first + p0, first + p1));
    } else if (has0) {
      *out = static_cast<Index>(first + p0);
    } else if (has1) {
      out[1] = static_cast<Index>(first + p1);
    }
    return wrong;
  }

  // Short tiles, whose regions are short: 64 places by a warp at a time, whichever regions they lie in.
  __device__ __forceinline__ bool write_chunks(uint32_t first) const {
    constexpr uint32_t kPlaces = 64;  // of a warp at a time
    const uint32_t warp = thread / 32, lane = thread % 32, total = load_shared(shared + kTotal), places = total & 0xffff,
                   regions = total >> 16;
    bool wrong = false;
#pragma unroll 1
    for (uint32_t begin = warp * kPlaces; begin < places; begin += kByteWarps * 32 * kPlaces) {
      // Lane k: the region in which chunk number k of these begins.
      const uint32_t mine = begin + lane * kByteWarps * kPlaces;
      uint32_t low = 0;
#pragma unroll
      for (uint32_t step = 128; step > 0; step /= 2) {
        const uint32_t middle = low + step;
        if (middle < regions && (load_shared(shared + kRegions + middle * 16) & ~3u) <= mine) low = middle;
      }
      const uint32_t end = min(places, begin + kByteWarps * 32 * kPlaces);
      uint32_t k = 0;
#pragma unroll 1
      for (uint32_t chunk = begin; chunk < end; chunk += kByteWarps * kPlaces, ++k) {
        uint32_t number = __shfl_sync(~0u, low, k);
        const uint32_t place = chunk + lane * 2, address = shared + kStaged + place * kUnit;
        const uint32_t word = load_shared(address), before = load_shared_16(address - kUnit);
        StagedRegion own = region_at(number);
        uint32_t next_begin = load_shared(shared + kRegions + number * 16 + 16);
#pragma unroll 1
        while (next_begin < chunk + kPlaces) {
          ++number;
          if (place >= (next_begin & ~3u)) own = region_at(number);
          next_begin = load_shared(shared + kRegions + number * 16 + 16);
        }
        if (write_pair(own, place, word, before, first)) wrong = true;
      }
    }
    return wrong;
  }

  // Long tiles: each warp has a share and writes it region by region.
  __device__ __forceinline__ bool write_shares(uint32_t first) const {
    constexpr uint32_t kPlaces = 64;  // of a warp at a time
    const uint32_t warp = thread / 32, lane = thread % 32, total = load_shared(shared + kTotal), places = total & 0xffff,
                   regions = total >> 16;
    if (regions == 0) return false;
    const uint32_t quads = (places + regions * kRegionCost) / 4;
    const Cut cut = cut_at(quads * (warp + lane / 16) / kByteWarps * 4, places, regions);
    uint32_t number = __shfl_sync(~0u, cut.number, 0), at = __shfl_sync(~0u, cut.place, 0);
    const uint32_t end = __shfl_sync(~0u, cut.place, 31);
    if (at == end) return false;
    StagedRegion next = region_at(number);
    bool wrong = false;
    do {
      const StagedRegion own = next;
      next = region_at(++number);
      const uint32_t stop = min(next.begin & ~3u, end);
#pragma unroll 1
      for (uint32_t place = at + lane * 2; place < stop; place += kPlaces) {
        const uint32_t address = shared + kStaged + place * kUnit;
        const uint32_t word = load_shared(address), before = load_shared_16(address - kUnit);
        if (write_pair(own, place, word, before, first)) wrong = true;
      }
      at = stop;
    } while (at != end);
    return wrong;
  }

  // Returns whether the order is wrong somewhere. `first`: the position of the tile's first key in the input.
  __device__ __forceinline__ bool write_indices(uint32_t first) const {
    if constexpr (kWords > kShortByteSortRounds / 4)
      return write_shares(first);
    else
      return write_chunks(first);
  }

  __device__ __forceinline__ void run() {
    find_bins(arguments.bins);
    if (arguments.codes_meet) {
      uint32_t any = 0;
      for (uint32_t group = thread; group < arguments.groups; group += kByteSortThreads) any |= arguments.group_patterns[group];
      other_patterns = __syncthreads_or(any != 0) != 0;
      if (blockIdx.x == 0 && thread == 0) {
        arguments.control->other_patterns = other_patterns;
        arguments.control->called_off = 0;
      }
    }
    const uint32_t rounds = arguments.rounds, halo = arguments.halo_warps, own_items = thread / 32 * 32 * rounds;
    auto range_at = [&](uint32_t tile) {
      return range_of(arguments.keys_in, arguments.length, static_cast<int64_t>(tile) * items - halo * 32 * rounds,
                      rounds * kByteSortThreads);
    };
    auto begin_of = [&](uint32_t tile) {
      return bin_begin() + arguments.group_tables[static_cast<uint64_t>(tile / arguments.tiles_per_group) * kByteBins + thread] +
             arguments.tile_tables[static_cast<uint64_t>(tile) * kByteBins + thread];
    };
    auto unify_four = [&](uint32_t four) { return unify(four); };
    using Digits = WarpDigits<kWords>;
    Digits digits;
    digits.histogram = shared + thread / 32 * 1024;
    digits.lane = thread % 32;
    uint32_t first = range_at(blockIdx.x).first;  // of the staged tile: its first key's position in the input
    bool wrong = false;
    auto check = [&] {
      if (!__syncthreads_or(wrong)) return;
      mend();
      write_indices(first);
      __syncthreads();
    };
    digits.set_range(range_at(blockIdx.x), rounds);
    digits.load();
#pragma unroll 1
    for (uint32_t tile = blockIdx.x; tile < arguments.tiles; tile += gridDim.x) {
      uint32_t begin = 0, next_end = 0;
      if (thread < kByteBins) {
        begin = begin_of(tile);
        if (halo != 0) next_end = tile + 2 < arguments.tiles ? begin_of(tile + 2) : bin_end();
      }
      if constexpr (kWide) {
        write_wide_keys(tile);
      } else {
        if (arguments.keys_out != nullptr) write_keys(tile);
      }
      digits.count(other_patterns, unify_four);
      const typename Digits::Frequent frequent = digits.frequent();
      check();
      place_bins(bits_of_code(arguments.order, static_cast<uint8_t>(thread)), begin, halo != 0, next_end);
      digits.template rank<kUnit, kPermutePeriod>(frequent, other_patterns, unify_four,
                                                  [&](uint32_t place, uint32_t item) { store_shared_16(place, own_items + item); });
      first = opaque(range_at(tile).first);
      digits.set_range(range_at(tile + gridDim.x), rounds);
      digits.load();
      __syncthreads();
      wrong = write_indices(first);
    }
    check();
  }
};

}  // namespace gpusort
