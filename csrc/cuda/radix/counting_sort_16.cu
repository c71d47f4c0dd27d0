// See counting_sort_16.h.
//
//   count   each block counts its share in shared memory and adds its counters up in global memory at the end (count_patterns.cuh)
//   number  the counts, in the order of the keys, become runs: what was not counted is left out, so a run is its pattern and its end
//   write   each block takes chunks of the output and finds for every 16 bytes, in shared memory, the run that they begin in
//   mend    floats: keys of equal code but different patterns (both zeros, several NaNs) have been written in one order. They are brought
//           into that of the input, if the counts show that there are such (mend_patterns.cuh)
//
// Each kernel is set up while the one before it ends (dependent_launch.cuh).
//
// Cost: one read and one write of the keys, and for the counters 256 KB of atomics per block. Where equal keys differ and are many, another
// read of the keys, and another write of these.
#include "counting_sort_16.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>

#include "../primitives/block_scan.cuh"
#include "../primitives/dependent_launch.cuh"
#include "../primitives/kernel_setup.h"
#include "count_patterns.cuh"
#include "counting_arguments.h"
#include "mend_patterns.cuh"

namespace gpusort {
namespace {

// ---- number -------------------------------------------------------------------------------------------------------------------------

constexpr int kNumberBlocks = kPatterns / kNumberThreads;

struct NumberArguments {
  KeyOrder<uint16_t> order;
  const uint32_t* counts = nullptr;
  uint32_t* ends = nullptr;      // of the runs in the order of the sort, without empty ones
  uint16_t* patterns = nullptr;  // of these
  CountingControl* control = nullptr;

