// A set of patterns of 16 bits in shared memory: a bit for each, and how many there are before each word of bits.
#pragma once

#include <cstdint>

#include "../../plan/half_sort_plan.h"
#include "../primitives/shared_memory.cuh"
#include "shared_bytes.cuh"

namespace gpusort {

__device__ __forceinline__ void or_shared(uint32_t address, uint32_t bits) {
  asm volatile("red.shared.or.b32 [%0], %1;" ::"r"(address), "r"(bits) : "memory");
}

struct PatternSet {
  static constexpr uint32_t kBytes = kPatternWords * 5;

  const uint32_t bits;  // shared addresses
  const uint32_t before;

  __device__ __forceinline__ explicit PatternSet(uint32_t address) : bits(address), before(address + kPatternWords * 4) {}

  // The word that holds the bit of a pattern.
  __device__ __forceinline__ uint32_t word_of(uint32_t pattern) const { return load_shared(bits + (pattern >> 5) * 4); }
  __device__ __forceinline__ static bool has(uint32_t word, uint32_t pattern) { return (word >> (pattern & 31) & 1) != 0; }

  // How many patterns of the set are smaller: the number of this one. Needs a set of at most 256.
  __device__ __forceinline__ uint32_t number_of(uint32_t word, uint32_t pattern) const {
    return load_shared_8(before + (pattern >> 5)) + __popc(word & ~(~0u << (pattern & 31)));
  }

  __device__ __forceinline__ void add(uint32_t pattern) const {
    if (!has(word_of(pattern), pattern)) or_shared(bits + (pattern >> 5) * 4, 1u << (pattern & 31));
  }

  // Fills `before` and returns how many patterns there are. `sums`: a word for each warp. All threads call, when the bits are there.
  template <int kThreads>
  __device__ __forceinline__ uint32_t count(uint32_t sums) const {
    constexpr int kWords = kPatternWords / kThreads;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t counts[kWords], own = 0;
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      counts[k] = __popc(load_shared(bits + (threadIdx.x * kWords + k) * 4));
      own += counts[k];
    }
    uint32_t inclusive = own;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, inclusive, distance);
      if (lane >= distance) inclusive += other;
    }
    if (lane == 31) store_shared(sums + warp * 4, inclusive);
    __syncthreads();
    uint32_t all = 0, next = inclusive - own;
#pragma unroll
    for (uint32_t k = 0; k < kThreads / 32; ++k) {
      const uint32_t other = load_shared(sums + k * 4);
      if (k < warp) next += other;
      all += other;
    }
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      store_shared_8(before + threadIdx.x * kWords + k, next);
      next += counts[k];
    }
    __syncthreads();
    return all;
  }
};

}  // namespace gpusort
