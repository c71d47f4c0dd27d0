// The second half of placed_tile.cuh: the staged tile is verified and written, and the next one loaded and counted between the stores.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "placed_tile.cuh"

namespace gpusort {

template <class Policy, StepOutputs kOutputs>
struct PlacedBlock : PlacedTile<Policy, kOutputs> {
  using Base = PlacedTile<Policy, kOutputs>;
  using Base::after;
  using Base::arguments;
  using Base::Base;
  using Base::bits_of;
  using Base::choose_mode;
  using Base::clear_histogram;
  using Base::clear_next_table;
  using Base::clear_words;
  using Base::find_offsets;
  using Base::high_word;
  using Base::is_pad;
  using Base::k64;
  using Base::kFromKeys;
  using Base::kGroup;
  using Base::kGroups;
  using Base::kIndexed;
  using Base::kIndices;
  using Base::kItems;
  using Base::kMayBorrow;
  using Base::kNextTile;
  using Base::kOffsets;
  using Base::kPadShift;
  using Base::kRecords;
  using Base::kSplit;
  using Base::kThreads;
  using Base::kUnit;
  using Base::kWordBytes;
  using Base::load_and_count;
  using Base::load_full_group;
  using Base::mend;
  using Base::place_counts;
  using Base::place_of;
  using Base::prefetch;
  using Base::read_from_one_piece;
  using Base::role;
  using Base::scatter_records;
  using Base::shared;
  using Base::source_of;
  using Base::spacing;
  using Base::staged_place;
  using Base::sum_in_warp;
  using Base::sum_over_warps;
  using Base::take_counts;
  using Base::thread;
  using Base::view;
  using Base::vote_on_runs;
  using Base::write_rounds;
  using typename Base::Code;
  using typename Base::Counts;
  using typename Base::Key;
  using typename Base::Record;
  using typename Base::Source;
  using typename Base::TilePlace;
  using typename Base::Word;

  static constexpr int kCountedLater = kGroups < 8 ? kGroups : 8;  // groups between the loads of keys and their count
  // What registers allow. H200, 2^26 ids below 64 with index, 8 bytes: 563 us by 8 at once, 597 by 4.
  static constexpr int kBatchItems = !kIndexed || (kFromKeys && Policy::kKeyWords == 2) ? kGroup
                                     : kSplit && kOutputs != StepOutputs::kRecords      ? 2
                                                                                        : 4;
  static constexpr uint32_t kRoundItems = kThreads + (kThreads >> kPadShift);
  static_assert(kThreads % (1 << kPadShift) == 0, "rounds are alike");
  static_assert(kThreads >= kMostTailRecords, "they lie in the last round");
  // Keys alone are in order after the first step, whatever their order inside the bins.
  static constexpr bool kVerified = kIndexed || !kFromKeys;
  static constexpr bool kToRecords = kOutputs == StepOutputs::kRecords;
  static constexpr bool kWithHighWord = !kToRecords && Policy::kKeyWords == 2;

  // ---- global memory ----------------------------------------------------------------------------------------------------------------

  struct Target {
    uint64_t keys;  // or records
    uint64_t indices;
    uint32_t high;            // kWithHighWord
    uint32_t borrowed_begin;  // kMayBorrow
    PiecesInRow pieces;       // Policy::kToPieces
  };
  static constexpr bool kRecordOfPair = kToRecords && Record::kPair;
  using Stored = std::conditional_t<kWithHighWord || k64 || kRecordOfPair, uint2, uint32_t>;
  static constexpr uint32_t kStoredBytes = sizeof(Stored) == 8 ? 8 : sizeof(Key);

  __device__ __forceinline__ Target target_of(const TilePlace& place) const {
    Target target = {};
    void* keys = kToRecords ? arguments.records[role.target] : arguments.keys_out;
    target.keys = reinterpret_cast<uint64_t>(keys) + place.row_start * kStoredBytes;
    asm("" : "+l"(target.keys));
    if constexpr (kToRecords) {
      if constexpr (kSplit) target.indices = reinterpret_cast<uint64_t>(arguments.record_indices[role.target] + place.row_start);
    } else if constexpr (kIndexed) {
      const int bytes = kOutputs == StepOutputs::kKeysAndInt64 ? 8 : arguments.index_bytes;
      target.indices = reinterpret_cast<uint64_t>(arguments.indices_out) + place.row_start * bytes;
    }
    asm("" : "+l"(target.indices));
    if constexpr (kWithHighWord) target.high = high_word(place);
    if constexpr (kMayBorrow) target.borrowed_begin = borrowed_begin_in_row(arguments, place.row_start);
    if constexpr (Policy::kToPieces) target.pieces = pieces_in_row(arguments, place.row_start);
    return target;
  }

