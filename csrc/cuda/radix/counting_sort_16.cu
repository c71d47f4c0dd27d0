// See counting_sort_16.h.
//
//   count   each block counts in shared memory, two 16-bit counters to a word, and adds them up in global memory at the end
//   number  the counts, in the order of the keys, become runs: what was not counted is left out, so a run is its pattern and its end
//   write   each block takes chunks of the output and finds for every 16 bytes, in shared memory, the run that they begin in
//   equal   keys of equal code but different patterns (both zeros, several NaNs) have been written in one order: equal_codes.h brings them
//           into that of the input, if the counts show that there are such
//
// Counters of 16 bits do not overflow, whatever the keys are: between two barriers a block counts at most 2^15 keys, and the thread that
// makes a counter reach 2^15 moves as much to global memory before the next barrier. So a counter is below 2^15 at every barrier and below
// 2^16 between them.
//
// Cost: one read and one write of the keys, and for the counters 256 KB of atomics per block.
#include "counting_sort_16.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>

#include "../primitives/block_scan.cuh"
#include "../primitives/kernel_setup.h"
#include "../primitives/shared_memory.cuh"
#include "equal_codes.h"
#include "radix_control.cuh"

namespace gpusort {
namespace {

constexpr uint32_t kPatterns = 1 << 16;

// ---- count --------------------------------------------------------------------------------------------------------------------------

constexpr int kCountThreads = 1024;
constexpr int kBatch = 4;  // 16-byte loads in flight per thread; a tile is one batch of every thread
constexpr int kPerVector = 8;
constexpr uint32_t kTileVectors = kCountThreads * kBatch;
constexpr uint32_t kCounterWords = kPatterns / 2;
constexpr uint32_t kTopOfCounter = 1 << 15;
static_assert(kTileVectors * kPerVector <= kTopOfCounter, "see the file's header");
static_assert(kTileVectors * kPerVector == kCountedTile, "the plan and the kernel agree");
// Of 32 keys at least so many are equal to the first, or to the first that differs from it: then atomics on one counter, which are served
// one lane at a time, cost more than ballots.
constexpr int kManyEqual = 10;

struct CountArguments {
  const uint16_t* keys;  // aligned to 16 bytes, a multiple of 8 of them
  uint64_t vectors;
  const uint16_t* head;  // what comes before and after the vectors, fewer than 8 keys each
  uint32_t head_keys;
  const uint16_t* tail;
  uint32_t tail_keys;
  uint32_t* counts;  // by pattern, zeroed
  // Floats: marks the tiles that have zeros or NaNs. A NaN is beyond 0x8000 - nan_step without its sign.
  bool codes_meet;
  uint32_t nan_step;
  uint8_t* tile_marks;
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

// Not 0 in bits 15 and 31: zeros and NaNs among two keys.
__device__ __forceinline__ uint32_t zeros_and_nans(uint32_t two, uint32_t nan_step) {
  const uint32_t magnitudes = two & 0x7fff7fffu;
  return (magnitudes - 0x00010001u & ~magnitudes) | magnitudes + nan_step * 0x00010001u;
}

struct KeyCounters {
  uint32_t shared;  // address of the words
  uint32_t* counts;

  // The counters that `increment` makes reach their top, if any, as the bit that is set by it.
  __device__ __forceinline__ static uint32_t reached_top(uint32_t before, uint32_t increment) {
    return (before + increment) & ~before & (kTopOfCounter << 16 | kTopOfCounter);
  }

  __device__ __forceinline__ uint32_t address(uint32_t pattern) const { return shared + counter_word(pattern) * 4; }
  __device__ __forceinline__ static uint32_t increment(uint32_t pattern) { return 1u << (pattern >> 11 & 16); }

  __device__ __forceinline__ void move_top(uint32_t pattern) const {
    add_shared(address(pattern), 0u - kTopOfCounter * increment(pattern));
    atomicAdd(counts + pattern, kTopOfCounter);
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
    uint32_t top[kPerVector], any = 0;
#pragma unroll
    for (int i = 0; i < kPerVector; ++i) {
      const uint32_t key = pattern(vector, i);
      top[i] = reached_top(fetch_add_shared(address(key), increment(key)), increment(key));
      any |= top[i];
    }
    if (any == 0) return;
#pragma unroll
    for (int i = 0; i < kPerVector; ++i) {
      if (top[i] != 0) move_top(pattern(vector, i));
    }
  }

