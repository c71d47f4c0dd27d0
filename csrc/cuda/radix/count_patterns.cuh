// Counts the patterns of 16-bit keys: the first kernel of counting_sort_16.cu.
//
// A block counts its share in shared memory, two 16-bit counters to a word, and adds them up in global memory at the end.
//
// Counters of 16 bits do not overflow, whatever the keys are: between two barriers a block counts at most 2^15 keys, and the thread that
// makes a counter reach 2^15 moves as much to global memory before the next barrier. So a counter is below 2^15 at every barrier and below
// 2^16 between them.
//
// The limits are the atomics, 32 of which take shared memory about 7 clocks, and the integer units. So both keys of a word are treated
// together where that goes, multiplications stand in for shifts, and what is rare is kept in loops of its own; and what must be known of a
// tile before its first atomics is found out while those of the tile before are under way (H200, 2^26 keys: 57 us instead of 62).
//
// Vectors that hold zeros or NaNs of floats are listed, until there are too many. To find out whether one does costs one instruction for
// two keys, and none of the integer units: in the arithmetic of their own type, infinity times keys stays infinite unless one of them is
// zero or no number. It is done before a barrier, where most warps wait in any case. What was found is kept as bits and listed after the
// last tile: a place in the list would come behind the atomics of all warps, and the block would wait for the warp that asked for it.
#pragma once

#include <cuda_runtime.h>

#include "../primitives/block_scan.cuh"
#include "../primitives/shared_memory.cuh"
#include "counting_arguments.h"

