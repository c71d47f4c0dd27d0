// Sorts a block's exact words by 32-bit stand-ins.
//
// The exact words (code, index) wait in shared memory, in places that keep the input order; what is sorted is
//
//   short word = leading bits of (code - lowest code of the block) << place bits | place
//
// so that a compare-exchange is two instructions and a move one register. 19 bits and more are left for the code, of the range that the
// block's keys span; different keys that share them are put right as in the row sorts (../rows/tie_runs.cuh). All words are read through
// their short ones afterwards.
#pragma once

#include <cstdint>

#include "../../core/word_map.h"
#include "../rows/tie_runs.cuh"
#include "../rows/warp_reduce.cuh"
#include "block_word_sort.cuh"
#include "grid_words.cuh"

namespace gpusort {

// The short words in shared memory, padded against bank conflicts.
struct ShortWords {
  uint32_t* words;

  __device__ __forceinline__ uint32_t get(int place) const { return words[padded_position(place)]; }
  // `first` is a multiple of kItems.
  template <int kItems>
  static __device__ __forceinline__ int position_in_run(int first, int e) {
    return 32 % kItems == 0 ? padded_position(first) + e : padded_position(first + e);
  }
  template <int kItems>
  __device__ __forceinline__ void store_run(int first, const uint32_t (&run)[kItems]) const {
#pragma unroll
    for (int e = 0; e < kItems; ++e) words[position_in_run<kItems>(first, e)] = run[e];
  }
  template <int kItems>
  __device__ __forceinline__ void load_run(int first, uint32_t (&run)[kItems]) const {
#pragma unroll
    for (int e = 0; e < kItems; ++e) run[e] = words[position_in_run<kItems>(first, e)];
  }
};

// The rare rest, out of line so that it takes no registers from the common path. True when there are new short words to sort.
template <int kItems>
__device__ __noinline__ bool mend_packed_words(uint32_t* shorts, const uint64_t* keys, void* long_runs, int count, int place_bits,
                                               uint32_t ties) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x), first_place = thread * kItems;
  const SortedRow<uint64_t> row{shorts, 0, keys, count, place_bits, KeyOrder<uint64_t>()};
  const RunEdges edges = find_run_edges<kItems>(row, first_place, ties);
  __syncthreads();
  if (!__syncthreads_or(mend_runs<kItems>(row, first_place, ties, edges))) return false;
  const LongRuns<uint64_t, kItems> runs(long_runs, threads * kItems);
  spread_long_runs<kItems>(row, thread, threads, ties, edges, runs, [] { __syncthreads(); });
  return true;
}

template <class Word>
struct PackedWords {
  using Traits = WordTraits<Word>;
  using Code = typename Traits::Code;
  using Notes = BlockSortNotes<Code>;

  HeldWords<Word> held;
  ShortWords shorts;
  void* long_runs;

  // `storage` has grid_packed_bytes() for `places`.
  __device__ __forceinline__ PackedWords(char* storage, int places)
      : held(storage, places),
        shorts{reinterpret_cast<uint32_t*>(storage + grid_held_bytes(Traits::kWide, places))},
        long_runs(storage + grid_held_bytes(Traits::kWide, places) + grid_short_bytes(places)) {}

  static __device__ __forceinline__ constexpr int place_bits(int places) {
    int bits = 0;
    while ((1 << bits) < places) ++bits;
    return bits;
  }

  // Sorts `count` words: own[e] is that of place e * kThreads + thread; from `count` places on, any of them. Called by all
  // threads, which have met since the last words were read.
  template <int kThreads, int kItems>
  __device__ __forceinline__ void sort(Notes& notes, Word (&own)[kItems], int count) const {
    constexpr int kPlaceBits = place_bits(kThreads * kItems);
    constexpr uint32_t kMask = (1u << kPlaceBits) - 1;
    const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
    Code codes[kItems];
    Code lowest = Traits::code(own[0]), highest = lowest;
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      codes[e] = Traits::code(own[e]);
      lowest = min(lowest, codes[e]);
      highest = max(highest, codes[e]);
      held.set(e * kThreads + thread, own[e]);
    }
    lowest = warp_min(lowest);
    highest = warp_max(highest);
    if (lane == 0) {
      notes.lowest[warp] = lowest;
      notes.highest[warp] = highest;
    }
    __syncthreads();
    const CodeMap<Code> map(warp_min(notes.lowest[lane % (kThreads / 32)]), warp_max(notes.highest[lane % (kThreads / 32)]), false);
    uint32_t short_words[kItems];
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      const int place = e * kThreads + thread;
      short_words[e] = place < count ? (map(codes[e]) & ~kMask) | place : ~0u;
    }
    while (true) {
      block_sort_words<kThreads>(short_words, shorts, notes.splits);
      const int first_place = thread * kItems, pairs = count - 1 - first_place;
      const uint32_t next = pairs >= kItems ? shorts.get(first_place + kItems) : 0;
      const uint32_t ties = find_ties(short_words, next, pairs, kPlaceBits);
      if (!__syncthreads_or(ties != 0)) return;
      if (!mend_packed_words<kItems>(shorts.words, held.keys(), long_runs, count, kPlaceBits, ties)) break;
      shorts.load_run(first_place, short_words);
    }
    __syncthreads();
  }

  // The word of a rank after a sort of kPlaces places.
  template <int kPlaces>
  __device__ __forceinline__ Word word_of_rank(int rank) const {
    constexpr uint32_t kMask = (1u << place_bits(kPlaces)) - 1;
    return held.get(static_cast<int>(shorts.get(rank) & kMask));
  }
};

}  // namespace gpusort
