// A tile on its way into a block: where it lies, its loads, and the ranks of its records within the warps. The first half of
// onesweep_pass.cuh; its state are the registers of one thread.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../primitives/look_back.cuh"
#include "../primitives/shared_memory.cuh"
#include "borrowed_indices.cuh"
#include "pass_arguments.h"
#include "radix_control.cuh"
#include "record_places.cuh"
#include "staged_record.cuh"
#include "tile_ranks.cuh"

namespace gpusort {

// kPermutePeriod is for tests of the verification: one ranking instruction in so many has its values reversed among equal digits. 0: none.
template <class Key_, bool kIndexed_, PassKind kKind_, TileClass kClass_, int kPermutePeriod_ = 0>
struct PassPolicy {
  using Key = Key_;
  static constexpr bool kIndexed = kIndexed_;
  static constexpr PassKind kKind = kKind_;
  static constexpr bool kFromKeys = kKind == PassKind::kFirst;
  static constexpr TileShape kShape = radix_tile_shape(sizeof(Key), kIndexed, kClass_, kKind);
  static constexpr int kTileItems = kShape.tile_items();
  static constexpr bool kPlaced = placed_by_counters(sizeof(Key), kIndexed, kKind);
  static constexpr int kSharedBytes = radix_shared_bytes(sizeof(Key), kIndexed, kClass_, kKind, kPlaced);
  static constexpr int kPermutePeriod = kPermutePeriod_;
  static constexpr bool kLastTakesAll = last_slot_takes_all(sizeof(Key), kIndexed);
  static constexpr uint32_t kKeyWords = 1;   // keys_in and keys_out lie so many words of their size apart
  static constexpr bool kKeysWanted = true;  // else those of keys_out are of use to the sort alone: sorted keys need not be copied
  // The second record buffer lies in pieces (record_places.cuh). It is read from, or written to.
  static constexpr bool kInPieces = false, kFromPieces = false, kToPieces = false;
  static constexpr int kOnlyTarget = -1;  // the slot leaves where it would write another record buffer. -1: it takes all
};

template <PassKind kKind_, TileClass kClass_, int kOnlyTarget_ = -1>
struct PolicyInPieces : PassPolicy<uint32_t, true, kKind_, kClass_> {
  static constexpr bool kInPieces = true;
  static constexpr int kOnlyTarget = kOnlyTarget_;
};
template <TileClass kClass_>
struct ScratchKeysPolicy : PassPolicy<uint64_t, true, PassKind::kLast, kClass_> {
  static constexpr bool kKeysWanted = false;
};

template <class Policy>
struct FromPieces : Policy {
  static constexpr bool kFromPieces = !Policy::kFromKeys;
};
template <class Policy>
struct ToPieces : Policy {
  static constexpr bool kToPieces = true;
};

// The one step there is: from the keys to the outputs, with the tiles of the last slot.
template <class LastPolicy>
struct WholePolicy : LastPolicy {
  static constexpr bool kFromKeys = true;
};

// The first and the last slot of a sort of 64-bit keys by their low words.
template <bool kIndexed_, PassKind kKind_, TileClass kClass_>
struct LowWordPolicy : PassPolicy<uint32_t, kIndexed_, kKind_, kClass_> {
  static constexpr uint32_t kKeyWords = 2;
  // H200, 2^26 ids below 2^20 with index: the first slot 361 us, and 421 placed; the last one 570, and 509 placed.
  static constexpr bool kPlaced = !kIndexed_ || kKind_ == PassKind::kLast;
  static constexpr int kSharedBytes = radix_shared_bytes(4, kIndexed_, kClass_, kKind_, kPlaced);
};

// Between the words of the tables. Only the last slot may find them apart.
template <class Policy>
__device__ __forceinline__ int table_spacing(const PassArguments<typename Policy::Key>& arguments) {
  return Policy::kLastTakesAll && Policy::kKind == PassKind::kLast ? arguments.spacing : 1;
}

// How a tile is ranked: as the block's first one, by atomics alone, or as decided by the tile before.
enum class RankMode { kFirst, kPlain, kDecided };

// kExact: keys alone that are sorted by some of their bits, in the ordered form.
template <class Policy, bool kExact>
struct RankedTile {
  using Key = typename Policy::Key;
  using Code = CodeOf<Key>;
  static constexpr bool kIndexed = Policy::kIndexed;
  static constexpr bool kFromKeys = Policy::kFromKeys;
  using Record = StagedRecord<Key, kIndexed, kFromKeys>;
  using Word = typename Record::Word;
  using Input = typename Record::Input;
  static constexpr bool k64 = Record::k64;
  static constexpr bool kSplit = Record::kSplit;
  static constexpr uint32_t kUnit = Record::kUnit, kScale = Record::kScale;

