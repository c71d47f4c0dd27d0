// Counts the patterns of 16-bit keys: the first kernel of counting_sort_16.cu.
//
// A block counts its share in shared memory, two 16-bit counters to a word, and adds them up in global memory at the end.
//
// Counters of 16 bits do not overflow, whatever the keys are: between two barriers a block counts at most 2^15 keys, and the thread that
// makes a counter reach 2^15 moves as much to global memory before the next barrier. So a counter is below 2^15 at every barrier and below
// 2^16 between them.
//
// Vectors that hold zeros or NaNs of floats are listed on the way, until there are too many. To find out whether one does costs one
// instruction for two keys, and none of the integer units, which have enough to do: in the arithmetic of their own type, infinity times
// keys stays infinite unless one of them is zero or no number.
#pragma once

#include <cuda_runtime.h>

#include "../primitives/shared_memory.cuh"
#include "counting_arguments.h"

namespace gpusort {

constexpr uint32_t kCounterWords = kPatterns / 2;
constexpr uint32_t kTopOfCounter = 1 << 15;
static_assert(kCountTileVectors * kKeysPerVector <= kTopOfCounter, "see the file's header");
// Of 32 keys at least so many are equal to the first, or to the first that differs from it: then atomics on one counter, which are served
// one lane at a time, cost more than ballots.
constexpr int kManyEqual = 10;

struct CountArguments {
  KeyShares shares;
  uint32_t* counts = nullptr;  // by pattern, zeroed
  ClassFindings findings;
};

// Counter of a pattern: patterns that differ by 2^15 share a word. The low five bits are mixed with the next, or keys whose low bits are
// clear, as small numbers in floating point are, would all meet in one bank.
__device__ __forceinline__ uint32_t counter_word(uint32_t pattern) {
  const uint32_t word = pattern & (kCounterWords - 1);
  return word ^ (word >> 5 & 31);
}
__device__ __forceinline__ uint32_t pattern_of_word(uint32_t word) {
  return word ^ (word >> 5 & 31);
}

// What the keys are, as far as zeros and NaNs are concerned.
enum class KeyFormat { kInteger, kFloat16, kBfloat16 };

// Two infinities.
template <KeyFormat kFormat>
constexpr uint32_t kInfinities = kFormat == KeyFormat::kFloat16 ? 0x7c007c00 : 0x7f807f80;

template <KeyFormat kFormat>
__device__ __forceinline__ void multiply(uint32_t& product, uint32_t two) {
  if constexpr (kFormat == KeyFormat::kFloat16)
    asm("mul.f16x2 %0, %0, %1;" : "+r"(product) : "r"(two));
  else  // minus zero changes no infinity
    asm("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(product) : "r"(two), "r"(0x80008000));
}

// Are there zeros or NaNs? One product after the other: four side by side were no faster (H200).
template <KeyFormat kFormat, int kVectors>
__device__ __forceinline__ bool has_special(const uint4 (&vectors)[kVectors]) {
  uint32_t product = kInfinities<kFormat>;
#pragma unroll
  for (const uint4& vector : vectors) {
    multiply<kFormat>(product, vector.x);
    multiply<kFormat>(product, vector.y);
    multiply<kFormat>(product, vector.z);
    multiply<kFormat>(product, vector.w);
  }
  return (product & 0x7fff7fff) != kInfinities<kFormat>;
}

// In shared memory: how many vectors were to be listed, and how many zeros and NaNs have left the counters.
struct ClassWords {
  uint32_t listed;
  uint32_t moved[2];
};

template <KeyFormat kFormat>
struct KeyCounters {
  static constexpr bool kFloats = kFormat != KeyFormat::kInteger;

  const CountArguments& arguments;
  uint32_t shared;  // address of the counters
  ClassWords& classes;

  // The counters that `increment` makes reach their top, if any, as the bit that is set by it.
  __device__ __forceinline__ static uint32_t reached_top(uint32_t before, uint32_t increment) {
    return (before + increment) & ~before & (kTopOfCounter << 16 | kTopOfCounter);
  }

  __device__ __forceinline__ uint32_t address(uint32_t pattern) const { return shared + counter_word(pattern) * 4; }
  __device__ __forceinline__ static uint32_t increment(uint32_t pattern) { return 1u << (pattern >> 11 & 16); }
  // Zero, or no number.
  __device__ __forceinline__ bool special(uint32_t pattern) const { return (pattern & 0x7fff) - 1 >= arguments.findings.infinity; }

  __device__ __forceinline__ void move_top(uint32_t pattern) const {
    add_shared(address(pattern), 0u - kTopOfCounter * increment(pattern));
    atomicAdd(arguments.counts + pattern, kTopOfCounter);
    if (kFloats && special(pattern)) atomicAdd(&classes.moved[(pattern & 0x7fff) == 0 ? 0 : 1], kTopOfCounter);
  }

  // One lane for `count` lanes.
  __device__ __forceinline__ void add(uint32_t pattern, uint32_t count) const {
    const uint32_t step = increment(pattern) * count;
    if (reached_top(fetch_add_shared(address(pattern), step), step) != 0) move_top(pattern);
  }

  __device__ __forceinline__ static uint32_t pattern(const uint4& vector, int i) {
    const uint32_t word = i < 2 ? vector.x : i < 4 ? vector.y : i < 6 ? vector.z : vector.w;
    return i % 2 == 0 ? word & 0xffff : word >> 16;
  }

  // Each lane its own keys.
  __device__ __forceinline__ void add_vector(const uint4& vector) const {
    uint32_t top[kKeysPerVector], any = 0;
#pragma unroll
    for (int i = 0; i < kKeysPerVector; ++i) {
      const uint32_t key = pattern(vector, i);
      top[i] = reached_top(fetch_add_shared(address(key), increment(key)), increment(key));
      any |= top[i];
    }
    if (any == 0) return;
#pragma unroll
    for (int i = 0; i < kKeysPerVector; ++i) {
      if (top[i] != 0) move_top(pattern(vector, i));
    }
  }

  // All lanes of a warp: many of their keys are equal.
  __device__ __forceinline__ void add_equal_vectors(const uint4& vector) const {
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t twice = __shfl_sync(~0u, vector.x, 0) & 0xffff;
    const uint32_t word = twice | twice << 16;
    if (__all_sync(~0u, (vector.x ^ word | vector.y ^ word | vector.z ^ word | vector.w ^ word) == 0)) {
      if (lane == 0) add(twice, 32 * kKeysPerVector);
      return;
    }
#pragma unroll
    for (int i = 0; i < kKeysPerVector; ++i) {
      const uint32_t key = pattern(vector, i);
      const uint32_t first = __shfl_sync(~0u, key, 0);
      const uint32_t same = __ballot_sync(~0u, key == first);
      const uint32_t rest = ~same;
      const uint32_t second = __shfl_sync(~0u, key, rest == 0 ? 0 : __ffs(rest) - 1);
      const uint32_t same_as_second = __ballot_sync(~0u, key == second);
      const uint32_t group = key == first ? same : key == second ? same_as_second : 1u << lane;
      if ((group & lanes_below()) == 0) add(key, __popc(group));
    }
  }

  // All lanes of a warp: lists the vectors that `special` has bits for, `number` and those that follow kCountThreads apart, if there is
  // room. Returns whether the list is full.
  template <int kVectors>
  __device__ __forceinline__ bool list_vectors(uint32_t special, uint32_t number) const {
    const ClassFindings& findings = arguments.findings;
    uint32_t lanes[kVectors], total = 0;
#pragma unroll
    for (int b = 0; b < kVectors; ++b) {
      lanes[b] = __ballot_sync(~0u, special >> b & 1);
      total += __popc(lanes[b]);
    }
    uint32_t slot = 0;
    if (threadIdx.x % 32 == 0) slot = atomicAdd(&classes.listed, total);
    slot = __shfl_sync(~0u, slot, 0);
    const bool full = slot + total > findings.capacity;
    if (slot >= findings.capacity) return full;
    uint32_t* list = findings.lists + blockIdx.x * findings.capacity;
#pragma unroll
    for (int b = 0; b < kVectors; ++b) {
      const uint32_t own = slot + __popc(lanes[b] & lanes_below());
      if ((special >> b & 1) != 0 && own < findings.capacity) list[own] = number + b * kCountThreads;
      slot += __popc(lanes[b]);
    }
    return full;
  }

  // Head and tail: fewer than 8 keys. All threads call; between two barriers.
  __device__ __forceinline__ void add_single(uint32_t position, uint32_t count) const {
    if (threadIdx.x >= count) return;
    add(arguments.shares.row[position + threadIdx.x], 1);
  }
};

// Of one key of each lane.
__device__ __forceinline__ bool many_equal(uint32_t key) {
  const uint32_t same = __ballot_sync(~0u, key == __shfl_sync(~0u, key, 0));
  const uint32_t rest = ~same;
  const uint32_t same_as_second = __ballot_sync(~0u, key == __shfl_sync(~0u, key, rest == 0 ? 0 : __ffs(rest) - 1));
  return max(__popc(same), __popc(same_as_second)) >= kManyEqual;
}

template <KeyFormat kFormat>
__global__ void __launch_bounds__(kCountThreads, 1) count_patterns_kernel(const __grid_constant__ CountArguments arguments) {
  extern __shared__ __align__(16) uint32_t counters[];
  __shared__ ClassWords classes;
  const KeyShares& shares = arguments.shares;
  const uint32_t thread = threadIdx.x;
  constexpr bool kFloats = kFormat != KeyFormat::kInteger;
  const KeyCounters<kFormat> block{arguments, shared_address(counters), classes};
  const uint4* vectors = reinterpret_cast<const uint4*>(shares.vector_keys());
  const uint32_t end = shares.first_vector(blockIdx.x + 1);
  uint32_t first = shares.first_vector(blockIdx.x);
  uint4 next[kCountBatch];
  // The next tile, or one vector of what is less than a tile.
  auto load = [&](uint32_t from) {
    if (from + kCountTileVectors <= end) {
#pragma unroll
      for (int b = 0; b < kCountBatch; ++b) next[b] = __ldcs(vectors + from + b * kCountThreads + thread);
    } else if (from + thread < end) {
      next[0] = __ldcs(vectors + from + thread);
    }
  };
  load(first);
  for (uint32_t i = thread; i < kCounterWords / 4; i += kCountThreads) reinterpret_cast<uint4*>(counters)[i] = make_uint4(0, 0, 0, 0);
  if (thread == 0) classes = ClassWords{0, {0, 0}};
  __syncthreads();
  bool full = false;  // the list, as far as this warp knows
  if (blockIdx.x == 0 && shares.head != 0) {
    block.add_single(0, shares.head);
    __syncthreads();
  }
  for (; first + kCountTileVectors <= end; first += kCountTileVectors) {
    uint4 tile[kCountBatch];
#pragma unroll
    for (int b = 0; b < kCountBatch; ++b) tile[b] = next[b];
    load(first + kCountTileVectors);
    if constexpr (kFloats) {
      // First of all, so that other warps have enough to do meanwhile.
      if (!full && __any_sync(~0u, has_special<kFormat>(tile))) {
        uint32_t special = 0;
#pragma unroll
        for (int b = 0; b < kCountBatch; ++b) special |= (has_special<kFormat, 1>({tile[b]}) ? 1u : 0u) << b;
        full = block.template list_vectors<kCountBatch>(special, first + thread);
      }
    }
    if (many_equal(tile[0].x & 0xffff) || many_equal(tile[kCountBatch - 1].w >> 16)) {
#pragma unroll
      for (int b = 0; b < kCountBatch; ++b) block.add_equal_vectors(tile[b]);
    } else {
#pragma unroll
      for (int b = 0; b < kCountBatch; ++b) block.add_vector(tile[b]);
    }
    __syncthreads();
  }
  // The rest of the share: less than a tile, one vector of each thread at a time. Warps count whole rounds together.
#pragma unroll 1
  for (; first < end; first += kCountThreads) {
    const uint32_t number = first + thread;
    const uint4 vector = next[0];
    if (number + kCountThreads < end) next[0] = __ldcs(vectors + number + kCountThreads);
    const bool whole_round = number - thread % 32 + 32 <= end;
    if (whole_round && many_equal(vector.x & 0xffff))
      block.add_equal_vectors(vector);
    else if (number < end)
      block.add_vector(vector);
    if constexpr (kFloats) {
      const bool special = number < end && has_special<kFormat, 1>({vector});
      if (__any_sync(~0u, special)) block.template list_vectors<1>(special, number);
    }
  }
  __syncthreads();
  if (blockIdx.x + 1 == shares.blocks && shares.tail != 0) {
    block.add_single(shares.head + shares.vectors * kKeysPerVector, shares.tail);
    __syncthreads();
  }
  uint32_t zeros = 0, nans = 0;
#pragma unroll 4
  for (uint32_t word = thread; word < kCounterWords; word += kCountThreads) {
    const uint32_t both = counters[word], low = both & 0xffff, high = both >> 16;
    const uint32_t pattern = pattern_of_word(word);
    if (low != 0) atomicAdd(arguments.counts + pattern, low);
    if (high != 0) atomicAdd(arguments.counts + pattern + kCounterWords, high);
    if (kFloats && pattern == 0) zeros = low + high;
    if (kFloats && pattern > arguments.findings.infinity) nans += low + high;
  }
  if constexpr (kFloats) {
    nans = __reduce_add_sync(~0u, nans);
    if (zeros != 0) atomicAdd(&classes.moved[0], zeros);
    if (thread % 32 == 0 && nans != 0) atomicAdd(&classes.moved[1], nans);
    __syncthreads();
    if (thread == 0) {
      arguments.findings.counts[blockIdx.x] = make_uint2(classes.moved[0], classes.moved[1]);
      arguments.findings.listed[blockIdx.x] = classes.listed;
    }
  }
}

}  // namespace gpusort
