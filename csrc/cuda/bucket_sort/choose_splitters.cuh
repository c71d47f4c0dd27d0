// Splitters of every row: samples from places spread over the row are ranked among each other; those of the right ranks are splitters.
//
// The places are the same for every input: one in each of `samples` equal parts of the row, at an offset that a hash of its number gives,
// so that periodic data meets no period. Each warp sorts chunks of samples in its registers; then every sample is looked for in every
// chunk. Equal samples rank by chunk, so all ranks differ. A few blocks share a row's ranking when there are few rows: they repeat the
// reading and the sorting of chunks, which is short, and divide the ranking.
#pragma once

#include <cstdint>

#include "../rows/lane_sort.cuh"
#include "splitter_tree.cuh"

namespace gpusort {

__device__ __forceinline__ uint32_t scramble(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

template <class U>
__device__ __forceinline__ uint32_t sample_place(const PartitionArguments<U>& arguments, uint32_t sample) {
  const uint32_t first = static_cast<uint32_t>(sample * arguments.sample_step >> 32);
  const uint32_t width = static_cast<uint32_t>((sample + 1) * arguments.sample_step >> 32) - first;
  return first + __umulhi(scramble(sample), width);
}

// How many of a sorted chunk come before `code`, or (after_equal) before or at it.
template <class Code>
__device__ __forceinline__ int samples_before(const Code* chunk, Code code, bool after_equal) {
  int before = 0;
#pragma unroll
  for (int step = kSampleChunk / 2; step > 0; step /= 2) {
    const Code sample = chunk[before + step - 1];
    before += sample < code || (after_equal && sample == code) ? step : 0;
  }
  const Code last = chunk[before];
  return before + (last < code || (after_equal && last == code) ? 1 : 0);
}

constexpr int kSplitterThreads = 512;

template <class U>
__global__ __launch_bounds__(kSplitterThreads) void choose_splitters_kernel(const __grid_constant__ PartitionArguments<U> arguments) {
  using Code = BucketCode<U>;
  extern __shared__ __align__(16) uint8_t storage[];
  Code* const samples = reinterpret_cast<Code*>(storage);
  uint32_t* const ranks = reinterpret_cast<uint32_t*>(samples + arguments.samples);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  constexpr int kWarps = kSplitterThreads / 32;
  const uint32_t row = blockIdx.x / arguments.sample_blocks, part = blockIdx.x - row * arguments.sample_blocks;

  // What the later kernels add to.
  if (part == 0) {
    for (int b = thread; b < arguments.buckets; b += kSplitterThreads)
      arguments.totals[static_cast<uint64_t>(row) * arguments.buckets + b] = 0;
    if (blockIdx.x == 0 && thread < 2) arguments.overflow[thread] = 0;
  }

  const U* const keys = arguments.keys_in + static_cast<uint64_t>(row) * arguments.length;
  constexpr int kBatch = 8;
#pragma unroll 1
  for (int first = thread; first < arguments.samples; first += kBatch * kSplitterThreads) {
    U batch[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int sample = first + i * kSplitterThreads;
      if (sample < arguments.samples) batch[i] = keys[sample_place(arguments, sample)];
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int sample = first + i * kSplitterThreads;
      if (sample < arguments.samples) samples[sample] = arguments.order.code(batch[i]);
    }
  }
  const int own_begin = static_cast<int>(static_cast<uint32_t>(arguments.samples) * part / arguments.sample_blocks);
  const int own_end = static_cast<int>(static_cast<uint32_t>(arguments.samples) * (part + 1) / arguments.sample_blocks);
  for (int i = thread; i < own_end - own_begin; i += kSplitterThreads) ranks[i] = 0;
  __syncthreads();

  const int chunks = arguments.samples / kSampleChunk;
  constexpr int kItems = kSampleChunk / 32;
#pragma unroll 1
  for (int chunk = warp; chunk < chunks; chunk += kWarps) {
    Code* const from = samples + chunk * kSampleChunk;
    Code codes[kItems];
#pragma unroll
    for (int e = 0; e < kItems; ++e) codes[e] = from[e * 32 + lane];
    lanes_sort<32>(codes, lane);
    __syncwarp();
#pragma unroll
    for (int e = 0; e < kItems; ++e) from[lane * kItems + e] = codes[e];
  }
  __syncthreads();

#pragma unroll 1
  for (int own = own_begin + lane; own < own_end; own += 32) {
    const Code code = samples[own];
    const int home = own / kSampleChunk;
    uint32_t rank = 0;
#pragma unroll 2
    for (int chunk = warp; chunk < chunks; chunk += kWarps) {
      const int before = samples_before(samples + chunk * kSampleChunk, code, chunk < home);
      rank += chunk == home ? own % kSampleChunk : before;
    }
    atomicAdd(ranks + (own - own_begin), rank);
  }
  __syncthreads();

  // Splitter b is the sample of rank floor(b * samples / buckets).
  const uint32_t count = arguments.samples, buckets = arguments.buckets;
  for (int i = thread; i < own_end - own_begin; i += kSplitterThreads) {
    const uint32_t rank = ranks[i], bucket = (rank * buckets + count - 1) / count;
    if (bucket > 0 && bucket < buckets && bucket * count / buckets == rank) {
      arguments.splitters[static_cast<uint64_t>(row) * buckets + bucket] = samples[own_begin + i];
    }
  }
}

}  // namespace gpusort
