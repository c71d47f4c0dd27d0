// One step of a least-significant-digit radix sort: one read and one write of the data. After Adinets and Merrill, "Onesweep" (2022).
//
// One persistent block per SM takes tiles by ticket. A tile is a part of one row. Per tile:
//   rank       each warp counts its digits in a histogram of its own, items in memory order (tile_ranks.cuh)
//   scan       256 threads add up the warps, publish the tile's counts, and turn the histograms into places in the tile
//   scatter    records to shared memory in digit order
//   look-back  where in the row the tile's run of each bin begins
//   write      in digit order, so that the runs are long; the loads of the next tile are issued between the stores
//   verify     while writing
//
// Ranks come from returning shared atomics, whose order within a warp the hardware does not promise. So the order is verified: the input of
// a step rises in (bits sorted so far, position), hence so must the staged tile in (bits sorted so far with this digit, position).
// Atomicity alone makes the ranks a permutation within each bin, so a tile that does not rise needs nothing but its neighbours exchanged
// until it does, and to be written again to the same places. Ragged tiles are filled up with pads, which have the largest code and come
// last in every order. Keys without an index are verified by their bits alone; where equal codes have different bits (both zeros, several
// NaNs, bits outside the window that is sorted by) the kExact form ranks by match.any, which is ordered by definition, at three times the
// cost.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "../primitives/look_back.cuh"
#include "../primitives/shared_memory.cuh"
#include "copy_rows.cuh"
#include "pass_arguments.h"
#include "radix_control.cuh"
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
  static constexpr int kStagedBytes = radix_staged_bytes(sizeof(Key), kIndexed, kKind);
  static constexpr int kSharedBytes = radix_shared_bytes(kShape, kStagedBytes);
  static constexpr int kPermutePeriod = kPermutePeriod_;
};

// kExact: keys alone whose codes do not tell all, in the ordered form. kOutputs: where the step's results go.
enum class StepOutputs { kRecords, kKeysAndInt64, kAny };

template <class Policy, bool kExact, StepOutputs kOutputs>
struct OnesweepBlock {
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
  static constexpr uint32_t kTileItems = kThreads * kItems;
  static constexpr int kLoadedIndices = kSplit && !kFromKeys ? kItems : 1;
  static constexpr int kLookBackWidth = 4;
  static constexpr int kFewDigitsLanes = 22;  // of 32 lanes with one digit in a sample: few digits
  static_assert(kItems % kGroup == 0 && kGroup % 2 == 0 && kThreads >= kRadixBins, "");
  static_assert(32 * kItems * kUnit < 65536, "two ranks share a register");
  static_assert(kTileItems <= kMaxLookBackCount && kTileItems <= 65536, "");

  // Shared memory: histograms of the warps | offsets of the bins | words below | records | indices of split records.
  static constexpr uint32_t kOffsets = kWarps * kRadixBins * 4;
  static constexpr uint32_t kWarpSums = kOffsets + kRadixBins * 4;  // 8 words
  static constexpr uint32_t kNextTile = kWarpSums + 32;
  static constexpr uint32_t kOneDigit = kWarpSums + 36;       // one digit fills half of the tile
  static constexpr uint32_t kFewDigitVotes = kWarpSums + 40;  // warps that saw few digits
  static constexpr uint32_t kFewDigits = kWarpSums + 44;      // half of them did, in the tile before
  static constexpr uint32_t kRecords = kOffsets + kPassScratchBytes;
  static constexpr uint32_t kIndices = kRecords + kTileItems * sizeof(Word);
  static_assert(kIndices + (kSplit ? kTileItems * 4 : 0) == Policy::kSharedBytes, "the plan and the kernel agree");

  struct TilePlace {
    uint64_t row_start;  // of the row, in items
    uint32_t row;
    uint32_t number;  // of the tile, in its row
    uint32_t first;   // position in the row
    uint32_t items;
    __device__ __forceinline__ bool full() const { return items == kTileItems; }
  };

