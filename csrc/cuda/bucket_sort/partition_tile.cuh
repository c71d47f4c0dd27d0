// A tile on its way through a block of the partition: where it lies, its loads, and the buckets of its keys.
#pragma once

#include <cstdint>

#include "../../plan/bucket_sort_plan.h"
#include "splitter_tree.cuh"

namespace gpusort {

constexpr int kPartitionThreads = bucket_sort_shapes::kThreads;
constexpr int kPartitionGroup = bucket_sort_shapes::kGroup;

// One thread's items of a tile. Warp w has the tile's w-th part, in rounds of 32 neighbouring keys, so that (warp, round, lane) is the
// order of the row. Places beyond the end of the row are pads: they read the row's last key and belong to the last bucket, where they come
// last.
template <class U, int kItems>
struct PartitionTile {
  static_assert(kItems % kPartitionGroup == 0, "whole groups");

  uint32_t row;
  uint32_t number;  // in the row
  uint32_t first;   // position in the row
  uint32_t count;   // keys
  int rounds;       // that are in use
  uint32_t own;     // place in the tile of this thread's first item; the others follow 32 apart
  U keys[kItems];

  // Tiles of one length; the last one of a row may be shorter.
  __device__ __forceinline__ explicit PartitionTile(const PartitionArguments<U>& arguments) {
    row = blockIdx.x / arguments.tiles_per_row;
    number = blockIdx.x - row * arguments.tiles_per_row;
    first = number * arguments.tile_length;
    count = min(arguments.tile_length, arguments.length - first);
    rounds = static_cast<int>(arguments.tile_length / kPartitionThreads);
    own = threadIdx.x / 32 * (rounds * 32) + threadIdx.x % 32;
  }

  // `rounds_of_all` rounds of the block hold the longest of them.
  __device__ __forceinline__ PartitionTile(uint32_t row_of_all, uint32_t number_in_row, uint32_t first_key, uint32_t keys_in_tile,
                                           int rounds_of_all)
      : row(row_of_all), number(number_in_row), first(first_key), count(keys_in_tile), rounds(rounds_of_all) {
    own = threadIdx.x / 32 * (rounds * 32) + threadIdx.x % 32;
  }

  __device__ __forceinline__ uint32_t places() const { return rounds * kPartitionThreads; }

  // kPastL1: where the kernel before may still run, so that nothing has cleared the L1 cache of what it holds from the time before the row
  // was written.
  template <bool kPastL1 = false>
  __device__ __forceinline__ void load(const PartitionArguments<U>& arguments) {
    const U* from = arguments.keys_in + (static_cast<uint64_t>(row) * arguments.length + first);
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      if (item >= rounds) continue;
      const U* const at = from + min(own + item * 32, count - 1);
      keys[item] = kPastL1 ? __ldcg(at) : *at;
    }
  }

  // The tile's table of counts: one word for each bucket.
  __device__ __forceinline__ uint32_t* counts(const PartitionArguments<U>& arguments) const {
    return arguments.counts + (static_cast<uint64_t>(row) * arguments.tiles_per_row + number) * arguments.buckets;
  }

  // Calls visit(first item, buckets) for each group that is in use; a round that is not has the key of the one before it.
  template <class Visit>
  __device__ __forceinline__ void for_each_group(const PartitionArguments<U>& arguments, const BucketCode<U>* tree, Visit visit) const {
#pragma unroll
    for (int group = 0; group < kItems; group += kPartitionGroup) {
      if (group < rounds) {
        BucketCode<U> codes[kPartitionGroup];
        uint32_t buckets[kPartitionGroup];
#pragma unroll
        for (int k = 0; k < kPartitionGroup; ++k) codes[k] = arguments.order.code(keys[group + k]);
        find_buckets(tree, arguments.levels, arguments.buckets, codes, buckets);
        if (count < places()) {
#pragma unroll
          for (int k = 0; k < kPartitionGroup; ++k) {
            if (own + (group + k) * 32 >= count) buckets[k] = arguments.buckets - 1;
          }
        }
        visit(group, buckets);
      }
    }
  }
};

// Do neighbouring keys share buckets (sorted rows, values found often)? Then whole warps would meet at one counter.
__device__ __forceinline__ bool sees_runs(const uint32_t (&buckets)[kPartitionGroup]) {
  int alike = 0;
#pragma unroll
  for (int k = 0; k < kPartitionGroup; ++k) alike += __all_sync(~0u, buckets[k] == __shfl_sync(~0u, buckets[k], 0)) ? 1 : 0;
  return 2 * alike >= kPartitionGroup;
}

}  // namespace gpusort
