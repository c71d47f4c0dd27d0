// Splitters of every row: samples from places spread over the row are ranked among each other; those of the right ranks are splitters.
//
// One key of each of many equal parts of the row is a sample, at an offset that a hash gives (sample_places.cuh). (Four neighbours in each
// saved 1 us of memory sectors, but are one sample where keys come in runs: the largest of 376 buckets of 2^20 such keys had 12,791 instead
// of 4,918.) Each warp sorts chunks of samples in its registers. Then a block that has the row for itself merges chunks, two by two: a
// sample's place is its place in its own run and, by bisection, in the other. When there are few rows, many blocks share one: they repeat
// the reading and the sorting of chunks, which is short, and each looks for a part of the samples in every chunk. Equal samples rank by
// chunk, so all ranks differ.
#pragma once

#include <cstdint>

#include "../primitives/dependent_launch.cuh"
#include "../rows/lane_sort.cuh"
#include "sample_places.cuh"
#include "splitter_tree.cuh"

namespace gpusort {

template <class U>
__device__ __forceinline__ uint32_t sample_place(const PartitionArguments<U>& arguments, uint32_t sample) {
  const uint32_t first = static_cast<uint32_t>(sample * arguments.sample_step >> 32);
  const uint32_t width = static_cast<uint32_t>((sample + 1) * arguments.sample_step >> 32) - first;
  return min(first + __umulhi(scramble(sample + arguments.sample_seed), width > 0 ? width : 1), arguments.length - 1);
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
constexpr int kSplitterWarps = kSplitterThreads / 32;

template <class U>
struct SplitterBlock {
  using Code = BucketCode<U>;

  const PartitionArguments<U>& arguments;
  Code* samples;    // shared memory
  uint32_t* ranks;  // of this block's own samples, when several blocks share the row
  uint32_t row, part;
  int count, thread, lane, warp;

  __device__ __forceinline__ SplitterBlock(const PartitionArguments<U>& all_arguments, uint8_t* storage)
      : arguments(all_arguments),
        samples(reinterpret_cast<Code*>(storage)),
        ranks(reinterpret_cast<uint32_t*>(samples + all_arguments.samples)),
        row(blockIdx.x / all_arguments.sample_blocks),
        part(blockIdx.x - row * all_arguments.sample_blocks),
        count(all_arguments.samples),
        thread(static_cast<int>(threadIdx.x)),
        lane(thread % 32),
        warp(thread / 32) {}

  // What the later kernels add to.
  __device__ __forceinline__ void clear_totals() const {
    if (part != 0) return;
    for (int b = thread; b < arguments.buckets; b += kSplitterThreads)
      arguments.totals[static_cast<uint64_t>(row) * arguments.buckets + b] = 0;
    if (blockIdx.x == 0 && thread < 2) arguments.overflow[thread] = 0;
  }

  __device__ __forceinline__ void load() const {
    const U* const keys = arguments.keys_in + static_cast<uint64_t>(row) * arguments.length;
    constexpr int kBatch = 8;
#pragma unroll 1
    for (int first = thread; first < count; first += kBatch * kSplitterThreads) {
      U batch[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int sample = first + i * kSplitterThreads;
        if (sample < count) batch[i] = keys[sample_place(arguments, sample)];
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int sample = first + i * kSplitterThreads;
        if (sample < count) samples[sample] = arguments.order.code(batch[i]);
      }
    }
    __syncthreads();
  }

  __device__ __forceinline__ void sort_chunks() const {
    constexpr int kItems = kSampleChunk / 32;
#pragma unroll 1
    for (int chunk = warp; chunk < count / kSampleChunk; chunk += kSplitterWarps) {
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
  }

  // Sorted runs of `run` samples become runs of twice as many. All reads are done before the first write.
  __device__ __forceinline__ void merge_runs(int run) const {
    constexpr int kItems = kMostBucketSamples / kSplitterThreads, kGroup = 4;
    Code codes[kItems];
    int places[kItems];
#pragma unroll
    for (int group = 0; group < kItems; group += kGroup) {
      if (group * kSplitterThreads >= count) break;
      int others[kGroup], others_count[kGroup], before[kGroup];
      bool after_equal[kGroup];
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const int place = min((group + k) * kSplitterThreads + thread, count - 1), own = place & -run;
        codes[group + k] = samples[place];
        others[k] = own ^ run;
        others_count[k] = max(0, min(run, count - others[k]));
        after_equal[k] = (own & run) != 0;
        places[group + k] = place - (own & run);
        before[k] = 0;
      }
#pragma unroll 1
      for (int step = run; step > 0; step /= 2) {
#pragma unroll
        for (int k = 0; k < kGroup; ++k) {
          const int next = before[k] + step;
          if (next > others_count[k]) continue;
          const Code other = samples[others[k] + next - 1];
          if (other < codes[group + k] || (after_equal[k] && other == codes[group + k])) before[k] = next;
        }
      }
#pragma unroll
      for (int k = 0; k < kGroup; ++k) places[group + k] += before[k];
    }
    __syncthreads();
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      if (item * kSplitterThreads + thread < count) samples[places[item]] = codes[item];
    }
    __syncthreads();
  }

  __device__ __forceinline__ Code* splitter(uint32_t bucket) const {
    return arguments.splitters + static_cast<uint64_t>(row) * arguments.buckets + bucket;
  }

  // Splitter b is the sample of rank floor(b * samples / buckets).
  __device__ __forceinline__ void split_alone() const {
#pragma unroll 1
    for (int run = kSampleChunk; run < count; run *= 2) merge_runs(run);
    for (int b = 1 + thread; b < arguments.buckets; b += kSplitterThreads) {
      *splitter(b) = samples[static_cast<uint32_t>(b) * count / arguments.buckets];
    }
  }

  __device__ __forceinline__ void split_together() const {
    const int own_begin = static_cast<int>(static_cast<uint32_t>(count) * part / arguments.sample_blocks);
    const int own_end = static_cast<int>(static_cast<uint32_t>(count) * (part + 1) / arguments.sample_blocks);
    for (int i = thread; i < own_end - own_begin; i += kSplitterThreads) ranks[i] = 0;
    __syncthreads();
#pragma unroll 1
    for (int own = own_begin + lane; own < own_end; own += 32) {
      const Code code = samples[own];
      const int home = own / kSampleChunk;
      uint32_t rank = 0;
#pragma unroll 2
      for (int chunk = warp; chunk < count / kSampleChunk; chunk += kSplitterWarps) {
        const int before = samples_before(samples + chunk * kSampleChunk, code, chunk < home);
        rank += chunk == home ? own % kSampleChunk : before;
      }
      atomicAdd(ranks + (own - own_begin), rank);
    }
    __syncthreads();
    const uint32_t all = count, buckets = arguments.buckets;
    for (int i = thread; i < own_end - own_begin; i += kSplitterThreads) {
      const uint32_t rank = ranks[i], bucket = (rank * buckets + all - 1) / all;
      if (bucket > 0 && bucket < buckets && bucket * all / buckets == rank) *splitter(bucket) = samples[own_begin + i];
    }
  }
};

template <class U>
__global__ __launch_bounds__(kSplitterThreads, 2) void choose_splitters_kernel(const __grid_constant__ PartitionArguments<U> arguments) {
  start_after_predecessor();
  extern __shared__ __align__(16) uint8_t storage[];
  const SplitterBlock<U> block(arguments, storage);
  block.clear_totals();
  block.load();
  block.sort_chunks();
  if (arguments.sample_blocks == 1) {
    block.split_alone();
  } else {
    block.split_together();
  }
}

}  // namespace gpusort