  __device__ __forceinline__ static void store_word(uint64_t address, uint32_t value) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
  }
  __device__ __forceinline__ static void store_words(uint64_t address, uint2 value) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(value.x), "r"(value.y) : "memory");
  }

  __device__ __forceinline__ static void store_record(uint64_t address, Stored value) {
    if constexpr (kStoredBytes == 8)
      store_words(address, value);
    else if constexpr (kStoredBytes == 2)
      asm volatile("st.global.u16 [%0], %1;" ::"l"(address), "h"(static_cast<uint16_t>(value)) : "memory");
    else
      store_word(address, value);
  }

  __device__ __forceinline__ Stored stored(const Word& word, uint32_t high) const {
    if constexpr (kToRecords)
      return word;
    else if constexpr (kWithHighWord)
      return make_uint2(bits_of(word), high);
    else if constexpr (k64)
      return Record::split(bits_of(word));
    else
      return bits_of(word);
  }

  __device__ __forceinline__ void store_index(const Target& target, uint32_t position, uint32_t index) const {
    if constexpr (kToRecords) {
      store_word(target.indices + static_cast<uint64_t>(position) * 4, index);
    } else if constexpr (kMayBorrow) {
      store_wide_index(reinterpret_cast<int64_t*>(target.indices), position, target.borrowed_begin, index);
    } else {
      if (kOutputs == StepOutputs::kKeysAndInt64 || arguments.index_bytes == 8)
        store_words(target.indices + static_cast<uint64_t>(position) * 8, make_uint2(index, 0));
      else
        store_word(target.indices + static_cast<uint64_t>(position) * 4, index);
    }
  }

  // ---- verify -----------------------------------------------------------------------------------------------------------------------

  // Not zero: a must stand after b. As Base::after, for split records in one chain of subtractions.
  __device__ __forceinline__ auto is_after(const Word& a, uint32_t a_index, const Word& b, uint32_t b_index) const {
    if constexpr (kSplit) {
      const Code a_bits = view.sorted_bits(Record::key_of_word(a)), b_bits = view.sorted_bits(Record::key_of_word(b));
      const uint2 a_words = Record::split(a_bits), b_words = Record::split(b_bits);
      uint32_t borrow;
      asm("{\n"
          ".reg .u32 t;\n"
          "sub.cc.u32 t, %1, %2;\n"
          "subc.cc.u32 t, %3, %4;\n"
          "subc.cc.u32 t, %5, %6;\n"
          "subc.u32 %0, 0, 0;\n"
          "}"
          : "=r"(borrow)
          : "r"(b_index), "r"(a_index), "r"(b_words.x), "r"(a_words.x), "r"(b_words.y), "r"(a_words.y));
      return borrow;
    } else {
      return after(a, a_index, b, b_index);
    }
  }

  // ---- write ------------------------------------------------------------------------------------------------------------------------

  // What the thread needs to find its staged records.
  struct Staged {
    uint32_t words, words_before;      // addresses of its first record, and of the one before it
    uint32_t indices, indices_before;  // kSplit
  };
  __device__ __forceinline__ Staged staged_by_thread() const {
    const int before = static_cast<int>(thread) - 1;
    const uint32_t padded = thread + (thread >> kPadShift), padded_before = static_cast<uint32_t>(before + (before >> kPadShift));
    const uint32_t words = shared + kRecords, indices = shared + kIndices;
    return {words + padded * kWordBytes, words + padded_before * kWordBytes, indices + padded * 4, indices + padded_before * 4};
  }

  // kBatch staged records of this thread. Not zero: the order is wrong somewhere.
  template <int kBatch>
  __device__ __forceinline__ uint32_t write_batch(const Staged& staged, const Target& target, bool keys_wanted, int first_round) const {
    Word word[kBatch];
    uint32_t index[kBatch], offset[kBatch], wrong = 0;
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const uint32_t round = (first_round + k) * kRoundItems;
      load_shared(staged.words + round * kWordBytes, word[k]);
      index[k] = 0;
      if constexpr (kSplit) index[k] = load_shared(staged.indices + round * 4);
      if constexpr (Record::kPair) index[k] = word[k].x;
    }
    if constexpr (kVerified) {
      Word word_before[kBatch];
      uint32_t index_before[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const uint32_t round = (first_round + k) * kRoundItems;
        load_shared(staged.words_before + round * kWordBytes, word_before[k]);
        index_before[k] = 0;
        if constexpr (kSplit) index_before[k] = load_shared(staged.indices_before + round * 4);
      }
      if constexpr (!kSplit) load_offsets(word, offset);
      std::conditional_t<kSplit, uint32_t, bool> any = 0;
#pragma unroll
      for (int k = 0; k < kBatch; ++k) any |= is_after(word_before[k], index_before[k], word[k], index[k]);
      wrong = any;
      asm volatile("" : "+r"(wrong));                    // else the compiler puts the comparisons off and keeps their operands
      if constexpr (kSplit) load_offsets(word, offset);  // registers are short
    } else {
      load_offsets(word, offset);
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const uint32_t position = offset[k] + thread + (first_round + k) * kThreads;
      if constexpr (Policy::kToPieces)
        store_record(first_round + k + 1 < kItems ? address_of_record<1>(arguments, target.pieces, target.keys, position)
                                                  : address_of_record<2>(arguments, target.pieces, target.keys, position),
                     stored(word[k], target.high));
      else if (keys_wanted)
        store_record(target.keys + static_cast<uint64_t>(position) * kStoredBytes, stored(word[k], target.high));
      if constexpr (kIndexed && (!kToRecords || kSplit)) store_index(target, position, index[k]);
    }
    return wrong;
  }

  // What is added to a place in the tile to get the position in the row.
  template <int kBatch>
  __device__ __forceinline__ void load_offsets(const Word (&word)[kBatch], uint32_t (&offset)[kBatch]) const {
#pragma unroll
    for (int k = 0; k < kBatch; ++k) offset[k] = load_shared((shared | view.offset(Record::key_of_word(word[k]))) + kOffsets);
  }

  // A full tile; if `load`, the keys of the next one are loaded and counted meanwhile. Returns whether the order is wrong somewhere.
  __device__ __forceinline__ bool write_full(const TilePlace& place, const Source& source, bool load) {
    const Target target = target_of(place);
    const bool keys_wanted = kToRecords || !kIndexed || kOutputs == StepOutputs::kKeysAndInt64 || arguments.keys_out != nullptr;
    const Staged staged = staged_by_thread();
    uint32_t wrong = 0;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      if (load) load_full_group(source, group);
#pragma unroll
      for (int first = 0; first < kGroup; first += kBatchItems)
        wrong |= write_batch<kBatchItems>(staged, target, keys_wanted, group * kGroup + first);
      if (group >= kCountedLater && load) this->template count_group<kFromKeys>(group - kCountedLater);
    }
    if (load) {
#pragma unroll
      for (int group = kGroups - kCountedLater; group < kGroups; ++group) this->template count_group<kFromKeys>(group);
      vote_on_runs();
    }
    return wrong != 0;
  }

  // One record at a time: few tiles are ragged.
  __device__ __forceinline__ bool write_ragged(const TilePlace& place) const {
    bool wrong = false;
#pragma unroll 1
    for (int round = 0; round < kItems; ++round) {
      const uint32_t i = thread + round * kThreads;
      const uint32_t at = staged_place(i), at_before = staged_place(i == 0 ? 0 : i - 1);
      Word word, word_before;
      load_shared(shared + kRecords + at * (kWordBytes / kUnit), word);
      load_shared(shared + kRecords + at_before * (kWordBytes / kUnit), word_before);
      uint32_t index = 0, index_before = 0;
      if constexpr (kSplit) {
        index = load_shared(shared + kIndices + at);
        index_before = load_shared(shared + kIndices + at_before);
      }
      wrong |= after(word_before, index_before, word, index);
      if constexpr (!kIndexed) wrong |= i >= place.items && !is_pad(word);
    }
    write_rounds(place, 0, kItems);
    return wrong;
  }

  // Returns how many tiles the block has written.
  __device__ __forceinline__ uint32_t run() {
    uint32_t* ticket = control_word(arguments.control, offsetof(RadixControl, tickets) + role.step * 4, spacing());
    uint32_t written = 0;
    if (thread == kThreads - 1) store_shared(shared + kNextTile, atomicAdd(ticket, 1u));
    clear_words();
    __syncthreads();
    uint32_t tile = warp_uniform(load_shared(shared + kNextTile));
    if (tile >= arguments.tiles) return 0;
    clear_histogram();
    load_and_count(place_of(tile));
    __syncthreads();
    for (;;) {  // the tile is loaded, the counts are complete
      const TilePlace place = place_of(tile);
      uint32_t next_tile = 0;
      if (thread == kThreads - 1) next_tile = atomicAdd(ticket, 1u);
      clear_next_table(tile);
      uint32_t* word = arguments.look_back[role.step & 1] + (static_cast<uint64_t>(tile) * kRadixBins + thread) * spacing();
      uint32_t total = 0, start = 0;
      Counts counts;
      if (thread < kRadixBins) {
        total = take_counts(place, word, counts);
        start = sum_in_warp(total);
      }
      __syncthreads();
      if (thread < kRadixBins) {
        start = sum_over_warps(start) - total;
        place_counts(start, counts);
      }
      bool one_digit = false;
      if (thread == kThreads - 1) one_digit = choose_mode();
      __syncthreads();  // places in the tile are known
      if (thread == kThreads - 1) {
        store_shared(shared + kNextTile, next_tile);
        if constexpr (Policy::kShape.prefetch) {
          if (!one_digit && next_tile < arguments.tiles) prefetch(next_tile);
        }
      }
      scatter_records(place);
      __syncwarp();
      clear_histogram();
      find_offsets(place, tile, word, total * kUnit, start * kUnit);
      __syncthreads();  // records and offsets are in place
      tile = warp_uniform(load_shared(shared + kNextTile));
      const bool more = tile < arguments.tiles;
      const TilePlace next = place_of(more ? tile : 0);
      const bool load = more && next.full() && place.full() && read_from_one_piece(next);
      const bool wrong = place.full() ? write_full(place, source_of(next), load) : write_ragged(place);
      if (more && !load) load_and_count(next);
      if (__syncthreads_or(wrong)) mend(place);
      ++written;
      if (!more) return written;
    }
  }
};

}  // namespace gpusort
