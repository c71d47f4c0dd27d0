// How many keys of each tile fall into each bucket, and from that where each tile's part of each bucket begins: so the partition waits for
// nobody, and every bucket's size is known before it.
#pragma once

#include <cstdint>

#include "../primitives/dependent_launch.cuh"
#include "../primitives/shared_memory.cuh"
#include "bucket_begins.cuh"
#include "partition_tile.cuh"

namespace gpusort {

constexpr int kCounterWords = 2048;

// Each bucket has as many counters as there is room for, up to one for each lane, and a lane keeps to its own: so lanes meet at a bank, or
// at a counter, the less the fewer buckets there are. Keys are counted while the next ones are on their way.
template <class U>
struct BucketCounter {
  using Code = BucketCode<U>;
  static constexpr uint32_t kStep = kPartitionThreads * kPartitionGroup;

  const PartitionArguments<U>& arguments;
  const Code* tree;
  uint32_t own_counters;  // shared address of this lane's counter of leaf 0, less the number of leaves
  uint32_t stride;        // bytes of a leaf's counters

  template <bool kAll>
  __device__ __forceinline__ static void load(const U* from, uint32_t left, U (&keys)[kPartitionGroup]) {
#pragma unroll
    for (uint32_t k = 0; k < kPartitionGroup; ++k) {
      if (kAll || k * kPartitionThreads < left) keys[k] = from[k * kPartitionThreads];
    }
  }

  template <bool kAll>
  __device__ __forceinline__ void count(const U (&keys)[kPartitionGroup], uint32_t left) const {
    Code codes[kPartitionGroup];
    uint32_t leaves[kPartitionGroup];
#pragma unroll
    for (int k = 0; k < kPartitionGroup; ++k) codes[k] = arguments.order.code(keys[k]);
    find_leaves(tree, arguments.levels, codes, leaves);
#pragma unroll
    for (uint32_t k = 0; k < kPartitionGroup; ++k) {
      if (kAll || k * kPartitionThreads < left) add_shared(own_counters + leaves[k] * stride, 1);
    }
  }

  // This thread's keys of a tile: every kPartitionThreads-th one.
  __device__ __forceinline__ void count_tile(const U* from, uint32_t keys_in_tile) const {
    from += threadIdx.x;
    uint32_t left = keys_in_tile - min(keys_in_tile, threadIdx.x);  // from this thread's next one on
    uint32_t steps = keys_in_tile / kStep;
    U keys[kPartitionGroup] = {};
    if (steps > 0) load<true>(from, left, keys);
#pragma unroll 1
    for (; steps > 1; --steps) {
      from += kStep;
      left -= kStep;
      U next[kPartitionGroup];
      load<true>(from, left, next);
      count<true>(keys, left);
#pragma unroll
      for (int k = 0; k < kPartitionGroup; ++k) keys[k] = next[k];
    }
    if (steps > 0) {
      count<true>(keys, left);
      from += kStep;
      left -= min(left, kStep);
    }
    if (left > 0) {
      load<false>(from, left, keys);
      count<false>(keys, left);
    }
  }
};

template <class U>
__global__ __launch_bounds__(kPartitionThreads, 4) void count_buckets_kernel(const __grid_constant__ PartitionArguments<U> arguments) {
  start_after_predecessor();
  using Code = BucketCode<U>;
  __shared__ Code tree[kMostBuckets];
  __shared__ __align__(16) uint32_t counters[kCounterWords];
  const uint32_t row = blockIdx.x / arguments.tiles_per_row, number = blockIdx.x - row * arguments.tiles_per_row;
  const uint32_t first = number * arguments.tile_length;
  const int thread = static_cast<int>(threadIdx.x), levels = arguments.levels, buckets = arguments.buckets;
  build_splitter_tree(tree, arguments, row);
  clear_shared_16_bytes(shared_address(counters) + thread * 16);
  static_assert(kCounterWords == 4 * kPartitionThreads && kCounterWords >= 2 * kMostBuckets, "");
  __syncthreads();

  const int lanes = min(32, kCounterWords >> levels);  // that have counters of their own; a power of 2
  const uint32_t stride = lanes * 4;
  const BucketCounter<U> counter{arguments, tree, shared_address(counters) + (thread & (lanes - 1)) * 4 - (stride << levels), stride};
  counter.count_tile(arguments.keys_in + (static_cast<uint64_t>(row) * arguments.length + first),
                     min(arguments.tile_length, arguments.length - first));
  __syncthreads();

  uint32_t* const counts = arguments.counts + (static_cast<uint64_t>(row) * arguments.tiles_per_row + number) * buckets;
  uint32_t* const totals = arguments.totals + static_cast<uint64_t>(row) * buckets;
  for (int b = thread; b < buckets; b += kPartitionThreads) {
    const int last_leaf = b == buckets - 1 ? (1 << levels) - 1 : b;
    uint32_t count = 0;
#pragma unroll 8
    for (int lane = 0; lane < lanes; ++lane) count += counters[b * lanes + ((lane + thread) & (lanes - 1))];
    if (last_leaf != b) {
      for (int lane = 0; lane < lanes; ++lane) count += counters[last_leaf * lanes + lane];
    }
    counts[b] = count;
    if (count != 0) atomicAdd(totals + b, count);
  }
}

constexpr int kScanThreads = 512;

// Turns the counts of 32 buckets of a row, in all its tiles, into positions in the row, and writes where the buckets begin. A warp takes a
// part of the tiles.
template <class U>
__global__ __launch_bounds__(kScanThreads) void scan_counts_kernel(const __grid_constant__ PartitionArguments<U> arguments) {
  start_after_predecessor();
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

  uint32_t* const begins = arguments.begins + static_cast<uint64_t>(row) * (buckets + 1);
  begins[bucket] = bucket_begin(
      bucket, buckets, highest_code<U>(), base, [&](int b) { return floors[b]; }, [&](int b) { return totals[b]; });
  if (bucket == buckets - 1) begins[buckets] = arguments.length;
}

}  // namespace gpusort