  const PassArguments<Key>& arguments;
  const PassRole role;
  const DigitView<Key, kExact> view;
  const uint32_t shared, thread, lane, warp;
  const uint32_t own;        // place in the tile of this thread's first item; the others follow 32 apart
  const uint32_t histogram;  // of this warp
  Input input[kItems];
  uint32_t input_index[kLoadedIndices];
  uint32_t ranks[kItems / 2];  // two 16-bit ranks each, in bytes

  __device__ __forceinline__ OnesweepBlock(const PassArguments<Key>& a, const PassRole& r, uint32_t shared_base)
      : arguments(a),
        role(r),
        view(DigitView<Key, kExact>::make(a, r)),
        shared(shared_base),
        thread(threadIdx.x),
        lane(threadIdx.x & 31),
        warp(threadIdx.x >> 5),
        own((threadIdx.x >> 5) * (32 * kItems) + (threadIdx.x & 31)),
        histogram(shared_base + (threadIdx.x >> 5) * (kRadixBins * 4)) {}

  __device__ __forceinline__ TilePlace place_of(uint32_t tile) const {
    TilePlace place;
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
        input[item] = arguments.keys_in[position];
    } else {
      const void* records = arguments.records[role.source];
      if constexpr (kIndexed || k64)
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
      for (int k = 0; k < kGroup; ++k) load_item(group * kGroup + k, position + (group * kGroup + k) * 32);
    } else {
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const int item = group * kGroup + k;
        if (own + item * 32 < place.items) {
          load_item(item, position + item * 32);
        } else if constexpr (!kFromKeys) {
          input[item] = Record::pad();
          if constexpr (kSplit) input_index[item] = ~0u;
        }
      }
    }
  }

  // Brings a tile into L2 while this one is scanned and scattered. One thread calls.
  __device__ __forceinline__ void prefetch(uint32_t tile) const {
#if __CUDA_ARCH__ >= 900
    const TilePlace place = place_of(tile);
    constexpr uint32_t kBytes = kFromKeys || !(kIndexed && !k64) ? sizeof(Key) : 8;
    constexpr uint32_t kStep = 16384;
    const char* base =
        kFromKeys ? reinterpret_cast<const char*>(arguments.keys_in) : static_cast<const char*>(arguments.records[role.source]);
    const uint64_t start = reinterpret_cast<uint64_t>(base) + (place.row_start + place.first) * kBytes;
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
      const Key key = kExact ? arguments.order.to_ordered(bits) : arguments.order.code(bits);
      if constexpr (k64)
        input[item] = Record::split(key);
      else
        input[item] = key;
    }
    if (place.full()) return;
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      if (own + item * 32 >= place.items) input[item] = Record::pad();
    }
  }

  // Samples two items of every lane: do many lanes share a digit? The block goes by the votes on the tile before: warps on both ways at
  // once delay each other.
  __device__ __forceinline__ void vote_on_few_digits() const {
    bool vote = false;
#pragma unroll
    for (int item = 0; item < kItems; item += kItems / 2) {
      const uint32_t digit = digit_offset(item);
      const uint32_t same0 = __ballot_sync(~0u, digit == __shfl_sync(~0u, digit, 0));
      const uint32_t digit1 = __shfl_sync(~0u, digit, ~same0 != 0 ? __ffs(~same0) - 1 : 0);
      const uint32_t same1 = __ballot_sync(~0u, digit == digit1);
      vote |= max(__popc(same0), __popc(same1)) >= kFewDigitsLanes;
    }
    if (vote && lane == 0) add_shared(shared + kFewDigitVotes, 1);
  }

  template <class Rank>
  __device__ __forceinline__ void rank_groups(Rank rank_group) {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      uint32_t counter[kGroup], rank[kGroup];
#pragma unroll
      for (int k = 0; k < kGroup; ++k) counter[k] = digit_offset(group * kGroup + k) | histogram;
      rank_group(group, counter, rank);
#pragma unroll
      for (int k = 0; k < kGroup; k += 2) ranks[(group * kGroup + k) / 2] = rank[k] | rank[k + 1] << 16;
    }
  }

  __device__ __forceinline__ void rank_tile(const TilePlace& place) {
    if constexpr (kFromKeys) encode(place);
    using Group = uint32_t[kGroup];
    if constexpr (kExact) {
      rank_groups([&](int group, const Group& counter, Group& rank) {
        uint32_t valid = 0;
#pragma unroll
        for (int k = 0; k < kGroup; ++k) valid |= own + (group * kGroup + k) * 32 < place.items ? 1u << k : 0u;
        rank_in_lane_order<kGroup, kUnit>(counter, valid, rank, lane);
      });
    } else {
      vote_on_few_digits();
      if (load_shared(shared + kFewDigits) != 0) {
        rank_groups([&](int, const Group& counter, Group& rank) { rank_few_digits<kGroup, kUnit>(counter, rank, lane); });
      } else {
        rank_groups([&](int, const Group& counter, Group& rank) { rank_by_atomics<kGroup, kUnit, Policy::kPermutePeriod>(counter, rank); });
      }
    }
  }

  __device__ __forceinline__ void clear_histogram() const {
#pragma unroll
    for (int k = 0; k < 2; ++k) clear_shared_16_bytes(histogram + lane * 16 + k * 512);
    __syncwarp();
  }

  // ---- scan -------------------------------------------------------------------------------------------------------------------------

  // Exclusive sum over threads 0..255. They alone call.
  __device__ __forceinline__ uint32_t scan_bins(uint32_t value) const {
    uint32_t sum = value;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, sum, distance);
      if (lane >= distance) sum += other;
    }
    if (lane == 31) store_shared(shared + kWarpSums + warp * 4, sum);
    sync_first_threads<kRadixBins>();
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const uint32_t other = load_shared(shared + kWarpSums + k * 4);
      if (k < warp) sum += other;
    }
    sync_first_threads<kRadixBins>();  // the sums may be written again
    return sum - value;
  }

  // Thread b: the tile's count of bin b and the start of its run in the tile, in bytes. The histograms become places.
  __device__ __forceinline__ void scan_tile(const TilePlace& place, uint32_t* word, uint32_t& total, uint32_t& start) const {
    const uint32_t column = shared + thread * 4;
    total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += load_shared(column + w * (kRadixBins * 4));
    if (place.number != 0) publish_count(word, total / kUnit);
    if (total > kTileItems * kUnit / 2) store_shared(shared + kOneDigit, 1);
    start = scan_bins(total);
    uint32_t next = start;
#pragma unroll 8
    for (int w = 0; w < kWarps; ++w) {
      const uint32_t count = load_shared(column + w * (kRadixBins * 4));
      store_shared(column + w * (kRadixBins * 4), next);
      next += count;
    }
  }

  // Thread b: publishes the position after the tile's run of bin b, and keeps what must be added to a place in the tile to get the position
  // in the row.
  __device__ __forceinline__ void find_offsets(const TilePlace& place, uint32_t tile, uint32_t* word, uint32_t total,
                                               uint32_t start) const {
    uint32_t before;
    if (place.number == 0) {  // the row's first tile starts from the bins: all later words are positions in the row
      before = scan_bins(arguments.bins[(static_cast<uint64_t>(place.row) * arguments.passes + role.digit) * kRadixBins + thread]);
    } else {
      before = look_back<kLookBackWidth>(word, tile, kRadixBins);
    }
    publish_inclusive(word, before + total / kUnit);
    store_shared(shared + kOffsets + thread * 4, before - start / kUnit);
  }

  // ---- scatter and write ------------------------------------------------------------------------------------------------------------

  // Staged places are spread over the banks: bins of equal length would meet in one bank otherwise. In bytes.
  __device__ __forceinline__ static uint32_t swizzle(uint32_t place) {
    constexpr int kShift = kItems * kThreads / kRadixBins >= 128 ? 7 : 6;
    return place >> kShift & (31 * kUnit);
  }
  __device__ __forceinline__ static uint32_t staged_place(uint32_t place) {
    return place * kUnit ^ swizzle(place * kUnit);
  }

  __device__ __forceinline__ void scatter(const TilePlace& place) const {
#pragma unroll
    for (int first = 0; first < kItems; first += kGroup) {
      uint32_t at[kGroup];
      const uint32_t own_place = opaque(own);
      const uint32_t own_index = opaque(place.first + own);
#pragma unroll
      for (int k = 0; k < kGroup; ++k) at[k] = load_shared(digit_offset(first + k) | histogram);
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const int item = first + k;
        at[k] += item & 1 ? ranks[item / 2] >> 16 : ranks[item / 2] & 0xffff;
        at[k] ^= swizzle(at[k]);
        if (!kExact || own + item * 32 < place.items) {
          store_shared(shared + kRecords + at[k] * kScale, Record::stage(input[item], own_place + item * 32, own_index + item * 32));
          if constexpr (kSplit)
            store_shared(shared + kIndices + at[k], kFromKeys ? own_index + item * 32 : input_index[kFromKeys ? 0 : item]);
        }
      }
    }
  }

  // Must a stand after b? By the bits sorted so far, then by position; pads last. `index` is that of split records.
  __device__ __forceinline__ bool after(const Word& a, uint32_t a_index, const Word& b, uint32_t b_index) const {
    const Code a_bits = view.sorted_bits(Record::key_of_word(a)), b_bits = view.sorted_bits(Record::key_of_word(b));
    if constexpr (kSplit)
      return a_bits > b_bits || (a_bits == b_bits && a_index > b_index);
    else if constexpr (Record::kPacked)
      return (a_bits << 16 | (a & 0xffff)) > (b_bits << 16 | (b & 0xffff));
    else if constexpr (Record::kPair)
      return (static_cast<uint64_t>(a_bits) << 32 | a.y) > (static_cast<uint64_t>(b_bits) << 32 | b.y);
    else
      return a_bits > b_bits || (is_pad(a) && !is_pad(b));
  }

  // Keys alone: a key that looks like a pad may as well be one.
  __device__ __forceinline__ static bool is_pad(const Word& word) {
    return static_cast<Key>(Record::key_of_word(word)) == static_cast<Key>(~Key{0});
  }

  // kCount staged records of this thread: those of the rounds from first_round on, a round being one record of every thread.
  template <int kCount>
  struct StagedGroup {
    Word word[kCount];
    uint32_t index[kSplit ? kCount : 1];
    uint32_t offset[kCount];  // in the row

    __device__ __forceinline__ uint32_t index_of(int k, const TilePlace& place) const {
      if constexpr (Record::kPacked)
        return place.first + (word[k] & 0xffff);
      else if constexpr (Record::kPair)
        return word[k].y;
      else
        return index[kSplit ? k : 0];
    }
  };

  template <int kCount>
  __device__ __forceinline__ void read_group(int first_round, StagedGroup<kCount>& staged) const {
    const uint32_t own_bytes = opaque(thread) * kUnit;
    const uint32_t own_staged = own_bytes ^ swizzle(own_bytes);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      constexpr uint32_t kStep = kThreads * kUnit;
      const uint32_t step = (first_round + k) * kStep;  // disjoint from the bits of own_bytes, so the swizzle is the sum of both
      const uint32_t at = (own_staged ^ swizzle(step)) + step;
      load_shared(shared + kRecords + at * kScale, staged.word[k]);
      if constexpr (kSplit) staged.index[k] = load_shared(shared + kIndices + at);
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      staged.offset[k] =
          load_shared(shared + kOffsets + view.offset(Record::key_of_word(staged.word[k]))) + thread + (first_round + k) * kThreads;
    }
  }

  // Each record against the one before it. Returns whether the order is wrong somewhere.
  template <int kCount>
  __device__ __forceinline__ bool verify_group(const TilePlace& place, int first_round, const StagedGroup<kCount>& staged) const {
    bool wrong = false;
    constexpr int kBatch = k64 ? (kCount < 4 ? kCount : 4) : kCount;
#pragma unroll
    for (int first = 0; first < kCount; first += kBatch) {
      Word before[kBatch];
      uint32_t before_index[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int round = first_round + first + k;
        const uint32_t at = staged_place(round == 0 && thread == 0 ? 0 : thread + round * kThreads - 1);
        load_shared(shared + kRecords + at * kScale, before[k]);
        before_index[k] = 0;
        if constexpr (kSplit) before_index[k] = load_shared(shared + kIndices + at);
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        wrong |= after(before[k], before_index[k], staged.word[first + k], staged.index[kSplit ? first + k : 0]);
        if constexpr (!kIndexed)
          wrong |= !place.full() && thread + (first_round + first + k) * kThreads >= place.items && !is_pad(staged.word[first + k]);
      }
      // Else the compiler puts the comparisons off and keeps their operands.
      int decided = wrong;
      asm volatile("" : "+r"(decided));
      wrong = decided != 0;
    }
    return wrong;
  }

  __device__ __forceinline__ bool staged_here(const TilePlace& place, int round) const {
    return place.full() || thread + round * kThreads < place.items;
  }

  template <int kCount>
  __device__ __forceinline__ void store_records(const TilePlace& place, int first_round, const StagedGroup<kCount>& staged) const {
    void* records = arguments.records[role.target];
    if constexpr (kIndexed && !k64) {
      uint2* row = static_cast<uint2*>(records) + place.row_start;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (!staged_here(place, first_round + k)) continue;
        if constexpr (Record::kPacked)
          row[staged.offset[k]] = make_uint2(Record::key_of_word(staged.word[k]), staged.index_of(k, place));
        else
          row[staged.offset[k]] = staged.word[k];
      }
    } else {
      Key* row = static_cast<Key*>(records) + place.row_start;
      uint32_t* indices = arguments.record_indices[role.target] + place.row_start;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (!staged_here(place, first_round + k)) continue;
        row[staged.offset[k]] = static_cast<Key>(Record::key_of_word(staged.word[k]));
        if constexpr (kSplit) indices[staged.offset[k]] = staged.index[k];
      }
    }
  }

  __device__ __forceinline__ Key bits_of(const Word& word) const {
    const Key key = static_cast<Key>(Record::key_of_word(word));
    return kExact ? arguments.order.from_ordered(key) : bits_of_code(arguments.order, key);
  }

  template <class Index, int kCount>
  __device__ __forceinline__ void store_indices(const TilePlace& place, int first_round, const StagedGroup<kCount>& staged) const {
    Index* row = static_cast<Index*>(arguments.indices_out) + place.row_start;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      if (staged_here(place, first_round + k)) row[staged.offset[k]] = staged.index_of(k, place);
    }
  }

  template <int kCount>
  __device__ __forceinline__ void store_outputs(const TilePlace& place, int first_round, const StagedGroup<kCount>& staged) const {
    if (kOutputs == StepOutputs::kKeysAndInt64 || !kIndexed || arguments.keys_out != nullptr) {
      Key* row = arguments.keys_out + place.row_start;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (staged_here(place, first_round + k)) row[staged.offset[k]] = bits_of(staged.word[k]);
      }
    }
    if constexpr (kIndexed) {
      if (kOutputs == StepOutputs::kKeysAndInt64 || arguments.index_bytes == 8)
        store_indices<int64_t>(place, first_round, staged);
      else
        store_indices<uint32_t>(place, first_round, staged);
    }
  }

  template <int kCount>
  __device__ __forceinline__ void store_group(const TilePlace& place, int first_round, const StagedGroup<kCount>& staged) const {
    if constexpr (kOutputs == StepOutputs::kRecords)
      store_records(place, first_round, staged);
    else
      store_outputs(place, first_round, staged);
  }

  // One group of staged records: read, verified, written. Returns whether the order is wrong somewhere.
  __device__ __forceinline__ bool write_group(const TilePlace& place, int first_round) const {
    StagedGroup<kGroup> staged;
    read_group(first_round, staged);
    bool wrong = false;
    if constexpr (!kExact) {
      if (kIndexed || role.step > 0 || !place.full()) wrong = verify_group(place, first_round, staged);
    }
    store_group(place, first_round, staged);
    return wrong;
  }

  // Exchanges neighbours until the tile is in order, then writes it again. Never seen to be needed outside tests; loops are kept rolled, or
  // their registers would be spilled in the main path.
  __device__ __forceinline__ void mend(const TilePlace& place) const {
    if (thread == 0) atomicAdd(&arguments.control->mended_tiles, 1u);
    bool exchanged;
    do {
      exchanged = false;
#pragma unroll 1
      for (uint32_t parity = 0; parity < 2; ++parity) {
#pragma unroll 1
        for (uint32_t i = 2 * opaque(thread) + parity; i + 1 < kTileItems; i += 2 * kThreads) {
          const uint32_t a_at = staged_place(i), b_at = staged_place(i + 1);
          Word a, b;
          load_shared(shared + kRecords + a_at * kScale, a);
          load_shared(shared + kRecords + b_at * kScale, b);
          uint32_t a_index = 0, b_index = 0;
          if constexpr (kSplit) {
            a_index = load_shared(shared + kIndices + a_at);
            b_index = load_shared(shared + kIndices + b_at);
          }
          if (!after(a, a_index, b, b_index)) continue;
          exchanged = true;
          store_shared(shared + kRecords + a_at * kScale, b);
          store_shared(shared + kRecords + b_at * kScale, a);
          if constexpr (kSplit) {
            store_shared(shared + kIndices + a_at, b_index);
            store_shared(shared + kIndices + b_at, a_index);
          }
        }
        __syncthreads();
      }
    } while (__syncthreads_or(exchanged));
#pragma unroll 1
    for (int round = 0; round < kItems; ++round) {
      StagedGroup<1> staged;
      const uint32_t i = opaque(thread) + round * kThreads;
      const uint32_t at = staged_place(i);
      load_shared(shared + kRecords + at * kScale, staged.word[0]);
      if constexpr (kSplit) staged.index[0] = load_shared(shared + kIndices + at);
      staged.offset[0] = load_shared(shared + kOffsets + view.offset(Record::key_of_word(staged.word[0]))) + i;
      store_group(place, round, staged);
    }
  }

  // ---- the whole ----------------------------------------------------------------------------------------------------------------------

  // A share of the next step's look-back table, by tile.
  __device__ __forceinline__ void clear_next_table(uint32_t tile) const {
    if constexpr (kOutputs != StepOutputs::kRecords) return;
    uint32_t* table = arguments.look_back[(role.step + 1) & 1];
    const uint32_t begin = tile * arguments.look_back_share;
    const uint32_t end = min(begin + arguments.look_back_share, arguments.look_back_rows);
    for (uint32_t row = begin + thread / kRadixBins; row < end; row += kThreads / kRadixBins) {
      table[static_cast<uint64_t>(row) * kRadixBins + thread % kRadixBins] = 0;
    }
  }

  __device__ __forceinline__ void run() {
    uint32_t* ticket = arguments.control->tickets + arguments.slot;
    if (thread == kThreads - 1) {
      store_shared(shared + kNextTile, atomicAdd(ticket, 1u));
      store_shared(shared + kOneDigit, 0);
      store_shared(shared + kFewDigitVotes, 0);
      store_shared(shared + kFewDigits, 0);
    }
    __syncthreads();
    uint32_t tile = warp_uniform(load_shared(shared + kNextTile));
    if (tile >= arguments.tiles) return;
    clear_histogram();
    {
      const TilePlace place = place_of(tile);
#pragma unroll
      for (int group = 0; group < kGroups; ++group) load_group(place, group);
      rank_tile(place);
    }
    __syncthreads();
    for (;;) {  // the tile is loaded and ranked, the counts are complete
      const TilePlace place = place_of(tile);
      uint32_t next_tile = 0;
      if (thread == kThreads - 1) {
        next_tile = atomicAdd(ticket, 1u);
        store_shared(shared + kFewDigits, load_shared(shared + kFewDigitVotes) * 2 >= kWarps ? 1u : 0u);
        store_shared(shared + kFewDigitVotes, 0);
      }
      clear_next_table(tile);
      uint32_t total = 0, start = 0;
      uint32_t* word = arguments.look_back[role.step & 1] + static_cast<uint64_t>(tile) * kRadixBins + thread;
      if (thread < kRadixBins) scan_tile(place, word, total, start);
      __syncthreads();  // places in the tile are known
      if (thread == kThreads - 1) {
        store_shared(shared + kNextTile, next_tile);
        if constexpr (Policy::kShape.prefetch) {
          const bool one_digit =
              load_shared(shared + kOneDigit) != 0;  // slower then: middle pass 410 us with, 335-350 without (H200, 2^26)
          store_shared(shared + kOneDigit, 0);
          if (!one_digit && next_tile < arguments.tiles) prefetch(next_tile);
        }
      }
      scatter(place);
      __syncwarp();
      clear_histogram();
      if (thread < kRadixBins) find_offsets(place, tile, word, total, start);
      __syncthreads();  // records and offsets are in place
      tile = warp_uniform(load_shared(shared + kNextTile));
      const bool more = tile < arguments.tiles;
      const TilePlace next = place_of(more ? tile : 0);
      bool wrong = false;
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        if (more) load_group(next, group);
        wrong |= write_group(place, group * kGroup);
      }
      if (more) rank_tile(next);
      if constexpr (kExact) {
        __syncthreads();
      } else {
        if (__syncthreads_or(wrong)) mend(place);
      }
      if (!more) return;
    }
  }
};