namespace gpusort {

constexpr uint32_t kCounterWords = kPatterns / 2;
constexpr uint32_t kTopOfCounter = 1 << 15;
static_assert(kCountTileVectors * kKeysPerVector <= kTopOfCounter, "see the file's header");
// Of 32 keys at least so many are equal to the first, or to the first that differs from it: then atomics on one counter, which are served
// one lane at a time, cost more than ballots.
constexpr int kManyEqual = 10;
// Vectors that are to be listed are noted as bits of 64, kCountBatch for each tile.
constexpr uint32_t kNotedTiles = 64 / kCountBatch;
// Where so many threads of a warp have zeros or NaNs in a tile, they are listed at once: the list will soon be full.
constexpr int kManyNoted = 8;

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

// Of infinity and a vector's keys, for even and for odd ones.
template <KeyFormat kFormat>
__device__ __forceinline__ uint32_t product_of(const uint4& vector) {
  uint32_t product = kInfinities<kFormat>;
  multiply<kFormat>(product, vector.x);
  multiply<kFormat>(product, vector.y);
  multiply<kFormat>(product, vector.z);
  multiply<kFormat>(product, vector.w);
  return product;
}
// Are there zeros or NaNs among the keys of a product, or of a product of such products?
template <KeyFormat kFormat>
__device__ __forceinline__ bool tells_special(uint32_t product) {
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
  // The same for a key's sign bit. A multiplication, which ptxas would turn into shifts.
  __device__ __forceinline__ static uint32_t increment_of_sign(uint32_t sign) {
    uint32_t step;
    asm("mad.lo.u32 %0, %1, 0xffff, 1;" : "=r"(step) : "r"(sign));
    return step;
  }
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

  __device__ __forceinline__ static uint32_t any_pattern(const uint4& vector, int i) {
    const uint32_t word = i < 4 ? i < 2 ? vector.x : vector.y : i < 6 ? vector.z : vector.w;
    return (word >> (i % 2 * 16)) & 0xffff;
  }

  // Those keys of a vector that have made their counters reach the top. Rolled, since it is rare.
  __device__ __forceinline__ void move_tops(const uint4& vector, const uint32_t (&top)[kKeysPerVector]) const {
    uint32_t keys = 0;
#pragma unroll
    for (int i = 0; i < kKeysPerVector; ++i) keys |= (top[i] != 0 ? 1u : 0u) << i;
#pragma unroll 1
    for (; keys != 0; keys &= keys - 1) move_top(any_pattern(vector, __ffs(static_cast<int>(keys)) - 1));
  }

  // Each lane its own keys.
  __device__ __forceinline__ void add_vector(const uint4& vector) const {
    const uint32_t twos[4] = {vector.x, vector.y, vector.z, vector.w};
    uint32_t before[kKeysPerVector], high = 0;
#pragma unroll
    for (int i = 0; i < kKeysPerVector / 2; ++i) {
      const uint32_t two = twos[i];
      const uint32_t words = (two ^ (two >> 5 & 0x001f001f)) & 0x7fff7fff;  // counter_word() of both
      before[2 * i] = fetch_add_shared(shared + (words & 0xffff) * 4, increment_of_sign((two << 16) >> 31));
      before[2 * i + 1] = fetch_add_shared(shared + (words >> 16) * 4, increment_of_sign(two >> 31));
      high |= before[2 * i] | before[2 * i + 1];
    }
    if ((high & (kTopOfCounter << 15 | kTopOfCounter >> 1)) == 0) return;  // none was half way up
    uint32_t top[kKeysPerVector], any = 0;
#pragma unroll
    for (int i = 0; i < kKeysPerVector; ++i) {
      top[i] = reached_top(before[i], increment(pattern(vector, i)));
      any |= top[i];
    }
    if (any != 0) move_tops(vector, top);
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
    uint32_t top[kKeysPerVector], any = 0;
#pragma unroll
    for (int i = 0; i < kKeysPerVector; ++i) {
      const uint32_t key = pattern(vector, i);
      const uint32_t first = __shfl_sync(~0u, key, 0);
      const uint32_t same = __ballot_sync(~0u, key == first);
      const uint32_t rest = ~same;
      const uint32_t second = __shfl_sync(~0u, key, rest == 0 ? 0 : __ffs(rest) - 1);
      const uint32_t same_as_second = __ballot_sync(~0u, key == second);
      const uint32_t group = key == first ? same : key == second ? same_as_second : 1u << lane;
      top[i] = 0;
      if ((group & lanes_below()) == 0) {
        const uint32_t step = increment(key) * __popc(group);
        top[i] = reached_top(fetch_add_shared(address(key), step), step);
      }
      any |= top[i];
    }
    if (any != 0) move_tops(vector, top);
  }

  // All lanes of a warp: lists the vectors that are noted, if there is room. `number`: the thread's first. Returns whether the list is
  // full.
  __device__ __forceinline__ bool list_noted(uint64_t noted, uint32_t number) const {
    const ClassFindings& findings = arguments.findings;
    const uint32_t own = __popcll(noted), inclusive = warp_inclusive_scan(own), total = __shfl_sync(~0u, inclusive, 31);
    if (total == 0) return false;
    uint32_t slot = 0;
    if (threadIdx.x % 32 == 0) slot = atomicAdd(&classes.listed, total);
    slot = __shfl_sync(~0u, slot, 0);
    uint32_t* list = findings.lists + blockIdx.x * findings.capacity;
#pragma unroll 1
    for (uint32_t at = slot + inclusive - own; noted != 0 && at < findings.capacity; ++at, noted &= noted - 1) {
      const uint32_t bit = __ffsll(static_cast<long long>(noted)) - 1;
      list[at] = number + bit * kCountThreads;
    }
    return slot + total > findings.capacity;
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

__device__ __forceinline__ bool many_equal(const uint4 (&tile)[kCountBatch]) {
  return many_equal(tile[0].x & 0xffff) || many_equal(tile[kCountBatch - 1].w >> 16);
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
  uint64_t noted = 0;
  uint32_t noted_tiles = 0;
  auto list_noted = [&](uint32_t end_of_tiles) {
    if (!full) full = block.list_noted(noted, end_of_tiles - noted_tiles * kCountTileVectors + thread);
    noted = 0;
    noted_tiles = 0;
  };
  if (blockIdx.x == 0 && shares.head != 0) {
    block.add_single(0, shares.head);
    __syncthreads();
  }
  bool equal = first + kCountTileVectors <= end && many_equal(next);
  bool started = false;
  for (; first + kCountTileVectors <= end; first += kCountTileVectors) {
    uint4 tile[kCountBatch];
#pragma unroll
    for (int b = 0; b < kCountBatch; ++b) tile[b] = next[b];
    load(first + kCountTileVectors);
    if constexpr (kFloats) {
      uint32_t products[kCountBatch], special = 0;
#pragma unroll
      for (int b = 0; b < kCountBatch; ++b) products[b] = product_of<kFormat>(tile[b]);
      uint32_t product = products[0];
#pragma unroll
      for (int b = 1; b < kCountBatch; ++b) multiply<kFormat>(product, products[b]);
      const int lanes = __popc(__ballot_sync(~0u, tells_special<kFormat>(product)));
      if (lanes != 0) {
#pragma unroll
        for (int b = 0; b < kCountBatch; ++b) special |= (tells_special<kFormat>(products[b]) ? 1u : 0u) << b;
        noted |= static_cast<uint64_t>(special) << noted_tiles * kCountBatch;
      }
      if (++noted_tiles == kNotedTiles || lanes >= kManyNoted) list_noted(first + kCountTileVectors);
    }
    if (started) __syncthreads();  // see the file's header. The first keys are counted as they come
    started = true;
    // Equal keys of floats in a rolled loop, since keys that differ are counted faster beside it (H200, 2^26 float16: 103.8 us, unrolled
    // 104.2); of integers unrolled (int16 of two values 159.2, rolled 161.5).
    if (equal && kFloats) {
#pragma unroll 1
      for (int b = 0; b < kCountBatch; ++b) {  // the registers go round
        block.add_equal_vectors(tile[0]);
#pragma unroll
        for (int k = 1; k < kCountBatch; ++k) tile[k - 1] = tile[k];
      }
      equal = many_equal(next);
    } else if (equal) {
#pragma unroll
      for (int b = 0; b < kCountBatch; ++b) {
        if (b == kCountBatch - 1) equal = many_equal(next);
        block.add_equal_vectors(tile[b]);
      }
    } else {
#pragma unroll
      for (int b = 0; b < kCountBatch; ++b) {
        if (b == kCountBatch - 1) equal = many_equal(next);
        block.add_vector(tile[b]);
      }
    }
  }
  __syncthreads();
  // The rest of the share: less than a tile, one vector of each thread at a time. Warps count whole rounds together.
  const uint32_t rest = first;
#pragma unroll 1
  for (uint32_t bit = noted_tiles * kCountBatch; first < end; first += kCountThreads, ++bit) {
    const uint32_t number = first + thread;
    const uint4 vector = next[0];
    if (number + kCountThreads < end) next[0] = __ldcs(vectors + number + kCountThreads);
    const bool whole_round = number - thread % 32 + 32 <= end;
    if (whole_round && many_equal(vector.x & 0xffff))
      block.add_equal_vectors(vector);
    else if (number < end)
      block.add_vector(vector);
    if constexpr (kFloats) {
      if (number < end && tells_special<kFormat>(product_of<kFormat>(vector))) noted |= uint64_t{1} << bit;
    }
  }
  __syncthreads();
  if (blockIdx.x + 1 == shares.blocks && shares.tail != 0) {
    block.add_single(shares.head + shares.vectors * kKeysPerVector, shares.tail);
    __syncthreads();
  }
  if constexpr (kFloats) {
    list_noted(rest);
    static_assert((kInfinities<kFormat> & 0xffff) >= kCounterWords - kCountThreads, "the last words have all NaNs");
    const uint32_t word = kCounterWords - kCountThreads + thread;
    const bool of_nans = pattern_of_word(word) > arguments.findings.infinity;
    const uint32_t nans = __reduce_add_sync(~0u, of_nans ? (counters[word] & 0xffff) + (counters[word] >> 16) : 0);
    if (thread % 32 == 0 && nans != 0) atomicAdd(&classes.moved[1], nans);
    if (thread == 0) atomicAdd(&classes.moved[0], (counters[0] & 0xffff) + (counters[0] >> 16));
  }
#pragma unroll 4
  for (uint32_t word = thread; word < kCounterWords; word += kCountThreads) {
    const uint32_t both = counters[word], low = both & 0xffff, high = both >> 16;
    const uint32_t pattern = pattern_of_word(word);
    if (low != 0) atomicAdd(arguments.counts + pattern, low);
    if (high != 0) atomicAdd(arguments.counts + pattern + kCounterWords, high);
  }
  if constexpr (kFloats) {
    __syncthreads();
    if (thread == 0) {
      arguments.findings.counts[blockIdx.x] = make_uint2(classes.moved[0], classes.moved[1]);
      arguments.findings.listed[blockIdx.x] = classes.listed;
    }
  }
}

}  // namespace gpusort
