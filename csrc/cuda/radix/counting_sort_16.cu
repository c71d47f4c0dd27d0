// See counting_sort_16.h.
//
//   count   each block counts in shared memory, two 16-bit counters to a word, and adds them up in global memory at the end
//   number  the counts, in the order of the keys, become runs: what was not counted is left out, so a run is its pattern and its end
//   write   each block takes chunks of the output and finds for every 16 bytes the run that they begin in
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
    __syncthreads();
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
constexpr int kWindow = kWriteThreads;  // runs that a block looks at in shared memory, one per thread
constexpr uint32_t kChunk = 8192;       // keys that a block writes at a time

// The first run from `run` on that ends after `position`, among `count` of them. `ends` is nowhere smaller than the end before it.
__device__ __forceinline__ uint32_t run_after(const uint32_t* ends, uint32_t run, uint32_t count, uint32_t position) {
  while (count > 0) {
    const uint32_t half = count / 2;
    if (ends[run + half] <= position) {
      run += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return run;
}

__global__ void __launch_bounds__(kWriteThreads) write_runs_kernel(const Runs runs, uint16_t* keys, const uint32_t length) {
  __shared__ uint32_t window_ends[kWindow];
  const uint32_t number = *runs.number;
  const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(keys) & 15) / 2;
  const uint64_t chunks = (static_cast<uint64_t>(length) + misaligned + kChunk - 1) / kChunk;
  const uint64_t first_chunk = chunks * blockIdx.x / gridDim.x, end_chunk = chunks * (blockIdx.x + 1) / gridDim.x;
  uint32_t window = 0;  // the run that the chunk begins in
  for (uint64_t chunk = first_chunk; chunk < end_chunk; ++chunk) {
    const int64_t chunk_first = static_cast<int64_t>(chunk * kChunk) - misaligned;
    const uint32_t chunk_begin = static_cast<uint32_t>(max(chunk_first, int64_t{0}));
    const uint32_t chunk_end = static_cast<uint32_t>(min(chunk_first + kChunk, static_cast<int64_t>(length)));
    if (chunk == first_chunk) window = run_after(runs.ends, 0, number, chunk_begin);
    const uint32_t own_end = window + threadIdx.x < number ? runs.ends[window + threadIdx.x] : length;
    __syncthreads();  // nobody reads the window before
    window_ends[threadIdx.x] = own_end;
    // Runs of the window that end inside the chunk: if all do, the chunk has more runs than the window.
    const uint32_t ended = __syncthreads_count(own_end <= chunk_end && window + threadIdx.x < number);
    const bool in_window = ended < kWindow;
#pragma unroll 1
    for (uint32_t vector = threadIdx.x; vector < kChunk / kPerVector; vector += kWriteThreads) {
      const int64_t first = chunk_first + vector * kPerVector;
      if (first >= length) break;
      const uint32_t begin = static_cast<uint32_t>(max(first, int64_t{0}));
      const uint32_t end = static_cast<uint32_t>(min(first + kPerVector, static_cast<int64_t>(length)));
      uint32_t run = in_window ? window + run_after(window_ends, 0, ended, begin) : run_after(runs.ends, window, number - window, begin);
      uint32_t run_end = runs.ends[run];
      const uint32_t pattern = runs.patterns[run];
      if (end - begin == kPerVector && run_end >= end) {
        const uint32_t two = pattern * 0x00010001u;
        *reinterpret_cast<uint4*>(keys + begin) = make_uint4(two, two, two, two);
        continue;
      }
#pragma unroll 1
      for (uint32_t i = begin; i < end; ++i) {
        if (run_end <= i) run_end = runs.ends[++run];
        keys[i] = runs.patterns[run];
      }
    }
    window = in_window ? window + ended : run_after(runs.ends, window, number - window, chunk_end);
  }
}

cudaError_t launch_count(const uint16_t* keys, uint64_t length, uint32_t* counts, int sm_count, cudaStream_t stream) {
  CountArguments arguments;
  const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(keys) & 15) / 2;
  arguments.head = keys;
  arguments.head_keys = misaligned == 0 ? 0 : static_cast<uint32_t>(std::min<uint64_t>(kPerVector - misaligned, length));
  arguments.keys = keys + arguments.head_keys;
  arguments.vectors = (length - arguments.head_keys) / kPerVector;
  arguments.tail = arguments.keys + arguments.vectors * kPerVector;
  arguments.tail_keys = static_cast<uint32_t>((length - arguments.head_keys) % kPerVector);
  arguments.counts = counts;
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
    if (error == cudaSuccess) error = launch_count(arguments.keys_in, arguments.length, counts, blocks, stream);
    if (error != cudaSuccess) return error;
    number_runs_kernel<<<kPatterns / kNumberThreads, kNumberThreads, 0, stream>>>(PatternOrder{arguments.order}, counts, runs, control);
    error = cudaGetLastError();
    if (error != cudaSuccess) return error;
    write_runs_kernel<<<blocks * 8, kWriteThreads, 0, stream>>>(runs, arguments.keys_out, arguments.length);
    error = cudaGetLastError();
    if (error == cudaSuccess && codes_meet)
      error = launch_equal_codes(arguments, reinterpret_cast<uint2*>(counts), blocks * 4, stream);  // nobody needs the counts any more
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace gpusort
