// The partition of short rows in one launch, where bucket_sort.cu has four: all blocks are resident, hold one tile each from the first read
// of the keys until they are in their buckets, and meet at three grid barriers.
//
//   samples    every block reads its tile into registers, and publishes codes of it, sorted
//   barrier
//   splitters  each block ranks its tile's samples among all of the row; those of the right ranks are splitters
//   barrier
//   count      keys are ranked in their buckets within the tile and brought into their order in shared memory (partition.cuh); the tile's
//              counts are published, and added to those of its group of tiles
//   barrier
//   partition  keys of earlier tiles: the sums of earlier groups and the counts of earlier tiles of the own group. From these and the
//              sizes of all buckets each block finds where its parts go, and writes them; they stay in L2
//
// It is stable for the reasons in bucket_sort.cu. Equal samples rank by tile, so all ranks differ. The keys are read once. The buckets are
// sorted by kernels of their own (bucket_rows.cuh): in here, after one more barrier, they took longer than those with their launches, since
// the two halves of the kernel spilled each other's registers or, out of line, read their arguments from memory. Sources: as
// bucket_sort.cu.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "../primitives/block_scan.cuh"
#include "../primitives/dependent_launch.cuh"
#include "../primitives/shared_memory.cuh"
#include "../rows/lane_sort.cuh"
#include "bucket_begins.cuh"
#include "one_launch_arguments.h"
#include "partition.cuh"
#include "sample_places.cuh"

namespace gpusort {

template <class U, int kItems>
struct OneLaunchBlock {
  using Code = BucketCode<U>;
  using Tile = PartitionTile<U, kItems>;
  using Partition = PartitionBlock<U, true, kItems>;
  static constexpr int kThreads = kPartitionThreads;
  static constexpr int kSamples = one_launch_shapes::samples_of_tile(kItems);
  static constexpr int kSampleItems = kSamples / 32;  // to a lane

  const OneLaunchArguments<U>& all;
  const PartitionArguments<U>& arguments;
  uint8_t* storage;
  uint32_t row, number;  // of the tile
  int thread, lane, warp, buckets, pairs;

  __device__ __forceinline__ OneLaunchBlock(const OneLaunchArguments<U>& all_arguments, uint8_t* shared)
      : all(all_arguments),
        arguments(all_arguments.partition),
        storage(shared),
        row(blockIdx.x / all_arguments.partition.tiles_per_row),
        number(blockIdx.x - row * all_arguments.partition.tiles_per_row),
        thread(static_cast<int>(threadIdx.x)),
        lane(thread % 32),
        warp(thread / 32),
        buckets(all_arguments.partition.buckets),
        pairs((all_arguments.partition.buckets + 1) / 2) {}

  __device__ __forceinline__ uint32_t first_of(uint32_t tile) const {
    return static_cast<uint32_t>(static_cast<uint64_t>(tile) * arguments.length / arguments.tiles_per_row);
  }
  __device__ __forceinline__ Tile make_tile() const {
    const uint32_t first = first_of(number);
    return Tile(row, number, first, first_of(number + 1) - first, (arguments.tile_length + kThreads - 1) / kThreads);
  }

  __device__ __forceinline__ uint32_t* group_counts(uint32_t group) const {
    return all.group_counts + (static_cast<uint64_t>(row) * all.groups_per_row + group) * (2 * pairs);
  }
  __device__ __forceinline__ uint32_t* tile_counts(uint32_t tile) const {
    return arguments.counts + (static_cast<uint64_t>(row) * arguments.tiles_per_row + tile) * pairs;
  }

  // What later steps add to.
  __device__ __forceinline__ void clear() const {
    const uint32_t words = arguments.rows * all.groups_per_row * (2 * pairs);
    for (uint32_t i = blockIdx.x * kThreads + thread; i < words; i += gridDim.x * kThreads) all.group_counts[i] = 0;
    if (blockIdx.x == 0 && thread < 2) arguments.overflow[thread] = 0;
  }

  // The first warp: one key of each of kSamples equal parts of the tile, at a place that does not depend on the keys (sample_places.cuh).
  __device__ __forceinline__ void publish_samples(const Tile& tile) const {
    const U* const keys = arguments.keys_in + (static_cast<uint64_t>(row) * arguments.length + tile.first);
    U sampled[kSampleItems];
#pragma unroll
    for (int e = 0; e < kSampleItems; ++e) {
      const uint32_t part = e * 32 + lane, begin = part * tile.count / kSamples, end = (part + 1) * tile.count / kSamples;
      sampled[e] = keys[begin + __umulhi(scramble(blockIdx.x * kSamples + part + arguments.sample_seed), end - begin)];
    }
    Code codes[kSampleItems];
#pragma unroll
    for (int e = 0; e < kSampleItems; ++e) codes[e] = arguments.order.code(sampled[e]);
    lanes_sort<32>(codes, lane);
    Code* const to = all.samples + static_cast<uint64_t>(blockIdx.x) * kSamples + lane * kSampleItems;
#pragma unroll
    for (int e = 0; e < kSampleItems; ++e) to[e] = codes[e];
  }