  // All lanes of a warp: many of their keys are equal.
  __device__ __forceinline__ void add_equal_vectors(const uint4& vector) const {
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t twice = __shfl_sync(~0u, vector.x, 0) & 0xffff;
    const uint32_t word = twice | twice << 16;
    if (__all_sync(~0u, (vector.x ^ word | vector.y ^ word | vector.z ^ word | vector.w ^ word) == 0)) {
      if (lane == 0) add(twice, 32 * kPerVector);
      return;
    }
#pragma unroll
    for (int i = 0; i < kPerVector; ++i) {
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
};

// Of one key of each lane.
__device__ __forceinline__ bool many_equal(uint32_t key) {
  const uint32_t same = __ballot_sync(~0u, key == __shfl_sync(~0u, key, 0));
  const uint32_t rest = ~same;
  const uint32_t same_as_second = __ballot_sync(~0u, key == __shfl_sync(~0u, key, rest == 0 ? 0 : __ffs(rest) - 1));
  return max(__popc(same), __popc(same_as_second)) >= kManyEqual;
}

__global__ void __launch_bounds__(kCountThreads, 1) count_patterns_kernel(const __grid_constant__ CountArguments arguments) {
  extern __shared__ __align__(16) uint32_t counters[];
  const uint32_t thread = threadIdx.x;
  for (uint32_t i = thread; i < kCounterWords / 4; i += kCountThreads) reinterpret_cast<uint4*>(counters)[i] = make_uint4(0, 0, 0, 0);
  const KeyCounters block{shared_address(counters), arguments.counts};
  const uint4* vectors = reinterpret_cast<const uint4*>(arguments.keys);
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * kTileVectors;
  uint64_t first = static_cast<uint64_t>(blockIdx.x) * kTileVectors;
  uint4 next[kBatch];
  auto load = [&](uint64_t from) {
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      if (from + kTileVectors <= arguments.vectors) next[b] = __ldcs(vectors + from + b * kCountThreads + thread);
    }
  };
  load(first);
  __syncthreads();
  for (; first + kTileVectors <= arguments.vectors; first += step) {
    uint4 tile[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) tile[b] = next[b];
    load(first + step);
    if (many_equal(tile[0].x & 0xffff) || many_equal(tile[kBatch - 1].w >> 16)) {
#pragma unroll
      for (int b = 0; b < kBatch; ++b) block.add_equal_vectors(tile[b]);
    } else {
#pragma unroll
      for (int b = 0; b < kBatch; ++b) block.add_vector(tile[b]);
    }
    if (arguments.codes_meet) {
      uint32_t found = 0;
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        for (uint32_t two : {tile[b].x, tile[b].y, tile[b].z, tile[b].w}) found |= zeros_and_nans(two, arguments.nan_step);
      }
      const bool any = __syncthreads_or((found & 0x80008000u) != 0) != 0;
      if (thread == 0) arguments.tile_marks[first / kTileVectors] = any;
    } else {
      __syncthreads();
    }
  }
  // The ragged tile, and the ends outside the vectors.
#pragma unroll 1
  for (uint64_t v = first + thread; v < arguments.vectors; v += kCountThreads) block.add_vector(vectors[v]);
  if (blockIdx.x == 0) {
    if (thread < arguments.head_keys) atomicAdd(arguments.counts + arguments.head[thread], 1u);
    if (thread < arguments.tail_keys) atomicAdd(arguments.counts + arguments.tail[thread], 1u);
  }
  __syncthreads();
  for (uint32_t word = thread; word < kCounterWords; word += kCountThreads) {
    const uint32_t both = counters[word];
    const uint32_t pattern = pattern_of_word(word);
    if ((both & 0xffff) != 0) atomicAdd(arguments.counts + pattern, both & 0xffff);
    if (both >> 16 != 0) atomicAdd(arguments.counts + pattern + kCounterWords, both >> 16);
  }
}

// ---- number -------------------------------------------------------------------------------------------------------------------------

constexpr int kNumberThreads = 1024;  // one place in the order of the keys each

// Runs in the order of the sort, without empty ones.
struct Runs {
  uint32_t* ends;
  uint16_t* patterns;
  uint32_t* number;  // of runs
};

struct PatternOrder {
  KeyOrder<uint16_t> order;

