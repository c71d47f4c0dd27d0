// Sorts a block's words, whose values all differ (or are interchangeable): every warp in its registers, then merges of neighbouring runs in
// shared memory until one is left. The words are of 32 or 64 bits; where they lie in shared memory is the business of ShortWords
// (packed_words.cuh) and SharedWords (grid_words.cuh).
//
// Merge path (Odeh, Green, Mwassi, Shmueli, Birk, "Merge path", 2012): each thread finds by bisection what its kItems outputs are made of.
// Its words of the left run, rising, then those of the right run, falling, are a bitonic sequence, which a half cleaner network sorts in
// registers: no step depends on data but the bisection. Steps: log2(threads / 32) merges, each a bisection and two passes over shared
// memory.
#pragma once

#include <cstdint>

#include "../rows/lane_sort.cuh"

namespace gpusort {

// A block's own variables for sorts of its words.
template <class Code>
struct BlockSortNotes {
  Code lowest[32];  // of each warp
  Code highest[32];
  int splits[33];  // where each warp's part of a merge begins
};

template <class Words, class Word, int kItems>
__device__ __forceinline__ void store_own_words(const Word (&own)[kItems], const Words& words) {
  __syncthreads();
  words.store_run(static_cast<int>(threadIdx.x) * kItems, own);
  __syncthreads();
}

// Merges runs of `sorted` threads' words each in `words`; the thread's part of the result is left in `own`. `splits`: threads / 32 + 1.
template <class Words, class Word, int kItems>
__device__ __forceinline__ void merge_neighbour_runs(Word (&own)[kItems], const Words& words, int sorted, int* splits) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int left = (thread & ~(2 * sorted - 1)) * kItems, run = sorted * kItems;
  const int diagonal = thread * kItems - left;
  int low = max(0, diagonal - run), high = min(diagonal, run);
  while (low < high) {
    const int middle = (low + high) >> 1;
    if (words.get(left + middle) <= words.get(left + run + diagonal - 1 - middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  // The next thread's split is where this one's words of the left run end.
  if (lane == 0) splits[warp] = low;
  __syncthreads();
  int next = __shfl_down_sync(kWholeWarp, low, 1);
  if (lane == 31) next = splits[warp + 1];
  if (diagonal + kItems == 2 * run) next = run;
  const int from_left = next - low, rising = left + low, falling = left + run + diagonal - low + kItems - 1;
#pragma unroll
  for (int e = 0; e < kItems; ++e) own[e] = words.get(e < from_left ? rising + e : falling - e);
  bitonic_sort_run<kItems>(own);
}

// All threads (kThreads, a power of two). Afterwards words.get(p) is the word of rank p, for every thread, and a thread still holds its
// own.
template <int kThreads, class Words, class Word, int kItems>
__device__ __forceinline__ void block_sort_words(Word (&own)[kItems], const Words& words, int* splits) {
  lanes_sort<32>(own, static_cast<int>(threadIdx.x) % 32);
#pragma unroll 1
  for (int sorted = 32; sorted < kThreads; sorted *= 2) {
    store_own_words(own, words);
    merge_neighbour_runs(own, words, sorted, splits);
  }
  store_own_words(own, words);
}

}  // namespace gpusort
