// A tile of one partition of 16-bit keys by a byte (half_sort.h): loaded, counted, staged in shared memory in the order of its bins, and
// written.
//
//   kLow       from the keys; the bin is the low byte of the code. Staged: key << 16 | place in the tile, from which the index follows
//   kPatterns  from the keys to the outputs; the bin is the rank of the pattern's code. Staged: number of the pattern << 16 | place
//   kHigh      from keys and indices in the order of the low byte; the bin is the high byte. Staged: keys, and indices
//
// Bins are counted before their scan by atomics that return nothing, and places are taken after it by atomics that do. Or (kKeepsRanks) the
// first return the ranks in the warp's bins, and places are these on top of the counters. Both are exact; but the order in which the lanes
// of one instruction are served is not promised. So, as in onesweep_pass.cuh, the order is verified while the tile is written: places, or
// codes and indices, must rise in each bin, else neighbours are exchanged until they do and the tile is written again.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../primitives/look_back.cuh"
#include "../primitives/shared_memory.cuh"
#include "half_arguments.h"
#include "half_patterns.cuh"
#include "half_ranks.cuh"
#include "shared_bytes.cuh"
#include "tile_ranks.cuh"

namespace gpusort {

// kPermutePeriod is for tests of the verification, see tile_ranks.cuh.
template <HalfStep kStep_, int kThreads_, int kItems_, bool kKeepsRanks_ = false, int kPermutePeriod_ = 0>
struct HalfTile {
  static constexpr HalfStep kStep = kStep_;
  static constexpr bool kHigh = kStep == HalfStep::kHigh, kPatterns = kStep == HalfStep::kPatterns;
  static constexpr bool kKeepsRanks = kKeepsRanks_;
  static constexpr int kThreads = kThreads_, kWarps = kThreads / 32, kItems = kItems_;
  static constexpr int kGroup = 8;  // items in flight
  static constexpr int kGroups = kItems / kGroup;
  static constexpr uint32_t kTileItems = kThreads * kItems;
  static constexpr uint32_t kUnit = kHigh ? 2 : 4;  // bytes of a staged key: what ranks count in
  static_assert(kTileItems <= kMaxLookBackCount && kTileItems <= 65536 && kItems % kGroup == 0 && kThreads >= kHalfBins, "");

  // Shared memory, see half_record_offset().
  static constexpr uint32_t kOffsets = kWarps * kHalfBins * 4;
  static constexpr uint32_t kWarpSums = kOffsets + kHalfBins * 8;  // 8 words
  static constexpr uint32_t kNextTile = kWarpSums + 32;
  static constexpr uint32_t kOneBin = kWarpSums + 36;  // one bin has half of the tile
  // Two words each, for even and odd tiles of the block.
  static constexpr uint32_t kVotes = kWarpSums + 40;    // of the warps for rank_neighbours
  static constexpr uint32_t kCommon = kWarpSums + 48;   // 0, or 4 * the last common bin | kCommonFound
  static constexpr uint32_t kLeast = kWarpSums + 56;    // 0, or what the first one's 4 * bin lacks to 4 * kHalfBins
  static constexpr uint32_t kScratch = kWarpSums + 64;  // a word for each warp
  static constexpr uint32_t kSet = kWarpSums + kHalfWordBytes;
  static constexpr uint32_t kBinOfPattern = kSet + PatternSet::kBytes;  // by number: pattern << 16 | 4 * bin
  static constexpr uint32_t kCounts = kBinOfPattern + kHalfBins * 4;
  static constexpr uint32_t kRecords = half_record_offset(kStep, kThreads);
  static constexpr uint32_t kIndices = kRecords + kTileItems * 2;
  static constexpr int kSharedBytes = half_shared_bytes(kStep, {kThreads, kItems});
  static_assert(kRecords == (kPatterns ? kCounts + kHalfBins * 4 : kSet), "the plan and the kernel agree");
  static constexpr uint32_t kCommonFound = 2;
  static constexpr uint32_t kBinMask = (kHalfBins - 1) * 4;
  static constexpr uint32_t kCommonItems = kPatterns ? 13 : 8;  // of 32 items of a tile in one bin: it is common
  static constexpr uint32_t kRunHeads = 12;                     // of 31 lanes that differ from the one before: not more are runs