  // The pattern at a place in the order of the sort. Patterns of one code are neighbours.
  __device__ __forceinline__ uint16_t pattern(uint32_t place) const { return order.from_ordered(ordered(place)); }
  __device__ __forceinline__ uint16_t ordered(uint32_t place) const { return static_cast<uint16_t>(place ^ order.complement); }
};

__global__ void __launch_bounds__(kNumberThreads)
    number_runs_kernel(const PatternOrder order, const uint32_t* counts, const Runs runs, RadixControl* control) {
  using Pair = unsigned long long;  // keys, and in the upper half runs
  __shared__ BlockScanStorage<Pair> storage;
  auto pair_at = [&](uint32_t place) {
    const uint32_t count = counts[order.pattern(place)];
    return static_cast<Pair>(count != 0) << 32 | count;
  };
  const uint32_t first = blockIdx.x * kNumberThreads;
  Pair before = 0;
#pragma unroll 8
  for (uint32_t place = threadIdx.x; place < first; place += kNumberThreads) before += pair_at(place);
  Pair all_before;
  block_exclusive_scan(before, all_before, storage);
  __syncthreads();

  const uint32_t place = first + threadIdx.x;
  const Pair own = pair_at(place);
  Pair total;
  const Pair end = all_before + block_exclusive_scan(own, total, storage) + own;
  const bool counted = own != 0;
  if (counted) {
    const uint32_t run = static_cast<uint32_t>(end >> 32) - 1;
    runs.ends[run] = static_cast<uint32_t>(end);
    runs.patterns[run] = order.pattern(place);
  }
  if (place == kPatterns - 1) *runs.number = static_cast<uint32_t>(end >> 32);

  // Do different patterns have one code?
  const uint16_t ordered = order.ordered(place), zero = order.order.zero;
  if (counted && zero != 0 && ordered == zero && counts[order.order.from_ordered(static_cast<uint16_t>(zero - 1))] != 0)
    atomicOr(&control->other_patterns, 1u);
  const uint32_t nans = __syncthreads_count(counted && ordered >= order.order.clamp);
  if (threadIdx.x == 0 && nans != 0 && atomicAdd(&control->nan_runs, nans) + nans >= 2) atomicOr(&control->other_patterns, 1u);
}

// ---- write --------------------------------------------------------------------------------------------------------------------------

constexpr int kWriteThreads = 256;
constexpr int kWriteWarps = kWriteThreads / 32;
constexpr int kWriteBlocksPerSm = 8;
constexpr uint32_t kChunk = 4096;  // keys that a block writes at a time
static_assert(kChunk < kPatterns, "ends of runs in a chunk have 16 bits");

// The first run that ends after `position`, or the last one. The 16 lanes of each half of a warp look for one; all lanes call.
__device__ __forceinline__ uint32_t run_after(const uint32_t* ends, uint32_t number, uint32_t position) {
  const uint32_t lane = threadIdx.x % 16, half = threadIdx.x & 16;
  uint32_t low = 0, high = number - 1;  // runs before `low` end too early, `high` does not
  while (__any_sync(~0u, low < high)) {
    const uint32_t step = (high - low - 1) / 16 + 1;
    const uint32_t probe = low + lane * step;
    const uint32_t early = __popc(__ballot_sync(~0u, probe < high && ends[probe] <= position) >> half & 0xffff);
    if (low >= high) continue;
    high = min(high, low + early * step);
    if (early != 0) low += (early - 1) * step + 1;
  }
  return low;
}

// Chunks are dealt out to the blocks one at a time: those of many short runs lie together and take longer. A block finds the runs of as
// many of its chunks as it has warps at one go, and keeps those of one chunk in shared memory.
__global__ void __launch_bounds__(kWriteThreads, kWriteBlocksPerSm)
    write_runs_kernel(const Runs runs, uint16_t* keys, const uint32_t length) {
  __shared__ uint32_t ends_and_patterns[kChunk];
  __shared__ uint32_t first_runs[kWriteWarps], last_runs[kWriteWarps];
  const uint32_t number = *runs.number, warp = threadIdx.x / 32;
  const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(keys) & 15) / 2;
  const uint64_t chunks = (static_cast<uint64_t>(length) + misaligned + kChunk - 1) / kChunk;
  // Positions in the row; chunks begin at multiples of 16 bytes, the first one perhaps before the row.
  auto chunk_first = [&](uint64_t chunk) { return static_cast<int64_t>(chunk * kChunk) - misaligned; };
  auto chunk_begin = [&](uint64_t chunk) { return static_cast<uint32_t>(max(chunk_first(chunk), int64_t{0})); };
  auto chunk_end = [&](uint64_t chunk) { return static_cast<uint32_t>(min(chunk_first(chunk) + kChunk, static_cast<int64_t>(length))); };
  for (uint64_t batch = blockIdx.x; batch < chunks; batch += static_cast<uint64_t>(gridDim.x) * kWriteWarps) {
    const uint64_t searched = batch + static_cast<uint64_t>(gridDim.x) * warp;
    if (searched < chunks) {
      const bool for_end = (threadIdx.x & 16) != 0;
      const uint32_t run = run_after(runs.ends, number, for_end ? chunk_end(searched) - 1 : chunk_begin(searched));
      if (threadIdx.x % 16 == 0) (for_end ? last_runs : first_runs)[warp] = run;
    }
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < kWriteWarps; ++k) {
      const uint64_t chunk = batch + static_cast<uint64_t>(gridDim.x) * k;
      if (chunk >= chunks) break;
      const uint32_t begin = chunk_begin(chunk), end = chunk_end(chunk);
      const uint32_t first_run = first_runs[k], count = last_runs[k] - first_run + 1;
      for (uint32_t run = threadIdx.x; run < count; run += kWriteThreads) {
        const uint32_t run_end = min(runs.ends[first_run + run], end) - begin;
        ends_and_patterns[run] = run_end << 16 | runs.patterns[first_run + run];
      }
      __syncthreads();
#pragma unroll 1
      for (uint32_t vector = threadIdx.x; vector < kChunk / kPerVector; vector += kWriteThreads) {
        const int64_t vector_first = chunk_first(chunk) + vector * kPerVector;
        if (vector_first >= end) break;
        const uint32_t from = static_cast<uint32_t>(max(vector_first, int64_t{0})) - begin;
        const uint32_t to = static_cast<uint32_t>(min(vector_first + kPerVector, static_cast<int64_t>(end))) - begin;
        uint32_t run = 0, left = count - 1;  // the first run that ends after `from`: bisection
        while (left > 0) {
          const uint32_t half = left / 2;
          const bool early = ends_and_patterns[run + half] >> 16 <= from;
          run += early ? half + 1 : 0;
          left = early ? left - half - 1 : half;
        }
        uint32_t entry = ends_and_patterns[run];
        if (to - from == kPerVector) {
          uint32_t words[kPerVector / 2];
          if (entry >> 16 >= to) {
#pragma unroll
            for (int i = 0; i < kPerVector / 2; ++i) words[i] = (entry & 0xffff) * 0x00010001u;
          } else {
#pragma unroll
            for (int i = 0; i < kPerVector; ++i) {
              if (entry >> 16 <= from + i) entry = ends_and_patterns[++run];
              words[i / 2] = i % 2 == 0 ? entry & 0xffff : words[i / 2] | entry << 16;
            }
          }
          *reinterpret_cast<uint4*>(keys + begin + from) = make_uint4(words[0], words[1], words[2], words[3]);
          continue;
        }
#pragma unroll 1
        for (uint32_t i = from; i < to; ++i) {
          if (entry >> 16 <= i) entry = ends_and_patterns[++run];
          keys[begin + i] = static_cast<uint16_t>(entry);
        }
      }
      __syncthreads();  // before the next chunk's runs, and the next batch's
    }
  }
}

CountArguments count_arguments(const uint16_t* keys, uint64_t length) {
  CountArguments arguments;
  const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(keys) & 15) / 2;
  arguments.head = keys;
  arguments.head_keys = misaligned == 0 ? 0 : static_cast<uint32_t>(std::min<uint64_t>(kPerVector - misaligned, length));
  arguments.keys = keys + arguments.head_keys;
  arguments.vectors = (length - arguments.head_keys) / kPerVector;
  arguments.tail = arguments.keys + arguments.vectors * kPerVector;
  arguments.tail_keys = static_cast<uint32_t>((length - arguments.head_keys) % kPerVector);
  return arguments;
}

