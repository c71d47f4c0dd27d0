// A tile of the form of onesweep_pass.cuh in which records are counted and placed by two atomics, instead of one whose rank is kept.
//
//   count    before the scan: each warp counts its digits, without asking for a value. One digit in all lanes costs no more than 32 digits
//   scan     256 threads turn the histograms into places in the tile
//   scatter  the counter of a record's digit is its place, and moves on
//
// So no rank takes a register. Which digits are frequent is known from the scan of the tile itself, and whether equal keys are neighbours
// from a sample of it: see kMode.
//
// A staged place p lies at word p + p / 2^kPadShift: bins of equal length do not meet in one bank, and where the places of a thread lie
// follows from the first one by constants, also where their neighbours lie, which the verification compares with.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "onesweep_pass.cuh"

namespace gpusort {

// Lanes of the digit `common` of the tile add by one of them, and so do those of the first lane with another one; other lanes each add for
// themselves. kAtOnce items do each step before the next one.
template <int kGroup, int kAtOnce>
__device__ __forceinline__ void place_common_digits(const uint32_t (&counter)[kGroup], uint32_t (&place)[kGroup], uint32_t common,
                                                    uint32_t lane) {
#pragma unroll
  for (int begin = 0; begin < kGroup; begin += kAtOnce) {
    uint32_t same[kAtOnce], other[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) same[k] = __ballot_sync(~0u, counter[begin + k] == common);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) other[k] = __shfl_sync(~0u, counter[begin + k], __ffs(~same[k]) - 1);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const uint32_t own = counter[begin + k];
      const uint32_t same1 = __ballot_sync(~0u, own == other[k]);
      same[k] = own == common ? same[k] : own == other[k] ? same1 : 1u << lane;
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      other[k] = 0;
      if (__ffs(same[k]) - 1 == lane) other[k] = fetch_add_shared(counter[begin + k], __popc(same[k]));
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      place[begin + k] = __shfl_sync(~0u, other[k], __ffs(same[k]) - 1) + __popc(same[k] & lanes_below());
    }
  }
}

// The first lane of each run of equal digits adds for all of it.
template <int kGroup, int kAtOnce>
__device__ __forceinline__ void place_runs(const uint32_t (&counter)[kGroup], uint32_t (&place)[kGroup], uint32_t lane) {
  const uint32_t below = lanes_below();
#pragma unroll
  for (int begin = 0; begin < kGroup; begin += kAtOnce) {
    uint32_t heads[kAtOnce], start[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) start[k] = __shfl_up_sync(~0u, counter[begin + k], 1);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) heads[k] = __ballot_sync(~0u, start[k] != counter[begin + k] || lane == 0);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const uint32_t later = heads[k] & ~below & ~(1u << lane);
      start[k] = 0;
      if (heads[k] >> lane & 1) start[k] = fetch_add_shared(counter[begin + k], (later != 0 ? __ffs(later) - 1 : 32) - lane);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const uint32_t first = 31 - __clz(heads[k] & (below | 1u << lane));
      place[begin + k] = __shfl_sync(~0u, start[k], first) + (lane - first);
    }
  }
}

template <class Policy, StepOutputs kOutputs>
struct PlacedTile : OnesweepBlock<Policy, false, kOutputs> {
  using Base = OnesweepBlock<Policy, false, kOutputs>;
  using Base::arguments;
  using Base::Base;
  using Base::column;
  using Base::digit_offset;
  using Base::encode;
  using Base::histogram;
  using Base::input;
  using Base::input_index;
  using Base::k64;
  using Base::kFromKeys;
  using Base::kGroup;
  using Base::kGroups;
  using Base::kHistograms;
  using Base::kIndices;
  using Base::kLanes;
  using Base::kPadShift;
  using Base::kRecords;
  using Base::kSplit;
  using Base::kThreads;
  using Base::kTileItems;
  using Base::kWarps;
  using Base::kWarpSums;
  using Base::lane;
  using Base::load_group;
  using Base::own;
  using Base::read_from_one_piece;
  using Base::role;
  using Base::shared;
  using Base::thread;
  using typename Base::Input;
  using typename Base::Key;
  using typename Base::Record;
  using typename Base::TilePlace;
  using typename Base::Word;