  // The pattern at a place in the order of the sort. Patterns of one code are neighbours.
  __device__ __forceinline__ uint16_t pattern(uint32_t place) const { return order.from_ordered(ordered(place)); }
  __device__ __forceinline__ uint16_t ordered(uint32_t place) const { return static_cast<uint16_t>(place ^ order.complement); }
};

using Pair = unsigned long long;  // keys, and in the upper half runs
constexpr Pair kSumKnown = Pair{1} << 63;

// Every block publishes its sum and waits for those of the blocks before it, which have taken their tickets and so are running.
__device__ __forceinline__ Pair sum_of_blocks_before(unsigned long long* sums, uint32_t block, Pair own_sum, Pair (&halves)[2]) {
  volatile unsigned long long* published = sums;
  static_assert(kNumberBlocks <= 64, "two warps look");
  if (threadIdx.x == 0) published[block] = own_sum | kSumKnown;
  if (threadIdx.x < 64) {
    Pair sum = 0;
    if (threadIdx.x < block) {
      do {
        sum = published[threadIdx.x];
      } while ((sum & kSumKnown) == 0);
    }
    const Pair inclusive = warp_inclusive_scan(sum & ~kSumKnown);
    if (threadIdx.x % 32 == 31) halves[threadIdx.x / 32] = inclusive;
  }
  __syncthreads();
  return halves[0] + halves[1];
}

__global__ void __launch_bounds__(kNumberThreads) number_runs_kernel(const __grid_constant__ NumberArguments arguments) {
  __shared__ BlockScanStorage<Pair> storage;
  __shared__ Pair halves[2];
  __shared__ uint32_t ticket;
  if (threadIdx.x == 0) ticket = atomicAdd(&arguments.control->ticket, 1u);  // cleared before the counting began
  start_after_predecessor();
  __syncthreads();
  const uint32_t block = ticket;
  const KeyOrder<uint16_t>& order = arguments.order;
  CountingControl* control = arguments.control;
  const uint32_t place = block * kNumberThreads + threadIdx.x;
  const uint16_t pattern = arguments.pattern(place), ordered = arguments.ordered(place), zero = order.zero;
  const uint32_t count = arguments.counts[pattern];
  const bool of_zero = zero != 0 && ordered == zero;
  const uint32_t count_of_minus_zero = of_zero ? arguments.counts[order.from_ordered(static_cast<uint16_t>(zero - 1))] : 0;
  const bool counted = count != 0;
  const Pair own = static_cast<Pair>(counted) << 32 | count;
  Pair total;
  const Pair before_in_block = block_exclusive_scan(own, total, storage);
  const Pair begin = sum_of_blocks_before(control->block_sums, block, total, halves) + before_in_block, end = begin + own;
  if (counted) {
    const uint32_t run = static_cast<uint32_t>(begin >> 32);
    arguments.ends[run] = static_cast<uint32_t>(end);
    arguments.patterns[run] = pattern;
  }
  if (place == kPatterns - 1) control->runs = static_cast<uint32_t>(end >> 32);
  if (zero == 0) return;

  // Where do the classes begin, and do different patterns have one code?
  const bool descending = order.complement != 0;
  if (ordered == (descending ? zero : zero - 1)) control->class_begin[0] = static_cast<uint32_t>(begin);
  if (ordered == (descending ? 0xffff : order.clamp)) control->class_begin[1] = static_cast<uint32_t>(begin);
  if (counted && count_of_minus_zero != 0) control->codes_meet = 1;
  const uint32_t nans = __syncthreads_count(counted && ordered >= order.clamp);
  if (threadIdx.x == 0 && nans != 0 && atomicAdd(&control->nan_patterns, nans) + nans >= 2) control->codes_meet = 1;
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

struct WriteArguments {
  const uint32_t* ends = nullptr;
  const uint16_t* patterns = nullptr;
  const CountingControl* control = nullptr;
  uint16_t* keys = nullptr;
  uint32_t length = 0;
};

// Chunks are dealt out to the blocks one at a time: those of many short runs lie together and take longer. A block finds the runs of as
// many of its chunks as it has warps at one go, and keeps those of one chunk in shared memory.
__global__ void __launch_bounds__(kWriteThreads, kWriteBlocksPerSm) write_runs_kernel(const __grid_constant__ WriteArguments arguments) {
  start_after_predecessor();
  const WriteArguments& runs = arguments;
  uint16_t* keys = arguments.keys;
  const uint32_t length = arguments.length;
  __shared__ uint32_t ends_and_patterns[kChunk];
  __shared__ uint32_t first_runs[kWriteWarps], last_runs[kWriteWarps];
  const uint32_t number = arguments.control->runs, warp = threadIdx.x / 32;
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
      for (uint32_t vector = threadIdx.x; vector < kChunk / kKeysPerVector; vector += kWriteThreads) {
        const int64_t vector_first = chunk_first(chunk) + vector * kKeysPerVector;
        if (vector_first >= end) break;
        const uint32_t from = static_cast<uint32_t>(max(vector_first, int64_t{0})) - begin;
        const uint32_t to = static_cast<uint32_t>(min(vector_first + kKeysPerVector, static_cast<int64_t>(end))) - begin;
        uint32_t run = 0, left = count - 1;  // the first run that ends after `from`: bisection
        while (left > 0) {
          const uint32_t half = left / 2;
          const bool early = ends_and_patterns[run + half] >> 16 <= from;
          run += early ? half + 1 : 0;
          left = early ? left - half - 1 : half;
        }
        uint32_t entry = ends_and_patterns[run];
        if (to - from == kKeysPerVector) {
          uint32_t words[kKeysPerVector / 2];
          if (entry >> 16 >= to) {
#pragma unroll
            for (int i = 0; i < kKeysPerVector / 2; ++i) words[i] = (entry & 0xffff) * 0x00010001u;
          } else {
#pragma unroll
            for (int i = 0; i < kKeysPerVector; ++i) {
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

KeyShares key_shares(const uint16_t* row, uint64_t length, const CountingPlan& plan) {
  KeyShares shares;
  const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(row) & 15) / 2;
  shares.row = row;
  shares.head = misaligned == 0 ? 0 : static_cast<uint32_t>(std::min<uint64_t>(kKeysPerVector - misaligned, length));
  shares.vectors = static_cast<uint32_t>((length - shares.head) / kKeysPerVector);
  shares.tail = static_cast<uint32_t>((length - shares.head) % kKeysPerVector);
  shares.vectors_per_block = static_cast<uint32_t>(plan.vectors_per_block);
  shares.blocks = static_cast<uint32_t>(plan.blocks);
  return shares;
}

template <KeyFormat kFormat>
cudaError_t launch_count_of(const CountArguments& arguments, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(count_patterns_kernel<kFormat>, kCountingSharedBytes, prepared);
  if (error != cudaSuccess) return error;
  count_patterns_kernel<kFormat><<<arguments.shares.blocks, kCountThreads, kCountingSharedBytes, stream>>>(arguments);
  return cudaGetLastError();
}

cudaError_t launch_count(const CountArguments& arguments, const KeyType& key, cudaStream_t stream) {
  if (key.kind != KeyKind::kFloat) return launch_count_of<KeyFormat::kInteger>(arguments, stream);
  constexpr uint64_t kInfinityOfFloat16 = kInfinities<KeyFormat::kFloat16> & 0xffff;
  return key.infinity == kInfinityOfFloat16 ? launch_count_of<KeyFormat::kFloat16>(arguments, stream)
                                            : launch_count_of<KeyFormat::kBfloat16>(arguments, stream);
}

}  // namespace

cudaError_t launch_counting_sort_16(const SortProblem& problem, const CountingPlan& plan, int sm_count, void* workspace,
                                    cudaStream_t stream) {
  static_assert(kCountingSharedBytes == kCounterWords * 4, "the plan and the kernel agree");
  static_assert(sizeof(CountingControl) <= 1024, "the plan and the kernels agree");
  char* base = static_cast<char*>(workspace);
  CountingControl* control = reinterpret_cast<CountingControl*>(base + plan.control_offset);
  uint32_t* counts = reinterpret_cast<uint32_t*>(base + plan.counts_offset);
  uint32_t* ends = reinterpret_cast<uint32_t*>(base + plan.runs_offset);
  uint16_t* patterns = reinterpret_cast<uint16_t*>(base + plan.patterns_offset);
  const bool floats = problem.key.kind == KeyKind::kFloat;
  ClassFindings findings;
  findings.counts = reinterpret_cast<uint2*>(base + plan.findings_offset);
  findings.listed = reinterpret_cast<uint32_t*>(findings.counts + plan.blocks);
  findings.lists = reinterpret_cast<uint32_t*>(base + plan.lists_offset);
  findings.capacity = static_cast<uint32_t>(plan.list_capacity);
  findings.infinity = static_cast<uint32_t>(problem.key.infinity);
  const uint32_t length = static_cast<uint32_t>(problem.length);
  for (int64_t row = 0; row < problem.rows; ++row) {
    const uint16_t* keys = static_cast<const uint16_t*>(problem.keys_in) + row * problem.length;
    uint16_t* keys_out = static_cast<uint16_t*>(problem.keys_out) + row * problem.length;
    const KeyShares shares = key_shares(keys, length, plan);
    cudaError_t error = cudaMemsetAsync(workspace, 0, static_cast<size_t>(plan.cleared_bytes), stream);
    if (error != cudaSuccess) return error;
    const CountArguments count{shares, counts, findings};
    error = launch_count(count, problem.key, stream);
    if (error != cudaSuccess) return error;
    const NumberArguments number{problem.key.order<uint16_t>(problem.descending), counts, ends, patterns, control};
    error = launch_after_predecessor<number_runs_kernel>(number, {kNumberBlocks, kNumberThreads, 0, true}, stream);
    if (error != cudaSuccess) return error;
    const WriteArguments write{ends, patterns, control, keys_out, length};
    const unsigned blocks = static_cast<unsigned>(sm_count * kWriteBlocksPerSm);
    error = launch_after_predecessor<write_runs_kernel>(write, {blocks, kWriteThreads, 0, true}, stream);
    if (error == cudaSuccess && floats) {
      const MendArguments mend{shares, length, findings, control, keys_out};
      error = launch_after_predecessor<mend_patterns_kernel>(mend, {shares.blocks, kMendThreads, 0, true}, stream);
    }
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace gpusort
