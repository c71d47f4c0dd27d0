// A tile in shared memory, in digit order: scattered there by the places its records were given, verified and written out, mended if
// need be. The second half of onesweep_pass.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "ranked_tile.cuh"

namespace gpusort {

// Where the results of a step go.
enum class StepOutputs { kRecords, kKeysAndInt64, kAny };

template <class Policy, bool kExact, StepOutputs kOutputs>
struct StagedTile : RankedTile<Policy, kExact> {
  using Base = RankedTile<Policy, kExact>;
  using Base::arguments;
  using Base::Base;
  using Base::digit_offset;
  using Base::histogram;
  using Base::input;
  using Base::input_index;
  using Base::k64;
  using Base::kFromKeys;
  using Base::kGroup;
  using Base::kIndexed;
  using Base::kIndices;
  using Base::kItems;
  using Base::kLanes;
  using Base::kOffsets;
  using Base::kRecords;
  using Base::kScale;
  using Base::kSplit;
  using Base::kThreads;
  using Base::kTileItems;
  using Base::kUnit;
  using Base::own;
  using Base::ranks;
  using Base::role;
  using Base::shared;
  using Base::thread;
  using Base::view;
  using typename Base::Code;
  using typename Base::Key;
  using typename Base::Record;
  using typename Base::TilePlace;
  using typename Base::Word;
  // Upper halves of the indices may belong to the tables.
  static constexpr bool kMayBorrow = kOutputs == StepOutputs::kKeysAndInt64 && Policy::kLastTakesAll;
  // A way of their own for full tiles spares other records the predicates, but costs these registers that they do not have.
  static constexpr bool kPredicated = kIndexed && !k64;
  // The starts of rows stay in registers, where there are enough.
  static constexpr bool kPinsRows = kThreads <= 512 && Policy::kKeyWords == 1;

  // In some forms they lie padded instead: see placed_tile.cuh.
  static constexpr bool kPadded = Policy::kPlaced && !kExact;
  static constexpr int kPadShift = radix_pad_shift(kTileItems);

  // Staged places are spread over the banks: bins of equal length would meet in one bank otherwise. In bytes.
  __device__ __forceinline__ static uint32_t swizzle(uint32_t place) {
    constexpr int kShift = kItems * kThreads / kRadixBins >= 128 ? 7 : 6;
    return place >> kShift & (31 * kUnit);
  }
  __device__ __forceinline__ static uint32_t staged_place(uint32_t place) {
    return kPadded ? (place + (place >> kPadShift)) * kUnit : place * kUnit ^ swizzle(place * kUnit);
  }

  __device__ __forceinline__ void scatter(const TilePlace& place) const {
#pragma unroll
    for (int first = 0; first < kItems; first += kGroup) {
      uint32_t at[kGroup];
      const uint32_t own_place = opaque(own);
      const uint32_t own_index = opaque(place.first + own);
#pragma unroll
      for (int k = 0; k < kGroup; ++k) at[k] = load_shared(digit_offset(first + k) ^ histogram);
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const int item = first + k;
        at[k] += item & 1 ? ranks[item / 2] >> 16 : ranks[item / 2] & 0xffff;
        at[k] ^= swizzle(at[k]);
        if (!kExact || own + item * kLanes < place.items) {
          store_shared(shared + kRecords + at[k] * kScale,
                       Record::stage(input[item], own_place + item * kLanes, own_index + item * kLanes));
          if constexpr (kSplit)
            store_shared(shared + kIndices + at[k], kFromKeys ? own_index + item * kLanes : input_index[kFromKeys ? 0 : item]);
        }
      }
    }
  }

