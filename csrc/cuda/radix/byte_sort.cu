// See byte_sort.h.
//
//   count    a block counts the bytes of a group of tiles, every lane in a bank of its own, and writes before each tile and at the end what
//            it has counted by then
//   scan     for each code: the counts of the groups become where in its bin each group's keys begin (table_scan.cu)
//   scatter  a block ranks a tile (byte_digits.cuh), orders it by bin (byte_tile.cuh) and writes the indices; it also writes a tile of the
//            output's keys, which are runs whose lengths are the bins' sizes
//
// Tiles are counted from the 16-byte boundary at or before the first key. Neighbouring ones are counted by one block, but scattered by
// different blocks at a time: what is written at a time lies close together in each bin then (H200, 2^26 random keys, stores alone: 235 us
// against 294). While a block writes a tile the keys of its next one are loaded, and each warp that is done counts them.
//
// Traffic: 1 (count) + 1 + 9 bytes a key; with a halo 1/15 of the keys are read once more.
#include "byte_sort.h"

#include <cuda_runtime.h>

#include <atomic>

#include "../primitives/kernel_setup.h"
#include "ambiguous_keys.h"
#include "byte_digits.cuh"
#include "byte_tile.cuh"
#include "equal_codes.h"
#include "pass_arguments.h"
#include "radix_control.cuh"
#include "staged_record.cuh"
#include "table_scan.h"

namespace gpusort {
namespace {

constexpr int kBins = 256;

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

// ---- count --------------------------------------------------------------------------------------------------------------------------

constexpr int kCountThreads = 512;
constexpr int kVectors = 6;  // of each thread in a tile
static_assert(kVectors * kCountThreads * 16 >= kMostByteSortRounds * kByteSortThreads, "");

__global__ void __launch_bounds__(kCountThreads, 2) count_bytes_kernel(const __grid_constant__ ByteSortArguments arguments) {
  __shared__ __align__(16) uint32_t counters[kBins * 32];
  __shared__ uint32_t by_code[kBins];
  const LaneCounters block{counters};
  const uint32_t thread = threadIdx.x;
  const uint32_t items = arguments.tile_items;
  const uint32_t begin = blockIdx.x * arguments.tiles_per_group, end = min(begin + arguments.tiles_per_group, arguments.tiles);
  auto range_at = [&](uint32_t tile) { return range_of(arguments.keys_in, arguments.length, static_cast<int64_t>(tile) * items, items); };
  uint4 next[kVectors];
  auto load = [&](const KeyRange& range, int k) {
    const uint32_t vector = k * kCountThreads + thread;
    if (range.inside(vector * 16)) next[k] = __ldg(reinterpret_cast<const uint4*>(range.keys) + vector);
  };
  const KeyRange first = range_at(begin);
#pragma unroll
  for (int k = 0; k < kVectors; ++k) load(first, k);
  block.clear<kCountThreads>();
  // All that has been counted until now, by code. Returns whether this thread's byte is not the pattern that comes back for its code.
  auto write_counts = [&](uint32_t* table) {
    if (thread < kBins) by_code[thread] = 0;
    __syncthreads();
    const uint32_t sum = block.sum();
    bool other = false;
    if (thread % 2 == 0 && sum != 0) {
      const uint8_t bits = static_cast<uint8_t>(thread / 2);
      const uint8_t code = arguments.order.code(bits);
      atomicAdd(&by_code[code], sum);
      other = bits_of_code(arguments.order, code) != bits;
    }
    __syncthreads();
    if (thread < kBins) table[thread] = by_code[thread];
    return other;
  };
#pragma unroll 1
  for (uint32_t tile = begin; tile < end; ++tile) {
    write_counts(arguments.tile_tables + static_cast<uint64_t>(tile) * kBins);
    const KeyRange range = range_at(tile), following = range_at(tile + 1);
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      const uint4 vector = next[k];
      if (tile + 1 < end) load(following, k);
      const uint32_t at = (k * kCountThreads + thread) * 16;
      if (range.inside(at)) {
#pragma unroll
        for (uint32_t four : {vector.x, vector.y, vector.z, vector.w}) block.add_four(four);
      } else {
#pragma unroll 1
        for (uint32_t i = max(at, range.begin); i < min(at + 16, range.end); ++i) block.add(range.keys[i]);
      }
    }
  }
  __syncthreads();
  const bool other = write_counts(arguments.group_tables + static_cast<uint64_t>(blockIdx.x) * kBins);
  if (!arguments.codes_meet) return;
  const bool any = __syncthreads_or(other) != 0;
  if (thread == 0) arguments.group_patterns[blockIdx.x] = any;
}

// ---- scatter ------------------------------------------------------------------------------------------------------------------------

// kPermutePeriod: for tests of the verification, see tile_ranks.cuh.
template <class Index, int kWords, int kPermutePeriod>
struct ScatterBlock : StagedBins {
  const ByteSortArguments& arguments;
  const uint32_t items;
  bool other_patterns = false;  // some key is not the pattern that comes back for its code