  static constexpr int kThreads = Policy::kShape.threads;
  static constexpr int kItems = Policy::kShape.items;
  static constexpr int kGroup = Policy::kShape.group;
  static constexpr int kGroups = kItems / kGroup;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kLanes = Policy::kShape.lanes;
  static constexpr int kHistograms = kThreads / kLanes;
  static constexpr uint32_t kTileItems = kThreads * kItems;
  static constexpr int kLoadedIndices = kSplit && !kFromKeys ? kItems : 1;
  static constexpr int kLookBackWidth = 4;
  // Digits that many lanes share are ranked by rank_common_digits and rank_runs, else by rank_few_digits (tile_ranks.cuh).
  static constexpr bool kAddsForAll = kIndexed && !k64 && Policy::kKeyWords == 1;
  // The block's first tile decides for itself, tiles that are not skewed are ranked in a loop of their own, and up to two digits are
  // common.
  static constexpr bool kDecidesByTile = kAddsForAll && sizeof(Key) == 4 && !Policy::kPlaced;
  static constexpr uint32_t kCommonLanesOfFirst = 11;                // of 32 lanes of the first tile with one digit: it is common
  static constexpr uint32_t kCommonItems = kDecidesByTile ? 7 : 13;  // of 32 items of a tile with one digit: it is common
  static constexpr uint32_t kCommonLanes = 22;                       // of 32 lanes with one digit in a sample: digits are few
  static constexpr uint32_t kRunHeads = 12;                          // of 31 lanes that differ from the one before: not more are runs
  static_assert(kItems % kGroup == 0 && kGroup % 2 == 0 && kThreads >= kRadixBins, "");
  static_assert(kLanes * kItems * kUnit < 65536, "two ranks share a register");
  static_assert(kTileItems <= kMaxLookBackCount && kTileItems <= 65536, "");

  // Shared memory: histograms | offsets of the bins | words below | records | indices of split records.
  static constexpr uint32_t kOffsets = kHistograms * kRadixBins * 4;
  static constexpr uint32_t kWarpSums = kOffsets + kRadixBins * 4;  // 8 words
  static constexpr uint32_t kNextTile = kWarpSums + 32;
  static constexpr uint32_t kOneDigit = kWarpSums + 36;  // one digit fills half of the tile
  static constexpr uint32_t kVotes = kWarpSums + 40;     // of the warps, see vote_on_digits
  static constexpr uint32_t kDecided = kWarpSums + 44;   // how tiles are ranked: 0, kVoted, or 4 * a common digit | kCommonDecided
  static constexpr uint32_t kCommon = kWarpSums + 48;    // the same of the tile that is scanned: 0 or its common digit
  // The least common digit: kTopOffset - 4 * digit | kCommonDecided, and decided 4 * digit.
  static constexpr uint32_t kCommonLow = kWarpSums + 52, kDecidedLow = kWarpSums + 56;
  static constexpr uint32_t kVoted = 1, kCommonDecided = 2, kTopOffset = 4 * (kRadixBins - 1);
  static constexpr uint32_t kRecords = kOffsets + kPassScratchBytes;
  static constexpr uint32_t kStagedPlaces = kTileItems + (Policy::kPlaced ? radix_pads(kTileItems) : 0);
  static constexpr uint32_t kIndices = kRecords + kStagedPlaces * sizeof(Word);
  static_assert(kIndices + (kSplit ? kStagedPlaces * 4 : 0) == Policy::kSharedBytes, "the plan and the kernel agree");

  struct TilePlace {
    uint64_t row_start;  // of the row, in items
    uint32_t row;
    uint32_t tile;    // its number over all rows
    uint32_t number;  // in its row
    uint32_t first;   // position in the row
    uint32_t items;
    __device__ __forceinline__ bool full() const { return items == kTileItems; }
  };