  // Words of shared memory.
  static constexpr uint32_t kFrequent = kWarpSums + 36;  // of the scan: count << 8 | bin of the most frequent digit, 0 if none is common
  static constexpr uint32_t kVotes = kWarpSums + 40;     // of warps that have seen runs in the tile
  static constexpr uint32_t kMode = kWarpSums + 44;     // how records are placed: 0 one by one, kRuns, or kCommonDigit | 4 * a common digit
  static constexpr uint32_t kNothing = kWarpSums + 48;  // 16 bytes of zeros: what the first staged record is compared with
  static constexpr uint32_t kRuns = 1, kCommonDigit = 2;
  // 32-bit keys with indices, and where keys alone are written out (normal floats have two frequent top digits): up to two common digits
  // are counted in registers. kFrequent then has 1 + the largest of them, kLeast 256 - the least, and kMode has this one too, in its upper
  // half. H200, 2^26 float32 alone: the last slot 229 us, and 251 with one common digit; in the first slot it takes 2 us more.
  static constexpr bool kTwoCommon = !k64 && Policy::kKeyWords == 1 && (Base::kIndexed || kOutputs != StepOutputs::kRecords);
  static constexpr uint32_t kLeast = kWarpSums + 56;
  static constexpr uint32_t kOneDigitVote = 1 << 16;  // added to kVotes: one digit fills half of the tile
  static_assert(kNothing + 16 == kRecords, "");
  static constexpr uint32_t kCommonCount = kTileItems / 32 * (kTwoCommon ? 7 : 8);
  static constexpr uint32_t kRunHeads = 12;  // of 31 lanes that differ from the one before: not more are runs
  static constexpr uint32_t kWordBytes = sizeof(Word);
  static constexpr int kAtOnce = kThreads > 512 ? 1 : kGroup < 4 ? kGroup : 4;  // items of skewed tiles: what registers allow

  __device__ __forceinline__ void clear_words() const {
    if (thread < (kRecords - kFrequent) / 4) store_shared(shared + kFrequent + thread * 4, 0);
    if (kSplit && thread == 0) store_shared(shared + kIndices - 8, 0);  // of the padding before the indices
  }

  // ---- load -------------------------------------------------------------------------------------------------------------------------
  // Pointers are kept as numbers, so that an address takes at most one instruction. The compiler would take them for generic ones.

  struct Source {
    uint64_t records;
    uint64_t indices;
  };
  static constexpr uint32_t kLoadedBytes = kFromKeys ? sizeof(Key) * Policy::kKeyWords : sizeof(Input) == 8 ? 8 : sizeof(Key);

  __device__ __forceinline__ Source source_of(const TilePlace& place) const {
    const uint64_t first = place.row_start + place.first + own;
    const void* records = kFromKeys ? arguments.keys_in : arguments.records[role.source];
    Source source = {reinterpret_cast<uint64_t>(records) + first * kLoadedBytes, 0};
    if constexpr (Policy::kFromPieces) source.records += gap_before_tile(arguments, place.tile);
    asm("" : "+l"(source.records));
    if constexpr (kSplit && !kFromKeys) {
      source.indices = reinterpret_cast<uint64_t>(arguments.record_indices[role.source] + first);
      asm("" : "+l"(source.indices));
    }
    return source;
  }

