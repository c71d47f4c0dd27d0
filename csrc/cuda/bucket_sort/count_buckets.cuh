// How many keys of each tile fall into each bucket, and from that where each tile's part of each bucket begins: so the partition waits for
// nobody, and every bucket's size is known before it.
#pragma once

#include <cstdint>

#include "../primitives/shared_memory.cuh"
#include "bucket_arguments.h"
#include "partition_tile.cuh"

namespace gpusort {

template <class U, int kItems>
__global__ __launch_bounds__(kPartitionThreads) void count_buckets_kernel(const __grid_constant__ PartitionArguments<U> arguments) {
  using Code = BucketCode<U>;
  __shared__ Code tree[kMostBuckets];
  __shared__ uint32_t counters[kMostBuckets];
  PartitionTile<U, kItems> tile(arguments);
  tile.load(arguments);
  build_splitter_tree(tree, arguments, tile.row);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  for (int b = thread; b < arguments.buckets; b += kPartitionThreads) counters[b] = 0;
  __syncthreads();

  const uint32_t shared_counters = shared_address(counters);
  bool runs = false;
  tile.for_each_group(arguments, tree, [&](int group, const uint32_t(&buckets)[kPartitionGroup]) {
    if (group == 0) runs = sees_runs(buckets);
#pragma unroll
    for (int k = 0; k < kPartitionGroup; ++k) {
      if (group + k >= tile.rounds) continue;
      if (runs && __all_sync(~0u, buckets[k] == __shfl_sync(~0u, buckets[k], 0))) {
        if (lane == 0) add_shared(shared_counters + buckets[k] * 4, 32);
      } else {
        add_shared(shared_counters + buckets[k] * 4, 1);
      }
    }
  });
  __syncthreads();

  uint32_t* const counts = tile.counts(arguments);
  uint32_t* const totals = arguments.totals + static_cast<uint64_t>(tile.row) * arguments.buckets;
  for (int b = thread; b < arguments.buckets; b += kPartitionThreads) {
    const uint32_t pads = b == arguments.buckets - 1 ? arguments.tile_length - tile.count : 0;
    const uint32_t count = counters[b] - pads;
    counts[b] = count;
    if (count != 0) atomicAdd(totals + b, count);
  }
}

// The first place of the sorted `floors` that is at least `code`, or (after_equal) above it.
template <class Code>
__device__ __forceinline__ int floors_before(const Code* floors, int count, Code code, bool after_equal) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (floors[middle] < code || (after_equal && floors[middle] == code)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

constexpr int kScanThreads = 512;

// Turns the counts of 32 buckets of a row, in all its tiles, into positions in the row, and writes where the buckets begin. A warp takes a
// part of the tiles.
template <class U>
__global__ __launch_bounds__(kScanThreads) void scan_counts_kernel(const __grid_constant__ PartitionArguments<U> arguments) {
  using Code = BucketCode<U>;
  constexpr int kWarps = kScanThreads / 32;
  __shared__ Code floors[kMostBuckets];
  __shared__ uint32_t sums[kWarps][32];  // of a warp's tiles; at first: of buckets before
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32, buckets = arguments.buckets;
  const uint32_t slices = (buckets + 31) / 32, row = blockIdx.x / slices;
  const int first_bucket = static_cast<int>(blockIdx.x - row * slices) * 32, bucket = first_bucket + lane;
  const bool real = bucket < buckets;
  const uint32_t* const totals = arguments.totals + static_cast<uint64_t>(row) * buckets;
  uint32_t* const counts = arguments.counts + static_cast<uint64_t>(row) * arguments.tiles_per_row * buckets;
  const Code* const splitters = arguments.splitters + static_cast<uint64_t>(row) * buckets;

  const int tiles = static_cast<int>(arguments.tiles_per_row), share = (tiles + kWarps - 1) / kWarps;
  const int begin = min(warp * share, tiles), end = min(begin + share, tiles);
  uint32_t own = 0;
  if (real) {
#pragma unroll 8
    for (int tile = begin; tile < end; ++tile) own += counts[static_cast<uint64_t>(tile) * buckets + bucket];
  }
  uint32_t before = 0;
  for (int b = thread; b < first_bucket; b += kScanThreads) before += totals[b];
  before = __reduce_add_sync(~0u, before);
  for (int b = thread; b < buckets; b += kScanThreads) floors[b] = b == 0 ? 0 : bucket_floor(splitters, b, buckets, highest_code<U>());
  if (lane == 0) sums[warp][0] = before;
  __syncthreads();
  uint32_t base = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) base += sums[w][0];
  __syncthreads();
  sums[warp][lane] = own;
  __syncthreads();

  uint32_t total = 0, position = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    const uint32_t sum = sums[w][lane];
    total += sum;
    position += w < warp ? sum : 0;
  }
  uint32_t inclusive = total;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, inclusive, distance);
    if (lane >= distance) inclusive += other;
  }
  base += inclusive - total;
  position += base;
  if (!real) return;
#pragma unroll 8
  for (int tile = begin; tile < end; ++tile) {
    uint32_t& word = counts[static_cast<uint64_t>(tile) * buckets + bucket];
    const uint32_t count = word;
    word = position;
    position += count;
  }
  if (warp != 0) return;

  // The bucket that holds code floor(bucket) is the last one with this floor. If it holds no other code, its keys are divided among all
  // buckets with this floor, the others being empty.
  uint32_t* const begins = arguments.begins + static_cast<uint64_t>(row) * (buckets + 1);
  const Code floor = floors[bucket];
  const int first_alike = floors_before(floors, buckets, floor, false), last_alike = floors_before(floors, buckets, floor, true) - 1;
  const bool one_code = floor == highest_code<U>() || (last_alike + 1 < buckets && floors[last_alike + 1] == floor + 1);
  if (one_code) {
    const uint64_t keys = totals[last_alike];
    const uint32_t alike = last_alike - first_alike + 1;
    begins[bucket] = (base + static_cast<uint32_t>(keys * (bucket - first_alike) / alike)) | kEqualBucket;
  } else {
    begins[bucket] = base;
  }
  if (bucket == buckets - 1) begins[buckets] = arguments.length;
}

}  // namespace gpusort