  const PassArguments<Key>& arguments;
  const PassRole role;
  const DigitView<Key, kExact> view;
  const uint32_t shared, thread, lane, warp;
  const uint32_t own;        // place in the tile of this thread's first item; the others follow kLanes apart
  const uint32_t histogram;  // of these lanes
  Input input[kItems];
  uint32_t input_index[kLoadedIndices];
  uint32_t ranks[kItems / 2];  // two 16-bit ranks each, in bytes

  __device__ __forceinline__ RankedTile(const PassArguments<Key>& a, const PassRole& r, uint32_t shared_base)
      : arguments(a),
        role(r),
        view(DigitView<Key, kExact>::make(a, r)),
        shared(shared_base),
        thread(threadIdx.x),
        lane(threadIdx.x & 31),
        warp(threadIdx.x >> 5),
        own(threadIdx.x / kLanes * (kLanes * kItems) + threadIdx.x % kLanes),
        histogram(histogram_address(shared_base, threadIdx.x / kLanes)) {}

  // The counter of a digit lies at 4 * digit xor this. One digit lies in different banks in the histograms of one warp.
  __device__ __forceinline__ static uint32_t histogram_address(uint32_t shared_base, uint32_t number) {
    return shared_base + number * (kRadixBins * 4) + spread_banks(number);
  }
  __device__ __forceinline__ static uint32_t spread_banks(uint32_t number) { return number % (32 / kLanes) * (kLanes * 4); }

  __device__ __forceinline__ int spacing() const { return table_spacing<Policy>(arguments); }

  __device__ __forceinline__ TilePlace place_of(uint32_t tile) const {
    TilePlace place;
    place.tile = tile;
    place.row = arguments.rows == 1 ? 0 : tile / arguments.tiles_per_row;
    place.number = tile - place.row * arguments.tiles_per_row;
    place.first = place.number * kTileItems;
    place.items = min(arguments.length - place.first, kTileItems);
    place.row_start = static_cast<uint64_t>(place.row) * arguments.length;
    return place;
  }

  // ---- load -------------------------------------------------------------------------------------------------------------------------

  __device__ __forceinline__ void load_item(int item, uint64_t position) {
    if constexpr (kFromKeys) {
      if constexpr (k64)
        input[item] = reinterpret_cast<const uint2*>(arguments.keys_in)[position];
      else
        input[item] = arguments.keys_in[position * Policy::kKeyWords];
    } else {
      const void* records = arguments.records[role.source];
      if constexpr (Policy::kFromPieces)
        input[item] = *reinterpret_cast<const uint2*>(reinterpret_cast<uint64_t>(records) + position * kPieceRecordBytes +
                                                      gap_before(arguments, position));
      else if constexpr (kIndexed || k64)
        input[item] = static_cast<const uint2*>(records)[position];
      else
        input[item] = static_cast<const Key*>(records)[position];
      if constexpr (kSplit) input_index[item] = arguments.record_indices[role.source][position];
    }
  }

  __device__ __forceinline__ void load_group(const TilePlace& place, int group) {
    const uint64_t position = place.row_start + place.first + own;
    if (place.full()) {
#pragma unroll
      for (int k = 0; k < kGroup; ++k) load_item(group * kGroup + k, position + (group * kGroup + k) * kLanes);
    } else {
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const int item = group * kGroup + k;
        if (own + item * kLanes < place.items) {
          load_item(item, position + item * kLanes);
        } else if constexpr (!kFromKeys) {
          input[item] = Record::pad();
          if constexpr (kSplit) input_index[item] = ~0u;
        }
      }
    }
  }

  __device__ __forceinline__ bool read_from_one_piece(const TilePlace& place) const {
    if constexpr (Policy::kFromPieces) return tile_in_one_piece(arguments, place.tile);
    return true;
  }

