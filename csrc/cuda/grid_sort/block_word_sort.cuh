// Sorts a block's words: every warp in its registers, then merges of neighbouring runs in shared memory until one is left.
//
// Merge path (Odeh, Green, Mwassi, Shmueli, Birk, "Merge path", 2012): each thread finds by bisection what its kItems outputs are made of.
// Its words of the left run, rising, then those of the right run, falling, are a bitonic sequence, which a half cleaner network sorts in
// registers: no step depends on data but the bisection. Steps: log2(threads / 32) merges, each a bisection and two passes over shared
// memory.
#pragma once

#include <cstdint>

#include "grid_words.cuh"

namespace gpusort {

template <class Word, int kItems>
__device__ __forceinline__ void store_own_words(const Word (&own)[kItems], const SharedWords<Word>& shared) {
  __syncthreads();
  const int first = static_cast<int>(threadIdx.x) * kItems;
#pragma unroll
  for (int e = 0; e < kItems; ++e) shared.set(first + e, own[e]);
  __syncthreads();
}

// Merges runs of `sorted` threads' words each in `shared`; the thread's part of the result is left in `own`. `splits`: threads / 32 + 1.
template <class Word, int kItems>
__device__ __forceinline__ void merge_neighbour_runs(Word (&own)[kItems], const SharedWords<Word>& shared, int sorted, int* splits) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int left = (thread & ~(2 * sorted - 1)) * kItems, run = sorted * kItems;
  const int diagonal = thread * kItems - left;
  int low = max(0, diagonal - run), high = min(diagonal, run);
  while (low < high) {
    const int middle = (low + high) >> 1;
    if (shared.get(left + run + diagonal - 1 - middle) < shared.get(left + middle)) {
      high = middle;
    } else {
      low = middle + 1;
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
  for (int e = 0; e < kItems; ++e) own[e] = shared.get(e < from_left ? rising + e : falling - e);
  bitonic_sort_run<kItems>(own);
}

// All threads (kThreads, a power of two). Afterwards shared.get(p) is the word of rank p, for every thread.
template <int kThreads, class Word, int kItems>
__device__ __forceinline__ void block_sort_words(Word (&own)[kItems], const SharedWords<Word>& shared, int* splits) {
  lanes_sort<32>(own, static_cast<int>(threadIdx.x) % 32);
#pragma unroll 1
  for (int sorted = 32; sorted < kThreads; sorted *= 2) {
    store_own_words(own, shared);
    merge_neighbour_runs(own, shared, sorted, splits);
  }
  store_own_words(own, shared);
}

}  // namespace gpusort
