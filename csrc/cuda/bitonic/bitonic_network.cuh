// Batcher's bitonic sorting network, run by one block with several pairs per thread in registers.
//
// Batcher, "Sorting networks and their applications" (1968), in the form whose comparators all point the same way: to merge two sorted
// halves of a span of k, compare i with k - 1 - i (the flip: the mirrored second half makes the sequence bitonic), then i with i + j for
// j = k/4, k/8, ..., 1. The lower place always keeps the smaller pair. So padding at the end of a row never moves, and a comparator whose
// upper place lies beyond the row can be left out: any length works, in shared memory and in global memory alike.
//
// Thread t of a span holds places t * kPairs .. t * kPairs + kPairs - 1. A comparator of distance d pairs registers (d < kPairs), lanes of
// a warp (d < 32 * kPairs: shuffles) or threads of the block (shared memory, the only steps with a barrier).
#pragma once

#include <cuda_runtime.h>

#include "../primitives/block_scan.cuh"
#include "code_position.h"

namespace gpusort {

// Pairs added to each row of the stage: with 2, neither the exchange (consecutive threads) nor the write-out (consecutive places, which are
// in all rows) meets a bank twice.
constexpr int kStagePadding = 2;

// 16 registers of pairs and 16 more during an exchange: what 1024 threads of one block can hold (64 registers each) without spilling.
template <class Pair>
constexpr int kPairsPerThread = 64 / sizeof(Pair);

__device__ __forceinline__ PackedPair shuffle_xor(PackedPair pair, unsigned mask) {
  return {static_cast<uint64_t>(__shfl_xor_sync(~0u, static_cast<unsigned long long>(pair.word), mask))};
}
__device__ __forceinline__ WidePair shuffle_xor(WidePair pair, unsigned mask) {
  return {static_cast<uint64_t>(__shfl_xor_sync(~0u, static_cast<unsigned long long>(pair.high), mask)),
          static_cast<uint64_t>(__shfl_xor_sync(~0u, static_cast<unsigned long long>(pair.low), mask))};
}

template <class Pair>
__device__ __forceinline__ void compare_exchange(Pair& lower, Pair& upper) {
  const bool swap = upper.less(lower);
  const Pair smaller = swap ? upper : lower;
  upper = swap ? lower : upper;
  lower = smaller;
}

// Half cleaners of distance kSpan / 2, ..., 1 on a thread's own pairs.
template <class Pair, int kPairs>
__device__ __forceinline__ void clean_registers(Pair (&pairs)[kPairs]) {
#pragma unroll
  for (int distance = kPairs / 2; distance > 0; distance /= 2) {
#pragma unroll
    for (int item = 0; item < kPairs; ++item) {
      if ((item & distance) == 0) compare_exchange(pairs[item], pairs[item + distance]);
    }
  }
}

template <class Pair, int kPairs>
__device__ __forceinline__ void sort_registers(Pair (&pairs)[kPairs]) {
#pragma unroll
  for (int span = 2; span <= kPairs; span *= 2) {
#pragma unroll
    for (int item = 0; item < kPairs; ++item) {
      if ((item & (span / 2)) == 0) compare_exchange(pairs[item], pairs[item ^ (span - 1)]);
    }
#pragma unroll
    for (int distance = span / 4; distance > 0; distance /= 2) {
#pragma unroll
      for (int item = 0; item < kPairs; ++item) {
        if ((item & distance) == 0) compare_exchange(pairs[item], pairs[item + distance]);
      }
    }
  }
}

// One network step between threads t and t ^ mask. kFlip: mask is 2^m - 1 and the partner's pairs are taken in reverse; else mask is 2^m.
// Masks of 32 and more need the whole block; its threads then all call with the same mask.
template <bool kFlip, class Pair, int kPairs>
__device__ __forceinline__ void exchange(Pair (&pairs)[kPairs], unsigned mask, Pair* stage) {
  Pair other[kPairs];
  if (mask < kWarpSize) {
#pragma unroll
    for (int item = 0; item < kPairs; ++item) other[item] = shuffle_xor(pairs[kFlip ? kPairs - 1 - item : item], mask);
  } else {
    const int row = blockDim.x + kStagePadding;
    const unsigned partner = threadIdx.x ^ mask;
#pragma unroll
    for (int item = 0; item < kPairs; ++item) stage[item * row + threadIdx.x] = pairs[item];
    __syncthreads();
#pragma unroll
    for (int item = 0; item < kPairs; ++item) other[item] = stage[(kFlip ? kPairs - 1 - item : item) * row + partner];
    __syncthreads();
  }
  const bool keep_smaller = threadIdx.x < (threadIdx.x ^ mask);
#pragma unroll
  for (int item = 0; item < kPairs; ++item) {
    if (other[item].less(pairs[item]) == keep_smaller) pairs[item] = other[item];
  }
}

// All half cleaners of distance `distance`, distance / 2, ..., 1.
template <class Pair, int kPairs>
__device__ __forceinline__ void clean_span(Pair (&pairs)[kPairs], int distance, Pair* stage) {
  for (; distance >= kPairs; distance /= 2) exchange<false>(pairs, distance / kPairs, stage);
  clean_registers(pairs);
}

// Sorts every span of `span` places (a power of two, at least kPairs) of the block.
template <class Pair, int kPairs>
__device__ __forceinline__ void sort_spans(Pair (&pairs)[kPairs], int span, Pair* stage) {
  sort_registers(pairs);
  for (int merged = 2 * kPairs; merged <= span; merged *= 2) {
    exchange<true>(pairs, merged / kPairs - 1, stage);
    clean_span(pairs, merged / 4, stage);
  }
}

}  // namespace gpusort