  const HalfArguments& arguments;
  const uint32_t shared, thread = threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t own;        // place in the tile of this thread's first item; the others follow 32 apart
  const uint32_t histogram;  // of this warp
  uint32_t input[kItems];    // as loaded: the key; as counted: the key, or the number of its pattern, << 16 | 4 * bin (kKeepsRanks: rank)
  uint32_t input_index[kHigh ? kItems : 1];
  __device__ __forceinline__ HalfTile(const HalfArguments& a, uint32_t base)
      : arguments(a), shared(base), own(warp * (32 * kItems) + lane), histogram(base + warp * (kHalfBins * 4)) {}

  // A part of the row.
  struct Range {
    uint32_t first, items;
    __device__ __forceinline__ bool full() const { return items == kTileItems; }
  };
  __device__ __forceinline__ Range range_of(uint32_t tile) const {
    const uint32_t first = tile * kTileItems;
    return Range{first, min(arguments.length - first, kTileItems)};
  }

  // ---- load -------------------------------------------------------------------------------------------------------------------------

  __device__ __forceinline__ const uint16_t* keys() const { return kHigh ? arguments.low_keys : arguments.keys_in; }

  // Past the L1 cache: the first tile is read before the kernel in front has ended, and lines of older keys may lie there.
  __device__ __forceinline__ void load_group(const Range& range, int group) {
    const uint16_t* from = keys() + range.first + own;
    if (range.full()) {
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const int item = group * kGroup + k;
        input[item] = __ldcg(from + item * 32);
        if constexpr (kHigh) input_index[item] = arguments.low_indices[range.first + own + item * 32];
      }
    } else {
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const int item = group * kGroup + k;
        input[item] = arguments.pad[kHigh];
        if constexpr (kHigh) input_index[item] = ~0u;
        if (own + item * 32 < range.items) {
          input[item] = __ldcg(from + item * 32);
          if constexpr (kHigh) input_index[item] = arguments.low_indices[range.first + own + item * 32];
        }
      }
    }
  }

  __device__ __forceinline__ static void prefetch_bytes(const void* from, uint64_t bytes) {
    const uint64_t begin = reinterpret_cast<uint64_t>(from) & ~uint64_t{15};
    const uint64_t end = (reinterpret_cast<uint64_t>(from) + bytes) & ~uint64_t{15};
    constexpr uint64_t kStep = 16384;
    for (uint64_t at = begin; at < end; at += kStep)
      prefetch_to_l2(reinterpret_cast<const void*>(at), static_cast<uint32_t>(min(end - at, kStep)));
  }

  // Brings a tile into L2. One thread calls.
  __device__ __forceinline__ void prefetch(uint32_t tile) const {
    const Range range = range_of(tile);
    prefetch_bytes(keys() + range.first, uint64_t{range.items} * 2);
    if constexpr (kHigh) prefetch_bytes(arguments.low_indices + range.first, uint64_t{range.items} * 4);
  }

  // ---- count ------------------------------------------------------------------------------------------------------------------------

  __device__ __forceinline__ uint32_t code_of(uint32_t key) const {
    return arguments.codec.code(static_cast<uint16_t>(key));
  }

  // 4 * bin of a code, not of kPatterns. The code may have bits beyond 16.
  __device__ __forceinline__ static uint32_t bin_of_code(uint32_t code) {
    return (kHigh ? code >> 6 : code << 2) & kBinMask;
  }

  __device__ __forceinline__ uint32_t bin_of_number(uint32_t number) const {
    return load_shared(shared + kBinOfPattern + number * 4) & kBinMask;
  }

  __device__ __forceinline__ void count_group(const Range& range, int group) {
#pragma unroll
    for (int k = 0; k < kGroup; ++k) {
      const int item = group * kGroup + k;
      uint32_t key = input[item], bin;
      if constexpr (kPatterns) {
        const PatternSet set(shared + kSet);
        key = set.number_of(set.word_of(key), key);
        bin = bin_of_number(key);
        if (!range.full() && own + item * 32 >= range.items) bin = kBinMask;  // pads come last
      } else {
        bin = bin_of_code(code_of(key));
      }
      input[item] = key << 16 | bin;
      add_shared(counter_of(item), 1);
    }
  }

  __device__ __forceinline__ uint32_t counter_of(int item) const {
    return (input[item] & kBinMask) | histogram;
  }

  // The groups from first_group on; those before have been counted. The histogram was clear before the first.
  __device__ __forceinline__ void count_tile(const Range& range, uint32_t parity, int first_group = 0) {
    if constexpr (kKeepsRanks) {
      rank_tile(parity);
    } else {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        if (group >= first_group) count_group(range, group);
      }
    }
    vote_on_runs(parity);
  }

  template <class Rank>
  __device__ __forceinline__ void rank_groups(Rank rank_group) {
#pragma unroll
    for (int first = 0; first < kItems; first += kGroup) {
      uint32_t counter[kGroup], rank[kGroup];
#pragma unroll
      for (int k = 0; k < kGroup; ++k) counter[k] = bin_of_code(code_of(input[first + k])) | histogram;
      rank_group(counter, rank);
#pragma unroll
      for (int k = 0; k < kGroup; ++k) input[first + k] = input[first + k] << 16 | rank[k];
    }
  }

  // Findings on the tile of a parity: runs, common bins. One thread calls.
  __device__ __forceinline__ void clear_findings(uint32_t parity) const {
    store_shared(shared + kVotes + parity, 0);
    store_shared(shared + kCommon + parity, 0);
    store_shared(shared + kLeast + parity, 0);
  }

  // The bin has `total` items of the tile.
  __device__ __forceinline__ void note_common(uint32_t bin, uint32_t total, uint32_t parity) const {
    if (total <= kTileItems / 32 * kCommonItems) return;
    raise_shared(shared + kCommon + parity, bin * 4 | kCommonFound);
    raise_shared(shared + kLeast + parity, (kHalfBins - bin) * 4);
  }

  // Calls ranks(rank_group), which is to call rank_group for all groups. One or two common bins, the last and the first of the tile, are
  // counted in registers. `common`, `parity`: the findings to go by.
  template <uint32_t kUnitOfRanks, class Ranks>
  __device__ __forceinline__ void with_common_bins(uint32_t common, uint32_t parity, Ranks ranks) const {
    using Group = uint32_t[kGroup];
    const uint32_t last = (common & kBinMask) | histogram, nothing = lane * 4 | histogram;
    const uint32_t first = (kHalfBins * 4 - load_shared(shared + kLeast + parity)) | histogram;
    auto all_groups = [&](auto bins) {
      bins.load();
      ranks([&](const Group& counter, Group& rank) { bins.rank(counter, rank); });
      __syncwarp();
      if (lane == 0) bins.store();
    };
    if (first == last)
      all_groups(CommonDigits<kUnitOfRanks, false>{{last, last}, nothing});
    else
      all_groups(CommonDigits<kUnitOfRanks, true>{{last, first}, nothing});
  }

  // kKeepsRanks. The way is what the tile before would have taken: its words are left alone until this one is scanned.
  __device__ __forceinline__ void rank_tile(uint32_t parity) {
    using Group = uint32_t[kGroup];
    const uint32_t votes = load_shared(shared + kVotes + (parity ^ 4)), common = load_shared(shared + kCommon + (parity ^ 4));
    if (votes >= kWarps / 2) {
      rank_groups([&](const Group& counter, Group& rank) { rank_neighbours<kGroup, 1>(counter, rank, lane); });
    } else if (common != 0) {
      with_common_bins<1>(common, parity ^ 4, [&](auto rank_group) { rank_groups(rank_group); });
    } else {
      rank_groups([&](const Group& counter, Group& rank) { rank_by_atomics<kGroup, 1, kPermutePeriod_>(counter, rank); });
    }
  }

  // Samples an item of every lane: are many neighbours equal? The block goes by the votes of its warps, since warps on several ways at once
  // delay each other. That a bin is common in the tile comes out of the scan of the counts. `parity`: 4 * that of the tile's turn.
  __device__ __forceinline__ void vote_on_runs(uint32_t parity) const {
    const uint32_t bin = kKeepsRanks ? bin_of_code(code_of(input[0] >> 16)) : input[0] & kBinMask;
    const uint32_t heads = __popc(__ballot_sync(~0u, __shfl_up_sync(~0u, bin, 1) != bin));
    if (heads <= kRunHeads && lane == 0) add_shared(shared + kVotes + parity, 1);
  }

  __device__ __forceinline__ void clear_histogram() const {
#pragma unroll
    for (int k = 0; k < 2; ++k) clear_shared_16_bytes(histogram + lane * 16 + k * 512);
    __syncwarp();
  }

  // ---- stage ------------------------------------------------------------------------------------------------------------------------

  // Staged places, in bytes of keys, are spread over the banks: bins of equal length would meet in one bank otherwise.
  __device__ __forceinline__ static uint32_t swizzle(uint32_t place) {
    constexpr int kBinShift = kTileItems / kHalfBins >= 128 ? 7 : kTileItems / kHalfBins >= 64 ? 6 : 5;  // of equal bins
    return place >> kBinShift & 31 * kUnit;
  }
  __device__ __forceinline__ static uint32_t staged_place(uint32_t place) {
    return place * kUnit ^ swizzle(place * kUnit);
  }

  template <class Rank>
  __device__ __forceinline__ void scatter_groups(const Range& range, Rank rank_group) const {
#pragma unroll
    for (int first = 0; first < kItems; first += kGroup) {
      uint32_t counter[kGroup], at[kGroup];
      const uint32_t own_place = opaque(own);
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        counter[k] = kKeepsRanks ? bin_of_code(code_of(input[first + k] >> 16)) | histogram : counter_of(first + k);
      }
      rank_group(counter, at);
      if constexpr (kKeepsRanks) {
#pragma unroll
        for (int k = 0; k < kGroup; ++k) at[k] += (input[first + k] & 0xffff) * kUnit;
      }
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const int item = first + k;
        at[k] ^= swizzle(at[k]);
        if constexpr (kHigh) {
          store_shared_16(shared + kRecords + at[k], input[item] >> 16);
          store_shared(shared + kIndices + at[k] * 2, input_index[item]);
        } else {
          store_shared(shared + kRecords + at[k], (input[item] & 0xffff0000) | (own_place + item * 32));
        }
      }
    }
  }

  // The counters of the histograms are places in the tile now, in bytes of keys.
  __device__ __forceinline__ void scatter(const Range& range, uint32_t parity) const {
    using Group = uint32_t[kGroup];
    if constexpr (kKeepsRanks) {
      scatter_groups(range, [&](const Group& counter, Group& at) {
#pragma unroll
        for (int k = 0; k < kGroup; ++k) at[k] = load_shared(counter[k]);
      });
    } else {
      const uint32_t votes = load_shared(shared + kVotes + parity), common = load_shared(shared + kCommon + parity);
      if (votes >= kWarps / 2) {
        scatter_groups(range, [&](const Group& counter, Group& at) { rank_neighbours<kGroup, kUnit>(counter, at, lane); });
      } else if (common != 0) {
        with_common_bins<kUnit>(common, parity, [&](auto place_group) { scatter_groups(range, place_group); });
      } else {
        scatter_groups(range, [&](const Group& counter, Group& at) { rank_by_atomics<kGroup, kUnit, kPermutePeriod_>(counter, at); });
      }
    }
  }

  // A staged record: the key, or the number of its pattern, and its place in the tile, or (kHigh) its index.
  struct Staged {
    uint32_t key, place;
  };
  __device__ __forceinline__ Staged staged_at(uint32_t at) const {
    if constexpr (kHigh) {
      return Staged{load_shared_16(shared + kRecords + at), load_shared(shared + kIndices + at * 2)};
    } else {
      const uint32_t word = load_shared(shared + kRecords + at);
      return Staged{word >> 16, word & 0xffff};
    }
  }
  __device__ __forceinline__ void stage_at(uint32_t at, const Staged& staged) const {
    if constexpr (kHigh) {
      store_shared_16(shared + kRecords + at, staged.key);
      store_shared(shared + kIndices + at * 2, staged.place);
    } else {
      store_shared(shared + kRecords + at, staged.key << 16 | staged.place);
    }
  }

  // ---- write ------------------------------------------------------------------------------------------------------------------------

  __device__ __forceinline__ void store(uint32_t position, uint32_t key, uint32_t index) const {
    if constexpr (kStep == HalfStep::kLow) {
      arguments.low_keys[position] = static_cast<uint16_t>(key);
      arguments.low_indices[position] = index;
    } else {
      if (arguments.keys_out != nullptr) arguments.keys_out[position] = static_cast<uint16_t>(key);
      if (arguments.index_bytes == 8)
        static_cast<int64_t*>(arguments.indices_out)[position] = index;
      else
        static_cast<uint32_t*>(arguments.indices_out)[position] = index;
    }
  }

  // kCount staged records of this thread: those of the rounds from first_round on, a round being one record of every thread. Returns
  // whether the order is wrong somewhere.
  template <int kCount>
  __device__ __forceinline__ bool write_rounds(const Range& range, int first_round) const {
    constexpr uint32_t kStep = kThreads * kUnit;  // of a round. A multiple of it swizzles apart from what a thread adds
    const uint32_t own_bytes = opaque(thread) * kUnit, own_staged = own_bytes ^ swizzle(own_bytes);
    const uint32_t before_bytes = own_bytes - kUnit, before_staged = before_bytes ^ swizzle(before_bytes);
    Staged staged[kCount];
    uint32_t key[kCount], code[kCount], offset[kCount], start[kCount];
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const uint32_t step = (first_round + k) * kStep;
      staged[k] = staged_at((own_staged ^ swizzle(step)) + step);
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      key[k] = staged[k].key;
      if constexpr (kHigh) {
        code[k] = code_of(key[k]);
        offset[k] = load_shared(shared + kOffsets + bin_of_code(code[k]));
      } else {
        uint32_t bin;
        if constexpr (kPatterns) {
          const uint32_t entry = load_shared(shared + kBinOfPattern + key[k] * 4);
          key[k] = entry >> 16;
          bin = entry & kBinMask;
        } else {
          bin = bin_of_code(code_of(key[k]));
        }
        uint2 entry;
        load_shared(shared + kOffsets + bin * 2, entry);
        offset[k] = entry.x;
        start[k] = entry.y;
      }
    }
    bool wrong = false;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const int round = first_round + k;
      const uint32_t place = opaque(thread) + round * kThreads;
      const uint32_t step = round * kStep;  // the first thread's neighbour is in the round before
      const uint32_t at = thread != 0 ? (before_staged ^ swizzle(step)) + step : staged_place(round == 0 ? 0 : round * kThreads - 1);
      const Staged before = staged_at(at);
      if constexpr (kHigh) {
        const uint32_t code_before = code_of(before.key);
        wrong |= code_before > code[k] || (code_before == code[k] && before.place > staged[k].place);
      } else {
        wrong |= place != start[k] && before.place > staged[k].place;
      }
      if (range.full() || place < range.items) store(offset[k] + place, key[k], kHigh ? staged[k].place : range.first + staged[k].place);
    }
    return wrong;
  }

  // Must a stand after b, its neighbour?
  __device__ __forceinline__ bool after(const Range& range, const Staged& a, const Staged& b) const {
    if constexpr (kHigh) {
      const uint32_t a_code = code_of(a.key), b_code = code_of(b.key);
      return a_code > b_code || (a_code == b_code && a.place > b.place);
    } else {
      auto bin_of = [&](const Staged& staged) {
        if (staged.place >= range.items) return kBinMask;  // a pad
        if constexpr (kPatterns)
          return bin_of_number(staged.key);
        else
          return bin_of_code(code_of(staged.key));
      };
      return a.place > b.place && bin_of(a) == bin_of(b);
    }
  }

  // Exchanges neighbours until the tile is in order, then writes it again. Never seen to be needed outside tests; loops are kept rolled, or
  // their registers would be spilled in the main path.
  __device__ __forceinline__ void mend(const Range& range) const {
    if (thread == 0) atomicAdd(&arguments.control->mended_tiles, 1u);
    bool exchanged;
    do {
      exchanged = false;
#pragma unroll 1
      for (uint32_t parity = 0; parity < 2; ++parity) {
#pragma unroll 1
        for (uint32_t i = 2 * opaque(thread) + parity; i + 1 < kTileItems; i += 2 * kThreads) {
          const uint32_t a_at = staged_place(i), b_at = staged_place(i + 1);
          const Staged a = staged_at(a_at), b = staged_at(b_at);
          if (!after(range, a, b)) continue;
          exchanged = true;
          stage_at(a_at, b);
          stage_at(b_at, a);
        }
        __syncthreads();
      }
    } while (__syncthreads_or(exchanged));
#pragma unroll 1
    for (int round = 0; round < kItems; ++round) write_rounds<1>(range, round);
    __syncthreads();
  }
};

}  // namespace gpusort
