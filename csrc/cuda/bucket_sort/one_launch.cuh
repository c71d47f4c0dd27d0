// The bucket sort of short rows in one launch: all blocks are resident, hold one tile each from the first read of the keys until they are
// in their buckets, and meet at four grid barriers.
//
//   samples    every block reads its tile into registers; one block of each group of tiles publishes codes of all tiles of it, sorted
//   barrier
//   splitters  each block ranks some samples among all of the row; those of the right ranks are splitters
//   barrier
//   count      keys are ranked in their buckets within the tile and brought into their order in shared memory (partition.cuh); the tile's
//              counts are published, and added to those of its group of tiles
//   barrier
//   partition  keys of earlier tiles: the sums of earlier groups and the counts of earlier tiles of the own group. From these and the
//              sizes of all buckets each block finds where its parts go, and writes them; they stay in L2
//   barrier
//   buckets    blocks sort buckets in turn (bucket_rows.cuh), then those of theirs that need it by bucket_exact.cuh
//
// It is stable for the reasons in bucket_sort.cu. Equal samples rank by group, so all ranks differ. The keys are read once, the records go
// to L2 and back. What is too large or too crowded for that is left to bucket_rest.cuh. Sources: as bucket_sort.cu.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "../primitives/block_scan.cuh"
#include "../primitives/dependent_launch.cuh"
#include "../primitives/shared_memory.cuh"
#include "../rows/lane_sort.cuh"
#include "bucket_begins.cuh"
#include "bucket_exact.cuh"
#include "bucket_rest.cuh"
#include "bucket_rows.cuh"
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

  // The first tile of a group: samples of all tiles of it, one key of each of kSamples equal parts of a tile, at places that do not depend
  // on the keys. A warp sorts those of a tile; then runs are merged, two by two: a sample's place is its place in its own run and, by
  // bisection, in the other. Equal samples stay in the order of the tiles.
  __device__ __forceinline__ void publish_samples() const {
    const uint32_t tiles = min(static_cast<uint32_t>(kOneLaunchGroup), arguments.tiles_per_row - number), count = tiles * kSamples;
    static_assert(kThreads / 32 == kOneLaunchGroup, "a warp to a tile");
    Code* const samples = reinterpret_cast<Code*>(storage);
    if (static_cast<uint32_t>(warp) < tiles) {
      const uint32_t first = first_of(number + warp), keys_in_tile = first_of(number + warp + 1) - first;
      const U* const keys = arguments.keys_in + (static_cast<uint64_t>(row) * arguments.length + first);
      U sampled[kSampleItems];
#pragma unroll
      for (int e = 0; e < kSampleItems; ++e) {
        const uint32_t part = e * 32 + lane, begin = part * keys_in_tile / kSamples, end = (part + 1) * keys_in_tile / kSamples;
        sampled[e] = keys[begin + __umulhi(scramble((blockIdx.x + warp) * kSamples + part), end - begin)];
      }
      Code codes[kSampleItems];
#pragma unroll
      for (int e = 0; e < kSampleItems; ++e) codes[e] = arguments.order.code(sampled[e]);
      lanes_sort<32>(codes, lane);
#pragma unroll
      for (int e = 0; e < kSampleItems; ++e) samples[warp * kSamples + lane * kSampleItems + e] = codes[e];
    }
    __syncthreads();
#pragma unroll 1
    for (uint32_t run = kSamples; run < count; run *= 2) {
      Code codes[kSampleItems];
      uint32_t places[kSampleItems];
#pragma unroll
      for (int e = 0; e < kSampleItems; ++e) {
        const uint32_t place = e * kThreads + thread, own = place & (0u - run), other = own ^ run;
        const uint32_t others = other < count ? min(run, count - other) : 0;
        const bool later = (own & run) != 0;
        codes[e] = place < count ? samples[place] : Code{0};
        places[e] = place - (own & run) + (place < count ? samples_below(samples + other, others, run, codes[e], later) : 0);
      }
      __syncthreads();
#pragma unroll
      for (int e = 0; e < kSampleItems; ++e) {
        if (e * kThreads + static_cast<uint32_t>(thread) < count) samples[places[e]] = codes[e];
      }
      __syncthreads();
    }
    Code* const to = all.samples + (static_cast<uint64_t>(row) * arguments.tiles_per_row + number) * kSamples;
    for (uint32_t place = thread; place < count; place += kThreads) to[place] = samples[place];
  }

  // How many of `count` sorted samples, at most `most` (a power of 2), are below `code`, or (or_equal) below or at it.
  __device__ __forceinline__ static uint32_t samples_below(const Code* samples, uint32_t count, uint32_t most, Code code, bool or_equal) {
    uint32_t before = 0;
#pragma unroll 1
    for (uint32_t step = most; step > 0; step /= 2) {
      const uint32_t next = before + step;
      if (next <= count) {
        const Code sample = samples[next - 1];
        if (sample < code || (or_equal && sample == code)) before = next;
      }
    }
    return before;
  }

  // Splitter b is the sample of rank floor(b * samples / buckets). Each block looks for kSamples of them, one to a lane, in the sorted
  // samples of all groups, a warp in each.
  __device__ __forceinline__ void choose_splitters() const {
    Code* const samples = reinterpret_cast<Code*>(storage);
    const uint32_t count = arguments.tiles_per_row * kSamples;
    constexpr uint32_t kGroupSamples = kOneLaunchGroup * kSamples;
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
    const uint32_t home = number / kOneLaunchGroup, first_own = number * kSamples;
    if (thread < kSamples) ranks[thread] = first_own - home * kGroupSamples + thread;  // in its own group
    __syncthreads();
#pragma unroll 1
    for (uint32_t group = warp; group < all.groups_per_row; group += kThreads / 32) {
      if (group == home) continue;
      const uint32_t first = group * kGroupSamples;
#pragma unroll
      for (int e = 0; e < kSampleItems; ++e) {
        const uint32_t own = e * 32 + lane;
        atomicAdd(ranks + own,
                  samples_below(samples + first, min(kGroupSamples, count - first), kGroupSamples, samples[first_own + own], group < home));
      }
    }
    __syncthreads();
    if (thread < kSamples) {
      const uint32_t found = ranks[thread], bucket = (found * buckets + count - 1) / count;
      if (bucket > 0 && bucket < static_cast<uint32_t>(buckets) && bucket * count / buckets == found) {
        arguments.splitters[static_cast<uint64_t>(row) * buckets + bucket] = samples[first_own + thread];
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

  // Calls visit(pair, value) for rows [begin, end) of a table of pairs: whole warps share a row of it, and as many rows are read at once as
  // there are warps for.
  template <class Load, class Visit>
  __device__ __forceinline__ void for_each_pair(uint32_t begin, uint32_t end, Load load, Visit visit) const {
    constexpr int kBatch = 8;
    const int width = (pairs + 31) / 32 * 32, sets = kThreads / width, set = thread / width, pair = thread - set * width;
    if (set >= sets || pair >= pairs) return;
#pragma unroll 1
    for (uint32_t first = begin + set; first < end; first += kBatch * sets) {
      decltype(load(0u, 0)) batch[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        if (first + k * sets < end) batch[k] = load(first + k * sets, pair);
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        if (first + k * sets < end) visit(first + k * sets, pair, batch[k]);
      }
    }
  }

  // What offsets lack is added to them: positions in the row of the tile's parts of the buckets. And writes where some buckets begin.
  // `before` and `totals`, of buckets, lie where the counters were.
  __device__ __forceinline__ void find_positions(const Partition& partition, BlockScanStorage<uint32_t>& scan) const {
    uint32_t* const before = reinterpret_cast<uint32_t*>(storage);
    uint32_t* const totals = before + 2 * pairs;
    const uint32_t group = number / kOneLaunchGroup;
    uint32_t early[2] = {0, 0}, total[2] = {0, 0};
    for_each_pair(
        group * kOneLaunchGroup, number, [&](uint32_t tile, int pair) { return tile_counts(tile)[pair]; },
        [&](uint32_t, int, uint32_t both) {
          early[0] += both & 0xffff;
          early[1] += both >> 16;
        });
    for_each_pair(
        0, all.groups_per_row, [&](uint32_t g, int pair) { return reinterpret_cast<const uint2*>(group_counts(g))[pair]; },
        [&](uint32_t g, int, const uint2& both) {
          early[0] += g < group ? both.x : 0;
          early[1] += g < group ? both.y : 0;
          total[0] += both.x;
          total[1] += both.y;
        });
    const int width = (pairs + 31) / 32 * 32, set = thread / width, pair = thread - set * width;
    if (set < kThreads / width && pair < pairs) {
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
    if (number % kOneLaunchGroup == 0) publish_samples();
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

// Buckets of one block, in turn. Its steps are functions of their own, out of line, so that their variables take no registers from each
// other.
template <class U>
struct OneLaunchBuckets {
  static constexpr int kThreads = kPartitionThreads;
  static constexpr int kItems = one_launch_shapes::bucket_items(sizeof(U));
  using Rows = BucketRows<U, kThreads, kItems>;
  using Exact = BucketExact<U, kThreads, kItems>;
  using Rest = BucketRest<U, kThreads, 8>;
  using Notes = BucketNotes<typename Rows::Flat>;
  static constexpr uint32_t kFateBits = 2, kFates = (1u << kFateBits) - 1, kTooLarge = 3;  // a block has fewer than 16 buckets

  __device__ __forceinline__ static uint32_t count(const BucketArguments<U>& arguments) {
    return static_cast<uint32_t>(arguments.rows) * arguments.buckets_per_row;
  }

  // May a bucket hold zeros of both signs? Then flat forms are out of order, and it goes to the exact map at once.
  __device__ __forceinline__ static bool may_hold_zeros(const PartitionArguments<U>& arguments, uint32_t number) {
    const U zero = arguments.order.zero ^ arguments.order.complement;
    const uint32_t bucket = number % arguments.buckets;
    if (arguments.order.zero == 0) return false;
    const bool above = bucket > 0 && arguments.splitters[number] > zero;
    const bool below = bucket + 1 < static_cast<uint32_t>(arguments.buckets) && arguments.splitters[number + 1] <= zero;
    return !above && !below;
  }

  // Returns what came of them, kFateBits to each; the same for all threads.
  __device__ __noinline__ static uint32_t sort_flat(const OneLaunchArguments<U>* all, uint32_t storage, Notes* notes) {
    const BucketArguments<U>& arguments = all->buckets;
    uint32_t fates = 0, shift = 0;
#pragma unroll 1
    for (uint32_t number = blockIdx.x; number < count(arguments); number += gridDim.x, shift += kFateBits) {
      const BucketSpan<U> bucket(arguments, number);
      if (bucket.size == 0) continue;
      if (bucket.all_equal) {
        copy_bucket(bucket, threadIdx.x, kThreads);
      } else if (bucket.size > Rows::kCapacity) {
        fates |= kTooLarge << shift;
      } else if (may_hold_zeros(all->partition, number)) {
        fates |= static_cast<uint32_t>(BucketFate::kNotFlat) << shift;
      } else {
        fates |= static_cast<uint32_t>(Rows(bucket, storage, *notes).sort()) << shift;
        __syncthreads();  // the records are not read any more
      }
    }
    return fates;
  }

  // Returns the fates of those that are not sorted yet.
  __device__ __noinline__ static uint32_t sort_exactly(const BucketArguments<U>* all, uint32_t storage, Notes* notes, uint32_t fates) {
    const BucketArguments<U>& arguments = *all;
    uint32_t left = 0, shift = 0;
#pragma unroll 1
    for (uint32_t number = blockIdx.x; fates >> shift != 0; number += gridDim.x, shift += kFateBits) {
      const uint32_t fate = fates >> shift & kFates;
      bool sorted = fate == static_cast<uint32_t>(BucketFate::kSorted);
      if (!sorted && fate != kTooLarge) {
        const BucketSpan<U> bucket(arguments, number);
        sorted = Exact(bucket, storage, *notes).sort(fate == static_cast<uint32_t>(BucketFate::kCrowded));
        __syncthreads();
      }
      if (!sorted) left |= kTooLarge << shift;
    }
    return left;
  }

  __device__ __noinline__ static void sort_rest(const BucketArguments<U>* all, uint4* storage, typename Rest::Notes* notes,
                                                uint32_t fates) {
    const BucketArguments<U>& arguments = *all;
#pragma unroll 1
    for (uint32_t number = blockIdx.x; fates != 0; number += gridDim.x, fates >>= kFateBits) {
      if ((fates & kFates) == 0) continue;
      const BucketSpan<U> bucket(arguments, number);
      Rest rest(bucket, storage, *notes);
      if (bucket.size > Rest::kCapacity) {
        rest.sort_in_tiles();
      } else {
        rest.sort_on_chip();
      }
      __syncthreads();
    }
  }
};

// Two blocks to an SM, one to a tile of the rows.
template <class U, int kItems, bool kSortsBuckets>
__global__ void __launch_bounds__(kPartitionThreads, one_launch_shapes::kBlocksPerSm)
    one_launch_kernel(const __grid_constant__ OneLaunchArguments<U> arguments) {
  start_after_predecessor();
  extern __shared__ uint4 shared_memory[];
  __shared__ BlockScanStorage<uint32_t> scan;
  const auto grid = cooperative_groups::this_grid();
  OneLaunchBlock<U, kItems>(arguments, reinterpret_cast<uint8_t*>(shared_memory)).partition(grid, scan);
  if constexpr (kSortsBuckets) {
    using Buckets = OneLaunchBuckets<U>;
    __shared__ typename Buckets::Notes notes;
    __shared__ typename Buckets::Rest::Notes rest_notes;
    grid.sync();
    uint32_t fates = Buckets::sort_flat(&arguments, shared_address(shared_memory), &notes);
    if (fates != 0) fates = Buckets::sort_exactly(&arguments.buckets, shared_address(shared_memory), &notes, fates);
    if (fates != 0) Buckets::sort_rest(&arguments.buckets, shared_memory, &rest_notes, fates);
  }
}

}  // namespace gpusort