  // How many samples of a tile are below `limit`.
  __device__ __forceinline__ static int samples_below(const Code* samples, Code limit) {
    int before = 0;
#pragma unroll
    for (int step = kSamples / 2; step > 0; step /= 2) before += samples[before + step - 1] < limit ? step : 0;
    return before + (samples[before] < limit ? 1 : 0);
  }

  // Splitter b is the sample of rank floor(b * samples / buckets). Each warp looks for the tile's own samples, one to a lane, in some
  // tiles.
  __device__ __forceinline__ void choose_splitters() const {
    Code* const samples = reinterpret_cast<Code*>(storage);
    const uint32_t tiles = arguments.tiles_per_row, count = tiles * kSamples;
    uint32_t* const ranks = reinterpret_cast<uint32_t*>(samples + count);
    constexpr int kVector = 16 / sizeof(Code), kBatch = 5;
    const uint4* const from = reinterpret_cast<const uint4*>(all.samples + static_cast<uint64_t>(row) * count);
    const uint32_t vectors = count / kVector;
#pragma unroll 1
    for (uint32_t first = thread; first < vectors; first += kBatch * kThreads) {
      uint4 batch[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        if (first + k * kThreads < vectors) batch[k] = from[first + k * kThreads];
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        if (first + k * kThreads < vectors) reinterpret_cast<uint4*>(samples)[first + k * kThreads] = batch[k];
      }
    }
    if (thread < kSamples) ranks[thread] = 0;
    __syncthreads();
    Code own[kSampleItems];
    uint32_t rank[kSampleItems];
#pragma unroll
    for (int e = 0; e < kSampleItems; ++e) {
      own[e] = samples[number * kSamples + e * 32 + lane];
      rank[e] = 0;
    }
#pragma unroll 4
    for (uint32_t tile = warp; tile < tiles; tile += kThreads / 32) {
#pragma unroll
      for (int e = 0; e < kSampleItems; ++e) {
        const Code limit = own[e] + (tile < number ? 1 : 0);
        const int before = samples_below(samples + tile * kSamples, limit);
        rank[e] += tile == number ? e * 32 + lane : tile < number && limit == 0 ? kSamples : before;
      }
    }
#pragma unroll
    for (int e = 0; e < kSampleItems; ++e) atomicAdd(ranks + e * 32 + lane, rank[e]);
    __syncthreads();
    if (thread < kSamples) {
      const uint32_t found = ranks[thread], bucket = (found * buckets + count - 1) / count;
      if (bucket > 0 && bucket < static_cast<uint32_t>(buckets) && bucket * count / buckets == found) {
        arguments.splitters[static_cast<uint64_t>(row) * buckets + bucket] = samples[number * kSamples + thread];
      }
    }
  }

  // The tile's counts without its pads, which are at the end of its last bucket.
  __device__ __forceinline__ void publish_counts(const Tile& tile, uint32_t both) const {
    if (thread >= pairs) return;
    if (thread == pairs - 1) both -= (tile.places() - tile.count) << (buckets % 2 == 0 ? 16 : 0);
    tile_counts(number)[thread] = both;
    uint32_t* const sums = group_counts(number / kOneLaunchGroup) + 2 * thread;
    atomicAdd(sums, both & 0xffff);
    atomicAdd(sums + 1, both >> 16);
  }