// kExact kernels are launched beside the others when keys alone may need them; the control words say which of the two has the work.
template <class Policy, bool kExact>
__global__ __launch_bounds__(Policy::kShape.threads,
                             1) void onesweep_pass_kernel(const __grid_constant__ PassArguments<typename Policy::Key> arguments) {
  extern __shared__ __align__(1024) uint8_t staging[];
  if constexpr (!Policy::kIndexed) {
    if (kExact != (arguments.partial_window() || equal_codes_differ(arguments.control))) return;
  }
  const PassRole role = pass_role(arguments.control, Policy::kKind, arguments.slot, arguments.passes);
  if (!role.active) return;
  if constexpr (Policy::kKind == PassKind::kFirst) {
    if (role.live == 0) {
      copy_rows<Policy::kShape.threads, Policy::kTileItems>(arguments);
      return;
    }
  }
  const uint32_t shared = shared_address(staging);
  if constexpr (Policy::kKind == PassKind::kMiddle || (Policy::kKind == PassKind::kFirst && sizeof(typename Policy::Key) > 1)) {
    if (Policy::kKind == PassKind::kMiddle || !role.final) {
      OnesweepBlock<Policy, kExact, StepOutputs::kRecords>(arguments, role, shared).run();
      return;
    }
  }
  if constexpr (Policy::kKind != PassKind::kMiddle) {
    if constexpr (Policy::kIndexed) {
      if (arguments.keys_out != nullptr && arguments.index_bytes == 8) {
        OnesweepBlock<Policy, kExact, StepOutputs::kKeysAndInt64>(arguments, role, shared).run();
        return;
      }
    }
    OnesweepBlock<Policy, kExact, StepOutputs::kAny>(arguments, role, shared).run();
  }
}

}  // namespace gpusort