  // Must a stand after b? By the bits sorted so far, then by position. `index` is that of split records.
  __device__ __forceinline__ bool after(const Word& a, uint32_t a_index, const Word& b, uint32_t b_index) const {
    const Code a_bits = view.sorted_bits(Record::key_of_word(a)), b_bits = view.sorted_bits(Record::key_of_word(b));
    if constexpr (kSplit)
      return a_bits > b_bits || (a_bits == b_bits && a_index > b_index);
    else if constexpr (Record::kPacked)
      return (a_bits << 16 | (a & 0xffff)) > (b_bits << 16 | (b & 0xffff));
    else if constexpr (Record::kPair)
      return (static_cast<uint64_t>(a_bits) << 32 | a.x) > (static_cast<uint64_t>(b_bits) << 32 | b.x);
    else
      return a_bits > b_bits;
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
        return word[k].x;
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
          load_shared((shared | view.offset(Record::key_of_word(staged.word[k]))) + kOffsets) + thread + (first_round + k) * kThreads;
    }
  }

  // Is it a record and no pad?
  __device__ __forceinline__ bool staged_here(const TilePlace& place, int round) const {
    return place.full() || thread + round * kThreads < place.items;
  }

  // Each record against the one before it. Returns whether the order is wrong somewhere.
  template <int kCount>
  __device__ __forceinline__ bool verify_group(const TilePlace& place, int first_round, const StagedGroup<kCount>& staged) const {
    bool wrong = false;
    const uint32_t before_bytes = opaque(thread) * kUnit - kUnit;
    const uint32_t before_staged = before_bytes ^ swizzle(before_bytes);
    constexpr int kBatch = k64 ? (kCount < 4 ? kCount : 4) : kCount;
#pragma unroll
    for (int first = 0; first < kCount; first += kBatch) {
      Word before[kBatch];
      uint32_t before_index[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        // As in read_group, but that the first thread's neighbour is in the round before.
        const int round = first_round + first + k;
        const uint32_t step = round * (kThreads * kUnit);
        const uint32_t at =
            (thread == 0 ? staged_place(round == 0 ? 0 : round * kThreads - 1) - step : before_staged ^ swizzle(step)) + step;
        load_shared(shared + kRecords + at * kScale, before[k]);
        before_index[k] = 0;
        if constexpr (kSplit) before_index[k] = load_shared(shared + kIndices + at);
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        wrong |= after(before[k], before_index[k], staged.word[first + k], staged.index[kSplit ? first + k : 0]);
        if constexpr (!kIndexed) wrong |= !staged_here(place, first_round + first + k) && !is_pad(staged.word[first + k]);
      }
      // Else the compiler puts the comparisons off and keeps their operands.
      int decided = wrong;
      asm volatile("" : "+r"(decided));
      wrong = decided != 0;
    }
    return wrong;
  }

  // ---- write ------------------------------------------------------------------------------------------------------------------------
  // kWhole: the tile is known to be full.

  template <bool kWhole>
  __device__ __forceinline__ bool written(const TilePlace& place, int round) const {
    return kWhole || staged_here(place, round);
  }

  __device__ __forceinline__ Key bits_of(const Word& word) const {
    const Code key = Record::key_of_word(word);
    return kExact ? arguments.order.from_ordered(static_cast<Key>(key)) : arguments.codec.bits(key);
  }

  // The compiler does not know that a pinned row lies in global memory, and would store to it by generic instructions.
  template <class Type>
  __device__ __forceinline__ static void store_global(Type* address, Type value) {
    if constexpr (kPinsRows && sizeof(Type) == 4)
      asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(static_cast<uint32_t>(value)) : "memory");
    else
      *address = value;
  }
  __device__ __forceinline__ static void store_global(uint2* address, uint2 value) {
    if constexpr (kPinsRows)
      asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(value.x), "r"(value.y) : "memory");
    else
      *address = value;
  }

  // The start of a row as one number, so that an address takes one instruction.
  template <class Type>
  __device__ __forceinline__ static Type* row_of(Type* rows, const TilePlace& place) {
    Type* row = rows + place.row_start;
    if constexpr (kPinsRows) asm("" : "+l"(row));
    return row;
  }

  template <bool kWhole, int kCount>
  __device__ __forceinline__ void store_records(const TilePlace& place, int first_round, const StagedGroup<kCount>& staged) const {
    void* records = arguments.records[role.target];
    if constexpr (Policy::kToPieces) {
      const PiecesInRow pieces = pieces_in_row(arguments, place.row_start);
      const uint64_t row = reinterpret_cast<uint64_t>(row_of(static_cast<uint2*>(records), place));
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (!written<kWhole>(place, first_round + k)) continue;
        store_global(reinterpret_cast<uint2*>(address_of_record<2>(arguments, pieces, row, staged.offset[k])), staged.word[k]);
      }
    } else if constexpr (kIndexed && !k64) {
      uint2* row = row_of(static_cast<uint2*>(records), place);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (!written<kWhole>(place, first_round + k)) continue;
        if constexpr (Record::kPacked)
          row[staged.offset[k]] = make_uint2(staged.index_of(k, place), Record::key_of_word(staged.word[k]));
        else
          store_global(row + staged.offset[k], staged.word[k]);
      }
    } else {
      Key* row = row_of(static_cast<Key*>(records), place);
      uint32_t* indices = row_of(arguments.record_indices[role.target], place);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (!written<kWhole>(place, first_round + k)) continue;
        row[staged.offset[k]] = static_cast<Key>(Record::key_of_word(staged.word[k]));
        if constexpr (kSplit) indices[staged.offset[k]] = staged.index[k];
      }
    }
  }

  template <class Index, bool kWhole, int kCount>
  __device__ __forceinline__ void store_indices(const TilePlace& place, int first_round, const StagedGroup<kCount>& staged) const {
    Index* row = row_of(static_cast<Index*>(arguments.indices_out), place);
    if constexpr (kMayBorrow && sizeof(Index) == 8) {
      const uint32_t borrowed_begin = borrowed_begin_in_row(arguments, place.row_start);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (written<kWhole>(place, first_round + k)) store_wide_index(row, staged.offset[k], borrowed_begin, staged.index_of(k, place));
      }
    } else {
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (written<kWhole>(place, first_round + k)) row[staged.offset[k]] = staged.index_of(k, place);
      }
    }
  }

  // A key of 64 bits whose low word was sorted. The high word is the same all over the row.
  __device__ __forceinline__ uint32_t high_word(const TilePlace& place) const {
    return arguments.keys_in[place.row_start * 2 + 1];
  }

  template <bool kWhole, int kCount>
  __device__ __forceinline__ void store_outputs(const TilePlace& place, int first_round, const StagedGroup<kCount>& staged) const {
    if (kOutputs == StepOutputs::kKeysAndInt64 || !kIndexed || arguments.keys_out != nullptr) {
      if constexpr (Policy::kKeyWords == 2) {
        const uint32_t high = high_word(place);
        uint2* row = row_of(reinterpret_cast<uint2*>(arguments.keys_out), place);
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
          if (written<kWhole>(place, first_round + k)) row[staged.offset[k]] = make_uint2(bits_of(staged.word[k]), high);
        }
      } else {
        Key* row = row_of(arguments.keys_out, place);
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
          if (written<kWhole>(place, first_round + k)) store_global(row + staged.offset[k], bits_of(staged.word[k]));
        }
      }
    }
    if constexpr (kIndexed) {
      if (kOutputs == StepOutputs::kKeysAndInt64 || arguments.index_bytes == 8)
        store_indices<int64_t, kWhole>(place, first_round, staged);
      else
        store_indices<uint32_t, kWhole>(place, first_round, staged);
    }
  }

  template <bool kWhole, int kCount>
  __device__ __forceinline__ void store_group(const TilePlace& place, int first_round, const StagedGroup<kCount>& staged) const {
    if constexpr (kOutputs == StepOutputs::kRecords)
      store_records<kWhole>(place, first_round, staged);
    else
      store_outputs<kWhole>(place, first_round, staged);
  }

  // Records from shared memory, one by one: slow, but it needs few registers.
  __device__ __forceinline__ void write_rounds(const TilePlace& place, int first_round, int end_round) const {
#pragma unroll 1
    for (int round = first_round; round < end_round; ++round) {
      StagedGroup<1> staged;
      const uint32_t i = opaque(thread) + round * kThreads;
      const uint32_t at = staged_place(i);
      load_shared(shared + kRecords + at * kScale, staged.word[0]);
      if constexpr (kSplit) staged.index[0] = load_shared(shared + kIndices + at);
      staged.offset[0] = load_shared(shared + kOffsets + view.offset(Record::key_of_word(staged.word[0]))) + i;
      store_group<false>(place, round, staged);
    }
  }

  // One group of staged records: read, verified, written. Returns whether the order is wrong somewhere.
  __device__ __forceinline__ bool write_group(const TilePlace& place, int first_round) const {
    StagedGroup<kGroup> staged;
    read_group(first_round, staged);
    bool wrong = false;
    if constexpr (!kExact) {
      if (kIndexed || role.step > 0 || !place.full()) wrong = verify_group(place, first_round, staged);
    }
    if constexpr (kPredicated) {
      store_group<false>(place, first_round, staged);
    } else {
      if (place.full())
        store_group<true>(place, first_round, staged);
      else
        write_rounds(place, first_round, first_round + kGroup);
    }
    return wrong;
  }

  // Exchanges neighbours until the tile is in order, then writes it again. Never seen to be needed outside tests; loops are kept rolled, or
  // their registers would be spilled in the main path.
  __device__ __forceinline__ void mend(const TilePlace& place) const {
    if (thread == 0) atomicAdd(control_word(arguments.control, offsetof(RadixControl, mended_tiles), Base::spacing()), 1u);
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
          if (!after(a, a_index, b, b_index) && !(!kIndexed && is_pad(a) && !is_pad(b))) continue;
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
    write_rounds(place, 0, kItems);
  }
};

}  // namespace gpusort