cudaError_t launch_count(const CountArguments& arguments, int sm_count, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(count_patterns_kernel, kCountingSharedBytes, prepared);
  if (error != cudaSuccess) return error;
  const uint64_t tiles = arguments.vectors / kTileVectors + 1;
  const int grid = tiles < static_cast<uint64_t>(sm_count) ? static_cast<int>(tiles) : sm_count;
  count_patterns_kernel<<<grid, kCountThreads, kCountingSharedBytes, stream>>>(arguments);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_counting_sort_16(const SortProblem& problem, const RadixPlan& plan, void* workspace, cudaStream_t stream) {
  static_assert(kCountingSharedBytes == kCounterWords * 4, "the plan and the kernel agree");
  char* base = static_cast<char*>(workspace);
  RadixControl* control = reinterpret_cast<RadixControl*>(base + plan.control_offset);
  uint32_t* counts = reinterpret_cast<uint32_t*>(base + plan.counts_offset);
  const Runs runs{reinterpret_cast<uint32_t*>(base + plan.runs_offset), reinterpret_cast<uint16_t*>(base + plan.run_patterns_offset),
                  &control->runs};
  PassArguments<uint16_t> arguments;
  arguments.order = problem.key.order<uint16_t>(problem.descending);
  arguments.control = control;
  arguments.length = static_cast<uint32_t>(problem.length);
  const bool codes_meet = problem.key.kind == KeyKind::kFloat;
  const int blocks = plan.grid[0];
  for (int64_t row = 0; row < problem.rows; ++row) {
    arguments.keys_in = static_cast<const uint16_t*>(problem.keys_in) + row * problem.length;
    arguments.keys_out = static_cast<uint16_t*>(problem.keys_out) + row * problem.length;
    cudaError_t error = cudaMemsetAsync(workspace, 0, static_cast<size_t>(plan.cleared_bytes), stream);
    CountArguments count = count_arguments(arguments.keys_in, arguments.length);
    count.counts = counts;
    count.codes_meet = codes_meet;
    count.nan_step = 0x8000u - static_cast<uint16_t>(arguments.order.clamp - arguments.order.zero);
    count.tile_marks = reinterpret_cast<uint8_t*>(base + plan.tile_marks_offset);
    if (error == cudaSuccess) error = launch_count(count, blocks, stream);
    if (error != cudaSuccess) return error;
    number_runs_kernel<<<kPatterns / kNumberThreads, kNumberThreads, 0, stream>>>(PatternOrder{arguments.order}, counts, runs, control);
    error = cudaGetLastError();
    if (error != cudaSuccess) return error;
    write_runs_kernel<<<blocks * kWriteBlocksPerSm, kWriteThreads, 0, stream>>>(runs, arguments.keys_out, arguments.length);
    error = cudaGetLastError();
    const SuspectSpans suspects{count.tile_marks, count.vectors / kTileVectors, kTileVectors * 16};
    if (error == cudaSuccess && codes_meet)
      error = launch_equal_codes(arguments, suspects, counts, blocks * 4, stream);  // nobody needs the counts and the runs any more
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace gpusort