  // Brings a tile into L2 while this one is scanned and scattered. One thread calls.
  __device__ __forceinline__ void prefetch(uint32_t tile) const {
#if __CUDA_ARCH__ >= 900
    const TilePlace place = place_of(tile);
    if (!read_from_one_piece(place)) return;
    constexpr uint32_t kBytes = kFromKeys ? sizeof(Key) * Policy::kKeyWords : kIndexed && !k64 ? 8 : sizeof(Key);
    constexpr uint32_t kStep = 16384;
    const char* base =
        kFromKeys ? reinterpret_cast<const char*>(arguments.keys_in) : static_cast<const char*>(arguments.records[role.source]);
    uint64_t start = reinterpret_cast<uint64_t>(base) + (place.row_start + place.first) * kBytes;
    if constexpr (Policy::kFromPieces) start += gap_before_tile(arguments, tile);
    const uint64_t end = start + static_cast<uint64_t>(place.items) * kBytes & ~uint64_t{15};
    for (uint64_t at = start & ~uint64_t{15}; at < end; at += kStep) {
      const uint32_t bytes = static_cast<uint32_t>(min(end - at, uint64_t{kStep}));
      asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(at), "r"(bytes) : "memory");
    }
#endif
  }

  // ---- rank -------------------------------------------------------------------------------------------------------------------------

  __device__ __forceinline__ uint32_t digit_offset(int item) const {
    return view.offset(Record::key_of_input(input[item]));
  }

  // Keys as they were read become keys as they travel; pads fill a ragged tile.
  __device__ __forceinline__ void encode(const TilePlace& place) {
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      const Key bits = static_cast<Key>(Record::key_of_input(input[item]));
      const Code key = kExact ? static_cast<Code>(arguments.order.to_ordered(bits)) : arguments.codec.code(bits);
      if constexpr (k64)
        input[item] = Record::split(key);
      else
        input[item] = key;
    }
    if (place.full()) return;
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      if (own + item * kLanes >= place.items) input[item] = Record::pad();
    }
  }

  // Samples some items of every lane: are many neighbours equal (kAddsForAll), or do many lanes share a digit? The block goes by the votes
  // on the tile before: warps on several ways at once delay each other. That a digit is common in the whole tile comes out of its scan
  // (count_of_bin).
  __device__ __forceinline__ void vote_on_digits() const {
    if constexpr (kAddsForAll) {
      const uint32_t digit = digit_offset(0);
      const uint32_t heads = __popc(__ballot_sync(~0u, __shfl_up_sync(~0u, digit, 1) != digit));
      if (heads <= kRunHeads && lane == 0) add_shared(shared + kVotes, 1);
    } else {
      uint32_t most = 0;
#pragma unroll
      for (int item = 0; item < kItems; item += kItems / 2) {
        const uint32_t digit = digit_offset(item);
        const uint32_t digit0 = __shfl_sync(~0u, digit, 0);
        const uint32_t same0 = __ballot_sync(~0u, digit == digit0);
        const uint32_t digit1 = __shfl_sync(~0u, digit, __ffs(~same0) - 1);
        const uint32_t same1 = __ballot_sync(~0u, digit == digit1);
        if (__popc(same0) > most) most = __popc(same0);
        if (__popc(same1) > most) most = __popc(same1);
      }
      if (most >= kCommonLanes && lane == 0) add_shared(shared + kVotes, 1);
    }
  }

  // Of the block's first tile, for which no other can speak: by one item of the warp, the same way as votes do.
  __device__ __forceinline__ uint32_t decide_for_first_tile(uint32_t* least) const {
    const uint32_t digit = digit_offset(0);
    if (__popc(__ballot_sync(~0u, __shfl_up_sync(~0u, digit, 1) != digit)) <= kRunHeads) return kVoted;
    const uint32_t digit0 = __shfl_sync(~0u, digit, 0);
    const uint32_t same0 = __ballot_sync(~0u, digit == digit0);
    const uint32_t digit1 = __shfl_sync(~0u, digit, __ffs(~same0) - 1);
    const uint32_t same1 = __ballot_sync(~0u, digit == digit1);
    const bool common0 = __popc(same0) >= kCommonLanesOfFirst, common1 = __popc(same1) >= kCommonLanesOfFirst;
    *least = common1 ? digit1 : digit0;
    const uint32_t decided = common0 ? digit0 | kCommonDecided : common1 ? digit1 | kCommonDecided : 0;
    if (decided != 0 && lane == 0) raise_shared(shared + kCommon, decided);
    return decided;
  }

  // One thread calls, when the scan has found the common digit.
  __device__ __forceinline__ void decide_by_votes() const {
    store_shared(shared + kDecided, load_shared(shared + kVotes) >= kWarps / 2 ? kVoted : load_shared(shared + kCommon));
    if constexpr (kDecidesByTile) {
      store_shared(shared + kDecidedLow, kTopOffset - (load_shared(shared + kCommonLow) & ~kCommonDecided));
      store_shared(shared + kCommonLow, 0);
    }
    store_shared(shared + kVotes, 0);
    store_shared(shared + kCommon, 0);
  }

  template <class Rank>
  __device__ __forceinline__ void rank_groups(Rank rank_group) {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      uint32_t counter[kGroup], rank[kGroup];
#pragma unroll
      for (int k = 0; k < kGroup; ++k) counter[k] = digit_offset(group * kGroup + k) ^ histogram;
      rank_group(group, counter, rank);
#pragma unroll
      for (int k = 0; k < kGroup; k += 2) ranks[(group * kGroup + k) / 2] = rank[k] | rank[k + 1] << 16;
    }
  }

  template <bool kTwo>
  __device__ __forceinline__ void rank_common(CommonDigits<kUnit, kTwo> digits) {
    static_assert(kLanes == 32, "its lanes add for the histogram of a whole warp");
    digits.load();
    rank_groups([&](int, const uint32_t(&counter)[kGroup], uint32_t(&rank)[kGroup]) { digits.rank(counter, rank); });
    if (lane == 0) digits.store();
  }

  template <RankMode kMode>
  __device__ __forceinline__ void rank_tile(const TilePlace& place) {
    if constexpr (kFromKeys) encode(place);
    using Group = uint32_t[kGroup];
    if constexpr (kExact) {
      rank_groups([&](int group, const Group& counter, Group& rank) {
        uint32_t valid = 0;
#pragma unroll
        for (int k = 0; k < kGroup; ++k) valid |= own + (group * kGroup + k) * kLanes < place.items ? 1u << k : 0u;
        rank_in_lane_order<kGroup, kUnit>(counter, valid, rank, lane);
      });
    } else {
      if constexpr (!kAddsForAll) vote_on_digits();
      uint32_t decided = 0, least = 0;
      if constexpr (kMode == RankMode::kFirst && kDecidesByTile) {
        decided = decide_for_first_tile(&least);
      } else if constexpr (kMode != RankMode::kPlain) {
        decided = load_shared(shared + kDecided);
        if constexpr (kDecidesByTile) least = load_shared(shared + kDecidedLow);
      }
      if (decided == kVoted) {
        rank_groups([&](int, const Group& counter, Group& rank) {
          if constexpr (kAddsForAll)
            rank_runs<kGroup, kUnit, kDecidesByTile ? kGroup : 1>(counter, rank, lane);
          else
            rank_few_digits<kGroup, kUnit, kLanes>(counter, rank, lane, histogram);
        });
      } else if (kAddsForAll && decided != 0) {
        const uint32_t common = (decided & ~kCommonDecided) ^ histogram;
        if constexpr (kDecidesByTile) {
          const uint32_t other = least ^ histogram, nothing = lane * 4 ^ histogram;
          if (other == common)
            rank_common(CommonDigits<kUnit, false>{{common, other}, nothing});
          else
            rank_common(CommonDigits<kUnit, true>{{common, other}, nothing});
        } else {
          rank_groups([&](int, const Group& counter, Group& rank) { rank_common_digits<kGroup, kUnit>(counter, rank, common, lane); });
        }
      } else {
        rank_groups([&](int, const Group& counter, Group& rank) { rank_by_atomics<kGroup, kUnit, Policy::kPermutePeriod>(counter, rank); });
      }
      if constexpr (kAddsForAll) vote_on_digits();
    }
  }

  __device__ __forceinline__ void clear_histogram() const {
#pragma unroll
    for (int k = 0; k < 64 / kLanes; ++k) clear_shared_16_bytes(shared + warp * (kOffsets / kWarps) + lane * 16 + k * 512);
    __syncwarp();
  }
};

}  // namespace gpusort
