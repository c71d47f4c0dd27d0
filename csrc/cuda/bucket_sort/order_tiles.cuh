// Orders every tile of the rows by bucket, where it lies: keys and the places they had in the tile, and tables of where buckets start and
// of those that share a value.
//
// Ranks, places and the way through shared memory are those of the partition (partition.cuh), but what a tile has is written as one run, in
// vectors, and nothing of other tiles need be known. The keys are read while the kernel before still looks for splitters: that one has
// waited for all before it, so they are there; and past the L1 cache, which may hold what was there before them.
#pragma once

#include <cstdint>

#include "../primitives/dependent_launch.cuh"
#include "../primitives/shared_memory.cuh"
#include "bucket_begins.cuh"
#include "partition.cuh"
#include "pulled_arguments.h"

namespace gpusort {

template <class U, int kItems>
struct TileOrder {
  using Tile = PartitionTile<U, kItems>;
  using Partition = PartitionBlock<U, true, kItems>;
  static constexpr int kThreads = kPartitionThreads;
  static constexpr int kVector = 4;  // items written together
  static constexpr int kKeyVectors = kVector * sizeof(U) / 16;

  const PulledArguments<U>& all;
  const Partition& partition;

  __device__ __forceinline__ void write_starts(const Tile& tile) const {
    if (partition.thread >= all.pairs) return;
    const uint32_t* const offsets = partition.offsets + 2 * partition.thread;  // less the starts
    const uint32_t second = 2 * partition.thread + 1 < all.partition.buckets ? 0 - offsets[1] : 0;
    const uint64_t number = static_cast<uint64_t>(tile.row) * all.partition.tiles_per_row + tile.number;
    all.starts[number * all.pairs + partition.thread] = (0 - offsets[0]) | second << 16;
  }

  // Each tile of a row writes some of the row's. Only where the next floor is not above the next code there is anything to look for.
  __device__ __forceinline__ void write_shares(const Tile& tile) const {
    using Code = BucketCode<U>;
    const PartitionArguments<U>& arguments = all.partition;
    const int buckets = arguments.buckets;
    const Code* const tree = reinterpret_cast<const Code*>(partition.storage + partition.layout.splitters);
    const auto floor_of = [&](int b) { return b == 0 ? Code{0} : tree[splitter_node(b, arguments.levels)]; };
    const int step = kThreads * static_cast<int>(arguments.tiles_per_row);
    for (int b = static_cast<int>(tile.number) + partition.thread * static_cast<int>(arguments.tiles_per_row); b < buckets; b += step) {
      const Code floor = floor_of(b);
      uint32_t share = 0;
      if (floor == highest_code<U>() || (b + 1 < buckets && floor_of(b + 1) - floor <= 1)) {
        const int first = floors_before(buckets, floor, false, floor_of), after = floors_before(buckets, floor, true, floor_of);
        const bool one_code = floor == highest_code<U>() || (after < buckets && floor_of(after) == floor + 1);
        if (one_code) share = kOneCode | static_cast<uint32_t>(after) << kShareBits | static_cast<uint32_t>(first);
      }
      all.shares[static_cast<uint64_t>(tile.row) * buckets + b] = share;
    }
  }

  // Returns whether the order is wrong somewhere. Rows have room for the whole last vector.
  __device__ __forceinline__ bool write(const Tile& tile) const {
    const int64_t begin = tile.row * all.row_stride + tile.first;
    uint4* const keys_to = reinterpret_cast<uint4*>(all.partition.keys_to + begin);
    uint2* const places_to = all.tile_places ? reinterpret_cast<uint2*>(all.tile_places + begin) : nullptr;
    const uint4* const keys = reinterpret_cast<const uint4*>(partition.staged_keys);
    const uint4* const words = reinterpret_cast<const uint4*>(partition.staged_words);
    bool wrong = false;
#pragma unroll 2
    for (uint32_t vector = partition.thread; vector * kVector < tile.count; vector += kThreads) {
      const uint4 word = words[vector];
      wrong |= vector > 0 && partition.staged_words[vector * kVector - 1] > word.x;
      wrong |= word.x > word.y || word.y > word.z || word.z > word.w;
#pragma unroll
      for (int k = 0; k < kKeyVectors; ++k) keys_to[vector * kKeyVectors + k] = keys[vector * kKeyVectors + k];
      if (places_to) places_to[vector] = make_uint2((word.x & 0xffff) | word.y << 16, (word.z & 0xffff) | word.w << 16);
    }
    // A pad in the place of a key would be the last of the rising words.
    return wrong || (partition.staged_words[tile.count - 1] & 0xffff) >= tile.count;
  }
};

// Two blocks to an SM.
template <class U, int kItems>
__global__ __launch_bounds__(kPartitionThreads, 2) void order_tiles_kernel(const __grid_constant__ PulledArguments<U> all) {
  extern __shared__ __align__(16) uint8_t storage[];
  __shared__ BlockScanStorage<uint32_t> scan;
  const PartitionArguments<U>& arguments = all.partition;
  PartitionTile<U, kItems> tile(arguments);
  tile.template load<true>(arguments);
  start_after_predecessor();
  const PartitionBlock<U, true, kItems> partition(arguments, storage);
  const TileOrder<U, kItems> order{all, partition};
  build_splitter_tree(reinterpret_cast<BucketCode<U>*>(storage + partition.layout.splitters), arguments, tile.row);
  for (int word = partition.thread; word < partition.layout.offsets / 16; word += kPartitionThreads) {
    clear_shared_16_bytes(shared_address(storage) + word * 16);
  }
  __syncthreads();
  order.write_shares(tile);
  uint32_t ranked[kItems];
  partition.rank(tile, ranked);
  __syncthreads();
  const uint32_t nowhere[2] = {0, 0};
  partition.place_buckets(partition.count_pair(), nowhere, scan);
  order.write_starts(tile);
  __syncthreads();
  partition.scatter(tile, ranked);
  __syncthreads();
  if (__syncthreads_or(order.write(tile))) {
    exchange_until_rising(partition.staged_keys, partition.staged_words, tile.places());
    order.write(tile);
  }
}

}  // namespace gpusort