  // What offsets lack is added to them: positions in the row of the tile's parts of the buckets. And writes where some buckets begin.
  // `before` and `totals`, of buckets, lie where the counters were.
  __device__ __forceinline__ void find_positions(const Partition& partition, BlockScanStorage<uint32_t>& scan) const {
    uint32_t* const before = reinterpret_cast<uint32_t*>(storage);
    uint32_t* const totals = before + 2 * pairs;
    const uint32_t group = number / kOneLaunchGroup;
    uint32_t early[2] = {0, 0}, total[2] = {0, 0};
    // Whole warps share a row of the tables; as many rows are read at once as there are warps for, and from both tables.
    const int width = (pairs + 31) / 32 * 32, sets = kThreads / width, set = thread / width, pair = thread - set * width;
    if (set < sets && pair < pairs) {
      constexpr int kBatch = 6;
      const uint32_t groups = all.groups_per_row;
#pragma unroll 1
      for (uint32_t first = set; first < max(groups, static_cast<uint32_t>(kOneLaunchGroup)); first += kBatch * sets) {
        uint32_t of_tile[kBatch];
        uint2 of_group[kBatch];
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
          const uint32_t at = first + k * sets, tile = group * kOneLaunchGroup + at;
          of_tile[k] = tile < number ? tile_counts(tile)[pair] : 0;
          of_group[k] = at < groups ? reinterpret_cast<const uint2*>(group_counts(at))[pair] : make_uint2(0, 0);
        }
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
          const bool before_own = first + k * sets < group;
          early[0] += (of_tile[k] & 0xffff) + (before_own ? of_group[k].x : 0);
          early[1] += (of_tile[k] >> 16) + (before_own ? of_group[k].y : 0);
          total[0] += of_group[k].x;
          total[1] += of_group[k].y;
        }
      }
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        add_shared(shared_address(before + 2 * pair + k), early[k]);
        add_shared(shared_address(totals + 2 * pair + k), total[k]);
      }
    }
    __syncthreads();
    const bool active = thread < pairs;
    uint32_t sums[2] = {0, 0}, all_keys;
    if (active) {
      sums[0] = totals[2 * thread];
      sums[1] = totals[2 * thread + 1];
    }
    const uint32_t base = block_exclusive_scan(sums[0] + sums[1], all_keys, scan);
    if (active) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int bucket = 2 * thread + k;
        const uint32_t begin = base + (k == 0 ? 0 : sums[0]);
        if (bucket < buckets) partition.offsets[bucket] += begin + before[bucket];
        before[bucket] = begin;
      }
    }
    __syncthreads();
  }

  // Each tile of a row writes some.
  __device__ __forceinline__ void write_begins(const Partition& partition) const {
    const uint32_t* const bases = reinterpret_cast<const uint32_t*>(storage);
    const uint32_t* const totals = bases + 2 * pairs;
    const Code* const tree = reinterpret_cast<const Code*>(storage + partition.layout.splitters);
    uint32_t* const begins = arguments.begins + static_cast<uint64_t>(row) * (buckets + 1);
    for (int bucket = number + thread * arguments.tiles_per_row; bucket < buckets; bucket += kThreads * arguments.tiles_per_row) {
      begins[bucket] = bucket_begin(
          bucket, buckets, highest_code<U>(), bases[bucket],
          [&](int b) { return b == 0 ? Code{0} : tree[splitter_node(b, arguments.levels)]; }, [&](int b) { return totals[b]; });
    }
    if (number == 0 && thread == 0) begins[buckets] = arguments.length;
  }

  template <class Grid>
  __device__ __forceinline__ void partition(const Grid& grid, BlockScanStorage<uint32_t>& scan) const {
    Tile tile = make_tile();
    tile.load(arguments);
    if (warp == 0) publish_samples(tile);
    clear();
    grid.sync();
    choose_splitters();
    grid.sync();
    const Partition partition(arguments, storage);
    build_splitter_tree(reinterpret_cast<Code*>(storage + partition.layout.splitters), arguments, row);
    for (int word = thread; word < partition.layout.offsets / 16; word += kThreads) {
      clear_shared_16_bytes(shared_address(storage) + word * 16);
    }
    __syncthreads();
    uint32_t ranked[kItems];
    partition.rank(tile, ranked);
    __syncthreads();
    const uint32_t both = partition.count_pair();
    publish_counts(tile, both);
    auto arrived = grid.barrier_arrive();
    const uint32_t nowhere[2] = {0, 0};
    partition.place_buckets(both, nowhere, scan);
    __syncthreads();
    partition.scatter(tile, ranked);
    __syncthreads();
    for (int word = thread; word < pairs; word += kThreads) clear_shared_16_bytes(shared_address(storage) + word * 16);
    grid.barrier_wait(static_cast<decltype(arrived)&&>(arrived));
    find_positions(partition, scan);
    write_begins(partition);
    if (__syncthreads_or(partition.write(tile))) partition.mend(tile);
  }
};

// Two blocks to an SM, one to a tile of the rows.
template <class U, int kItems>
__global__ void __launch_bounds__(kPartitionThreads, one_launch_shapes::kBlocksPerSm)
    one_launch_kernel(const __grid_constant__ OneLaunchArguments<U> arguments) {
  start_after_predecessor();
  extern __shared__ uint4 shared_memory[];
  __shared__ BlockScanStorage<uint32_t> scan;
  OneLaunchBlock<U, kItems>(arguments, reinterpret_cast<uint8_t*>(shared_memory)).partition(cooperative_groups::this_grid(), scan);
}

}  // namespace gpusort
