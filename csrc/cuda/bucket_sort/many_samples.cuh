// Splitters of long rows, from more samples than one block sorts: blocks sort runs of them, then each sample is ranked in all runs.
//
//   runs    a block sorts 1024 samples: each warp 128 of them in its registers; a sample's place is its place there and, by bisection, in
//           the chunks of the other warps
//   ranks   some blocks share a row, each with a part of its samples, and find the ranks of these in all runs by bisection. Samples of the
//           right ranks are splitters
//
// Equal samples rank by chunk and by run, so all ranks differ. Places of samples: as in choose_splitters.cuh.
#pragma once

#include <cstdint>

#include "../primitives/dependent_launch.cuh"
#include "../rows/lane_sort.cuh"
#include "choose_splitters.cuh"
#include "pulled_arguments.h"

namespace gpusort {

constexpr int kSampleRun = pulled_shapes::kSampleRun;
constexpr int kRunThreads = 256, kRankThreads = 1024;

template <class U>
__global__ __launch_bounds__(kRunThreads) void sort_sample_runs_kernel(const __grid_constant__ PulledArguments<U> all) {
  start_after_predecessor();
  using Code = BucketCode<U>;
  constexpr int kItems = kSampleRun / kRunThreads, kChunks = kSampleRun / kSampleChunk;
  static_assert(kItems * 32 == kSampleChunk, "a chunk to a warp");
  __shared__ Code samples[kSampleRun];
  const PartitionArguments<U>& arguments = all.partition;
  const uint32_t runs = arguments.samples / kSampleRun, row = blockIdx.x / runs, run = blockIdx.x - row * runs;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  if (blockIdx.x == 0 && thread < 2) arguments.overflow[thread] = 0;

  const U* const keys = arguments.keys_in + static_cast<uint64_t>(row) * arguments.length;
  Code codes[kItems];
  U sampled[kItems];
#pragma unroll
  for (int e = 0; e < kItems; ++e) sampled[e] = keys[sample_place(arguments, run * kSampleRun + e * kRunThreads + thread)];
#pragma unroll
  for (int e = 0; e < kItems; ++e) codes[e] = arguments.order.code(sampled[e]);
  lanes_sort<32>(codes, lane);
#pragma unroll
  for (int e = 0; e < kItems; ++e) samples[warp * kSampleChunk + lane * kItems + e] = codes[e];
  __syncthreads();
  Code* const to = all.samples + (static_cast<uint64_t>(row) * arguments.samples + run * kSampleRun);
  int rank[kItems];
#pragma unroll
  for (int e = 0; e < kItems; ++e) {
    codes[e] = samples[warp * kSampleChunk + e * 32 + lane];
    rank[e] = e * 32 + lane;
  }
#pragma unroll 1
  for (int k = 1; k < kChunks; ++k) {
    const int chunk = (warp + k) % kChunks;
#pragma unroll
    for (int e = 0; e < kItems; ++e) rank[e] += samples_before(samples + chunk * kSampleChunk, codes[e], chunk < warp);
  }
#pragma unroll
  for (int e = 0; e < kItems; ++e) to[rank[e]] = codes[e];
}

template <class U>
__global__ __launch_bounds__(kRankThreads) void rank_sample_runs_kernel(const __grid_constant__ PulledArguments<U> all) {
  start_after_predecessor();
  using Code = BucketCode<U>;
  constexpr int kVector = 16 / sizeof(Code), kBatch = 8, kTogether = 8;  // runs looked through at a time
  constexpr int kWarps = kRankThreads / 32;
  extern __shared__ __align__(16) uint8_t storage[];
  __shared__ uint32_t ranks[kRankThreads];
  const PartitionArguments<U>& arguments = all.partition;
  Code* const samples = reinterpret_cast<Code*>(storage);
  const uint32_t row = blockIdx.x / arguments.sample_blocks, part = blockIdx.x - row * arguments.sample_blocks;
  const uint32_t count = arguments.samples, runs = count / kSampleRun, buckets = arguments.buckets;
  const uint32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;

  const uint4* const from = reinterpret_cast<const uint4*>(all.samples + static_cast<uint64_t>(row) * count);
  const uint32_t vectors = count / kVector;
#pragma unroll 1
  for (uint32_t first = thread; first < vectors; first += kBatch * kRankThreads) {
    uint4 batch[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      if (first + k * kRankThreads < vectors) batch[k] = from[first + k * kRankThreads];
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      if (first + k * kRankThreads < vectors) reinterpret_cast<uint4*>(samples)[first + k * kRankThreads] = batch[k];
    }
  }

  const uint32_t own_begin = count * part / arguments.sample_blocks, own_end = count * (part + 1) / arguments.sample_blocks;
  const uint32_t slices = (runs + kTogether - 1) / kTogether;
#pragma unroll 1
  for (uint32_t begin = own_begin; begin < own_end; begin += kRankThreads) {
    const uint32_t size = min(own_end - begin, static_cast<uint32_t>(kRankThreads)), groups = (size + 31) / 32;
    ranks[thread] = 0;
    __syncthreads();
    // 32 samples and some runs to a warp.
#pragma unroll 1
    for (uint32_t task = warp; task < groups * slices; task += kWarps) {
      const uint32_t slice = task / groups, group = task - slice * groups, own = begin + min(group * 32 + lane, size - 1);
      const Code code = samples[own];
      const uint32_t home = own / kSampleRun;
      uint32_t before[kTogether];
      Code limit[kTogether];
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        before[k] = 0;
        limit[k] = code + (slice * kTogether + k < home ? 1 : 0);
      }
#pragma unroll 1
      for (uint32_t step = kSampleRun / 2; step > 0; step /= 2) {
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          const uint32_t run = min(slice * kTogether + k, runs - 1);
          before[k] += samples[run * kSampleRun + before[k] + step - 1] < limit[k] ? step : 0;
        }
      }
      uint32_t rank = 0;
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const uint32_t run = slice * kTogether + k;
        if (run >= runs) continue;
        const uint32_t found = before[k] + (samples[run * kSampleRun + before[k]] < limit[k] ? 1 : 0);
        rank += run == home ? own % kSampleRun : run < home && limit[k] == 0 ? kSampleRun : found;
      }
      if (group * 32 + lane < size) atomicAdd(ranks + group * 32 + lane, rank);
    }
    __syncthreads();
    if (thread < size) {
      const uint32_t rank = ranks[thread], bucket = (rank * buckets + count - 1) / count;
      if (bucket > 0 && bucket < buckets && bucket * count / buckets == rank) {
        arguments.splitters[static_cast<uint64_t>(row) * buckets + bucket] = samples[begin + thread];
      }
    }
    __syncthreads();
  }
}

}  // namespace gpusort