  __device__ __forceinline__ static uint32_t load_word(uint64_t address) {
    uint32_t value;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(address));
    return value;
  }

  __device__ __forceinline__ static Input load_record(uint64_t address) {
    if constexpr (sizeof(Input) == 8) {
      uint2 value;
      asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(value.x), "=r"(value.y) : "l"(address));
      return value;
    } else if constexpr (sizeof(Key) == 2) {
      uint16_t value;
      asm volatile("ld.global.u16 %0, [%1];" : "=h"(value) : "l"(address));
      return value;
    } else {  // nobody reads it again. H200, 2^24 float32 alone: 298 us, and 296 so
      uint32_t value;
      asm volatile("ld.global.cs.u32 %0, [%1];" : "=r"(value) : "l"(address));
      return value;
    }
  }

  __device__ __forceinline__ void load_full_group(const Source& source, int group) {
#pragma unroll
    for (int k = 0; k < kGroup; ++k) {
      const int item = group * kGroup + k;
      input[item] = load_record(source.records + item * kLanes * kLoadedBytes);
      if constexpr (kSplit && !kFromKeys) input_index[item] = load_word(source.indices + item * kLanes * 4);
    }
  }

  // ---- count ------------------------------------------------------------------------------------------------------------------------

  template <bool kEncode>
  __device__ __forceinline__ void count_group(int group) {
#pragma unroll
    for (int k = 0; k < kGroup; ++k) {
      const int item = group * kGroup + k;
      if constexpr (kEncode) {
        const auto code = arguments.codec.code(static_cast<Key>(Record::key_of_input(input[item])));
        if constexpr (k64)
          input[item] = Record::split(code);
        else
          input[item] = code;
      }
      add_shared(digit_offset(item) ^ histogram, 1);
    }
  }

  // The whole tile at once.
  __device__ __forceinline__ void load_and_count(const TilePlace& place) {
    if (place.full() && read_from_one_piece(place)) {
      const Source source = source_of(place);
#pragma unroll
      for (int group = 0; group < kGroups; ++group) load_full_group(source, group);
#pragma unroll
      for (int group = 0; group < kGroups; ++group) count_group<kFromKeys>(group);
    } else {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) load_group(place, group);
      if constexpr (kFromKeys) encode(place);
#pragma unroll
      for (int group = 0; group < kGroups; ++group) count_group<false>(group);
    }
    vote_on_runs();
  }

  __device__ __forceinline__ void vote_on_runs() const {
    const uint32_t digit = digit_offset(0);
    const uint32_t heads = __popc(__ballot_sync(~0u, __shfl_up_sync(~0u, digit, 1) != digit));
    if (heads <= kRunHeads && lane == 0) add_shared(shared + kVotes, 1);
  }

  // ---- scan -------------------------------------------------------------------------------------------------------------------------

  static constexpr bool kCountsInRegisters = kHistograms <= 16 && !Base::kIndexed;  // else they would be spilled
  using Counts = uint32_t[kCountsInRegisters ? kHistograms : 1];

  // Thread b: the tile's count of bin b.
  __device__ __forceinline__ uint32_t take_counts(const TilePlace& place, uint32_t* word, Counts& counts) const {
    uint32_t total = 0;
#pragma unroll
    for (int h = 0; h < kHistograms; ++h) {
      const uint32_t count = load_shared(column(h));
      if constexpr (kCountsInRegisters) counts[h] = count;
      total += count;
    }
    if (place.number != 0) publish_count(word, total);
    if (total > kCommonCount) {
      if constexpr (kTwoCommon) {
        raise_shared(shared + kFrequent, 1 + thread);
        raise_shared(shared + kLeast, kRadixBins - thread);
        if (total > kTileItems / 2) add_shared(shared + kVotes, kOneDigitVote);
      } else {
        raise_shared(shared + kFrequent, total << 8 | thread);
      }
    }
    return total;
  }

  // Thread b: the histograms become places in the tile, from the start of bin b's run on.
  __device__ __forceinline__ void place_counts(uint32_t start, const Counts& counts) const {
    uint32_t next = start;
    if constexpr (kCountsInRegisters) {
#pragma unroll
      for (int h = 0; h < kHistograms; ++h) {
        store_shared(column(h), next);
        next += counts[h];
      }
    } else {
      constexpr int kBatch = 8;
#pragma unroll
      for (int first = 0; first < kHistograms; first += kBatch) {
        uint32_t count[kBatch];
#pragma unroll
        for (int h = 0; h < kBatch; ++h) count[h] = load_shared(column(first + h));
#pragma unroll
        for (int h = 0; h < kBatch; ++h) {
          store_shared(column(first + h), next);
          next += count[h];
        }
      }
    }
  }

  // One thread calls, between the barriers of the scan. Returns whether one digit fills half of the tile.
  __device__ __forceinline__ bool choose_mode() const {
    const uint32_t frequent = load_shared(shared + kFrequent);
    if constexpr (kTwoCommon) {
      const uint32_t votes = load_shared(shared + kVotes), least = kRadixBins - load_shared(shared + kLeast);
      const uint32_t common = frequent != 0 ? least << 18 | (frequent - 1) << 2 | kCommonDigit : 0;
      store_shared(shared + kMode, votes % kOneDigitVote >= kWarps / 2 ? kRuns : common);
      store_shared(shared + kFrequent, 0);
      store_shared(shared + kLeast, 0);
      store_shared(shared + kVotes, 0);
      return votes >= kOneDigitVote;
    }
    const bool runs = load_shared(shared + kVotes) >= kWarps / 2;
    store_shared(shared + kMode, runs ? kRuns : frequent != 0 ? (frequent & (kRadixBins - 1)) << 2 | kCommonDigit : 0);
    store_shared(shared + kFrequent, 0);
    store_shared(shared + kVotes, 0);
    return frequent >> 8 > kTileItems / 2;
  }

  // ---- scatter ----------------------------------------------------------------------------------------------------------------------

  template <class Place>
  __device__ __forceinline__ void scatter_by(const TilePlace& place, Place place_group) const {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const uint32_t own_index = opaque(place.first + own);
      uint32_t counter[kGroup], at[kGroup];
#pragma unroll
      for (int k = 0; k < kGroup; ++k) counter[k] = digit_offset(group * kGroup + k) ^ histogram;
      place_group(counter, at);
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const int item = group * kGroup + k;
        const uint32_t index = own_index + item * kLanes;
        const uint32_t padded = at[k] + (at[k] >> kPadShift);
        store_shared(shared + kRecords + padded * kWordBytes, Record::stage(input[item], 0, index));
        if constexpr (kSplit) store_shared(shared + kIndices + padded * 4, kFromKeys ? index : input_index[kFromKeys ? 0 : item]);
      }
    }
  }

  template <bool kTwo>
  __device__ __forceinline__ void scatter_common(const TilePlace& place, CommonDigits<1, kTwo> digits) const {
    static_assert(kLanes == 32, "its lanes add for the histogram of a whole warp");
    digits.load();
    scatter_by(place, [&](const uint32_t(&counter)[kGroup], uint32_t(&at)[kGroup]) { digits.rank(counter, at); });
  }

  __device__ __forceinline__ void scatter_records(const TilePlace& place) const {
    using Group = uint32_t[kGroup];
    const uint32_t mode = load_shared(shared + kMode);
    if (mode == 0) {
      scatter_by(place, [&](const Group& counter, Group& at) { rank_by_atomics<kGroup, 1, Policy::kPermutePeriod>(counter, at); });
    } else if (mode == kRuns) {
      scatter_by(place, [&](const Group& counter, Group& at) { place_runs<kGroup, kAtOnce>(counter, at, lane); });
    } else if constexpr (kTwoCommon) {
      const uint32_t largest = (mode & (kRadixBins - 1) << 2) ^ histogram, least = mode >> 16 ^ histogram;
      if (largest == least)
        scatter_common(place, CommonDigits<1, false>{{largest, largest}, lane * 4 ^ histogram});
      else
        scatter_common(place, CommonDigits<1, true>{{largest, least}, lane * 4 ^ histogram});
    } else {
      const uint32_t common = (mode & ~kCommonDigit) ^ histogram;
      scatter_by(place, [&](const Group& counter, Group& at) { place_common_digits<kGroup, kAtOnce>(counter, at, common, lane); });
    }
  }
};

}  // namespace gpusort