  __device__ ScatterBlock(const ByteSortArguments& a, uint32_t shared_base) : StagedBins{shared_base}, arguments(a), items(a.tile_items) {}

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
      uint32_t code = 0;  // the first whose bin ends after `begin`
#pragma unroll
      for (uint32_t step = kBins / 2; step > 0; step /= 2) {
        if (load_shared(shared + kEnds + (code + step - 1) * 4) <= begin) code += step;
      }
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
    if (has0 && has1) {
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
      return bin_begin() + arguments.group_tables[static_cast<uint64_t>(tile / arguments.tiles_per_group) * kBins + thread] +
             arguments.tile_tables[static_cast<uint64_t>(tile) * kBins + thread];
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
      if (thread < kBins) {
        begin = begin_of(tile);
        if (halo != 0) next_end = tile + 2 < arguments.tiles ? begin_of(tile + 2) : bin_end();
      }
      if (arguments.keys_out != nullptr) write_keys(tile);
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

template <class Index, int kWords, int kPermutePeriod>
__global__ void __launch_bounds__(kByteSortThreads, kByteSortBlocksPerSm)
    scatter_bytes_kernel(const __grid_constant__ ByteSortArguments arguments) {
  extern __shared__ __align__(16) uint8_t memory[];
  ScatterBlock<Index, kWords, kPermutePeriod>(arguments, shared_address(memory)).run();
}

template <class Index, int kWords>
cudaError_t launch_scatter_of(const ByteSortArguments& arguments, cudaStream_t stream) {
  constexpr auto kKernel = scatter_bytes_kernel<Index, kWords, 0>;
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(kKernel, byte_sort_shared_bytes(kWords * 4), prepared);
  if (error != cudaSuccess) return error;
  const int shared_bytes = byte_sort_shared_bytes(static_cast<int>(arguments.rounds));
  kKernel<<<arguments.groups, kByteSortThreads, shared_bytes, stream>>>(arguments);
  return cudaGetLastError();
}

template <class Index>
cudaError_t launch_scatter(const ByteSortArguments& arguments, cudaStream_t stream) {
  if (arguments.rounds <= kShortByteSortRounds) return launch_scatter_of<Index, kShortByteSortRounds / 4>(arguments, stream);
  return launch_scatter_of<Index, kMostByteSortRounds / 4>(arguments, stream);
}

ByteSortArguments byte_sort_arguments(const SortProblem& problem, const RadixPlan& plan, char* workspace) {
  auto words = [&](int64_t offset) { return reinterpret_cast<uint32_t*>(workspace + offset); };
  ByteSortArguments arguments;
  arguments.order = problem.key.order<uint8_t>(problem.descending);
  arguments.codes_meet = problem.key.kind != KeyKind::kUnsigned && problem.key.kind != KeyKind::kSigned;
  arguments.magnitude = arguments.order.zero != 0 ? 0x7f7f7f7fu : ~0u;
  arguments.last_pattern = arguments.order.from_ordered(arguments.order.clamp) * 0x01010101u;
  arguments.keys_in = static_cast<const uint8_t*>(problem.keys_in);
  arguments.keys_out = static_cast<uint8_t*>(problem.keys_out);
  arguments.indices_out = problem.indices_out;
  arguments.index_bytes = problem.index_bytes;
  arguments.length = static_cast<uint32_t>(problem.length);
  arguments.rounds = static_cast<uint32_t>(plan.byte_sort.rounds);
  arguments.halo_warps = static_cast<uint32_t>(plan.byte_sort.halo_warps);
  arguments.tile_items = static_cast<uint32_t>(plan.byte_sort.tile_items);
  arguments.tiles = static_cast<uint32_t>(plan.byte_sort.tiles);
  arguments.tiles_per_group = static_cast<uint32_t>(plan.byte_sort.tiles_per_group);
  arguments.groups = static_cast<uint32_t>(plan.byte_sort.groups);
  arguments.tile_tables = words(plan.byte_sort.tile_tables_offset);
  arguments.group_tables = words(plan.byte_sort.group_tables_offset);
  arguments.bins = words(plan.byte_sort.bins_offset);
  arguments.group_patterns = words(plan.byte_sort.group_patterns_offset);
  return arguments;
}

// From here on the keys to be mended are found in the input, in its order: one read of it instead of the indices of all keys. It takes one
// launch more. H200, random bytes: as bools 2^26 484 us against 715, 2^22 50 against 52; as float8_e5m2 457 against 497, 46 against 41.
constexpr uint32_t kMinPartitionedLength = 1u << 23;

// The scatter has written one pattern for all keys of a code. The tiles' tables are of no use any more.
cudaError_t mend_keys(const SortProblem& problem, const ByteSortArguments& sorted, int blocks, cudaStream_t stream) {
  PassArguments<uint8_t> arguments;
  arguments.order = sorted.order;
  arguments.codec = make_key_codec(sorted.order);
  arguments.codes_meet = true;
  arguments.keys_in = sorted.keys_in;
  arguments.keys_out = sorted.keys_out;
  arguments.indices_out = problem.indices_out;
  arguments.index_bytes = problem.index_bytes;
  arguments.control = sorted.control;
  arguments.length = sorted.length;
  if (sorted.length < kMinPartitionedLength) return launch_ambiguous_keys(arguments, blocks, stream);
  return launch_equal_codes(arguments, sorted.tile_tables, size_t{sorted.tiles} * kBins * 4, blocks, stream);
}

}  // namespace

cudaError_t launch_byte_sort(const SortProblem& problem, const RadixPlan& plan, void* workspace, cudaStream_t stream) {
  ByteSortArguments arguments = byte_sort_arguments(problem, plan, static_cast<char*>(workspace));
  arguments.control = reinterpret_cast<RadixControl*>(static_cast<char*>(workspace) + plan.control_offset);
  count_bytes_kernel<<<arguments.groups, kCountThreads, 0, stream>>>(arguments);
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) error = launch_table_scan(arguments.group_tables, arguments.groups, arguments.bins, stream);
  if (error != cudaSuccess) return error;
  error = arguments.index_bytes == 8 ? launch_scatter<int64_t>(arguments, stream) : launch_scatter<uint32_t>(arguments, stream);
  constexpr int kMendingBlocksPerSm = 4;
  if (error != cudaSuccess || !arguments.codes_meet || arguments.keys_out == nullptr) return error;
  return mend_keys(problem, arguments, plan.grid[0] * kMendingBlocksPerSm, stream);
}

}  // namespace gpusort
