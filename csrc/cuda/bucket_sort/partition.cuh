// The partition: every key of a tile, and its position in the row, goes to its bucket, in one stable pass. A block has one tile.
//
//   rank      each warp counts its keys in 16-bit counters of its own, in the order of the row; a key's rank is what it finds there
//   scan      the counters become places in the tile
//   scatter   keys and words (bucket, place in the tile before) to shared memory, in the order of the buckets
//   write     in that order, so that the runs are long, to the positions that scan_counts_kernel found; and verify
//
// Ranks come from returning shared atomics, whose order within a warp the hardware does not promise, so it is verified: the words must
// rise. Atomicity alone makes the ranks a permutation within each bucket, so a tile that does not rise has its neighbours exchanged until
// it does, and is written again to the same places. After the onesweep pass of radix/, with splitters for digits; Leischner, Osipov,
// Sanders, "GPU sample sort" (2010).
#pragma once

#include <cstdint>

#include "../primitives/block_scan.cuh"
#include "../primitives/dependent_launch.cuh"
#include "../primitives/shared_memory.cuh"
#include "partition_tile.cuh"

namespace gpusort {

// Exchanges neighbours until the words rise; all threads of the block. Pads rise above all others and stay last.
template <class U>
__device__ __forceinline__ void exchange_until_rising(U* staged_keys, uint32_t* staged_words, uint32_t places) {
  const uint32_t threads = blockDim.x;
  bool again = true;
  while (again) {
    again = false;
    for (uint32_t odd = 0; odd < 2; ++odd) {
#pragma unroll 1
      for (uint32_t place = 2 * threadIdx.x + odd; place + 1 < places; place += 2 * threads) {
        const uint32_t word = staged_words[place], next = staged_words[place + 1];
        if (word <= next) continue;
        const U key = staged_keys[place];
        staged_words[place] = next;
        staged_words[place + 1] = word;
        staged_keys[place] = staged_keys[place + 1];
        staged_keys[place + 1] = key;
        again = true;
      }
      __syncthreads();
    }
    again = __syncthreads_or(again);
  }
}

template <class U, bool kIndexed, int kItems>
struct PartitionBlock {
  static constexpr int kThreads = kPartitionThreads;
  static constexpr int kWarps = kThreads / 32;

  const PartitionArguments<U>& arguments;
  PartitionLayout layout;
  uint8_t* storage;
  U* staged_keys;
  uint32_t* staged_words;  // bucket << 16 | place in the tile before
  uint32_t* offsets;       // what is added to a place in the tile to get a position in the row
  int thread, lane, warp;

  __device__ __forceinline__ PartitionBlock(const PartitionArguments<U>& all_arguments, uint8_t* shared)
      : arguments(all_arguments),
        layout(partition_layout(sizeof(U), kThreads, kItems, all_arguments.buckets, 1 << all_arguments.levels)),
        storage(shared),
        staged_keys(reinterpret_cast<U*>(shared + layout.keys)),
        staged_words(reinterpret_cast<uint32_t*>(shared + layout.words)),
        offsets(reinterpret_cast<uint32_t*>(shared + layout.offsets)),
        thread(static_cast<int>(threadIdx.x)),
        lane(thread % 32),
        warp(thread / 32) {}

  // Two 16-bit counters share a word. No counter overflows: a warp has fewer than 2^16 keys.
  __device__ __forceinline__ static uint32_t next_rank(uint32_t counters, uint32_t bucket, uint32_t count) {
    const uint32_t shift = (bucket & 1) * 16;
    return fetch_add_shared(counters + (bucket & ~1u) * 2, count << shift) >> shift & 0xffff;
  }

  // Leaves each item's bucket << 16 | rank in the warp.
  __device__ __forceinline__ void rank(const PartitionTile<U, kItems>& tile, uint32_t (&ranked)[kItems]) const {
    const auto* tree = reinterpret_cast<const BucketCode<U>*>(storage + layout.splitters);
    const uint32_t counters = shared_address(storage) + warp * layout.counter_stride;
    bool runs = false;
    tile.for_each_group(arguments, tree, [&](int group, const uint32_t(&buckets)[kPartitionGroup]) {
      if (group == 0) runs = sees_runs(buckets);
#pragma unroll
      for (int k = 0; k < kPartitionGroup; ++k) {
        if (group + k >= tile.rounds) continue;
        uint32_t rank;
        if (runs && __all_sync(~0u, buckets[k] == __shfl_sync(~0u, buckets[k], 0))) {
          rank = 0;
          if (lane == 0) rank = next_rank(counters, buckets[k], 32);
          rank = __shfl_sync(~0u, rank, 0) + lane;
        } else {
          rank = next_rank(counters, buckets[k], 1);
        }
        ranked[group + k] = buckets[k] << 16 | rank;
      }
    });
  }

  // Thread p: how many keys of the tile buckets 2p and 2p + 1 have, in either half.
  __device__ __forceinline__ uint32_t count_pair() const {
    uint32_t both = 0;
    if (2 * thread < arguments.buckets) {
#pragma unroll
      for (int w = 0; w < kWarps; ++w) both += *reinterpret_cast<const uint32_t*>(storage + w * layout.counter_stride + thread * 4);
    }
    return both;
  }

  // Thread p: the counters of buckets 2p and 2p + 1, which have `both` keys, become places in the tile. All sums are below 2^16, so both
  // halves of a word are added at once. `positions` are where the tile's parts of the two buckets go.
  __device__ __forceinline__ void place_buckets(uint32_t both, const uint32_t (&positions)[2], BlockScanStorage<uint32_t>& scan) const {
    uint32_t total;
    const uint32_t start = block_exclusive_scan((both & 0xffff) + (both >> 16), total, scan);
    if (2 * thread >= arguments.buckets) return;
    const uint32_t second = start + (both & 0xffff);
    uint32_t next = start | second << 16;
#pragma unroll 8
    for (int w = 0; w < kWarps; ++w) {
      uint32_t* const word = reinterpret_cast<uint32_t*>(storage + w * layout.counter_stride + thread * 4);
      const uint32_t count = *word;
      *word = next;
      next += count;
    }
    offsets[2 * thread] = positions[0] - start;
    if (2 * thread + 1 < arguments.buckets) offsets[2 * thread + 1] = positions[1] - second;
  }

  __device__ __forceinline__ void scatter(const PartitionTile<U, kItems>& tile, const uint32_t (&ranked)[kItems]) const {
    const uint8_t* places = storage + warp * layout.counter_stride;
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      if (item >= tile.rounds) continue;
      const uint32_t bucket = ranked[item] >> 16;
      const uint32_t place = *reinterpret_cast<const uint16_t*>(places + bucket * 2) + (ranked[item] & 0xffff);
      staged_keys[place] = tile.keys[item];
      staged_words[place] = bucket << 16 | (tile.own + item * 32);
    }
  }

  // Returns whether the order is wrong somewhere.
  __device__ __forceinline__ bool write(const PartitionTile<U, kItems>& tile) const {
    const uint64_t row_start = static_cast<uint64_t>(tile.row) * arguments.length;
    U* const keys_to = arguments.keys_to + row_start;
    uint32_t* const indices_to = kIndexed ? arguments.indices_to + row_start : nullptr;
    bool wrong = false;
#pragma unroll 4
    for (uint32_t place = thread; place < tile.count; place += kThreads) {
      const uint32_t word = staged_words[place];
      wrong |= place > 0 && staged_words[place - 1] > word;
      const uint32_t position = offsets[word >> 16] + place;
      keys_to[position] = staged_keys[place];
      if constexpr (kIndexed) indices_to[position] = tile.first + (word & 0xffff);
    }
    // A pad in the place of a key would be the last of the rising words.
    return wrong || (staged_words[tile.count - 1] & 0xffff) >= tile.count;
  }

  __device__ __forceinline__ void mend(const PartitionTile<U, kItems>& tile) const {
    exchange_until_rising(staged_keys, staged_words, tile.places());
    write(tile);
  }

  __device__ __forceinline__ void run(BlockScanStorage<uint32_t>& scan) const {
    PartitionTile<U, kItems> tile(arguments);
    tile.load(arguments);
    uint32_t positions[2] = {0, 0};
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      if (2 * thread + k < arguments.buckets) positions[k] = tile.counts(arguments)[2 * thread + k];
    }
    build_splitter_tree(reinterpret_cast<BucketCode<U>*>(storage + layout.splitters), arguments, tile.row);
    for (int word = thread; word < layout.offsets / 16; word += kThreads) clear_shared_16_bytes(shared_address(storage) + word * 16);
    __syncthreads();
    uint32_t ranked[kItems];
    rank(tile, ranked);
    __syncthreads();
    place_buckets(count_pair(), positions, scan);
    __syncthreads();
    scatter(tile, ranked);
    __syncthreads();
    if (__syncthreads_or(write(tile))) mend(tile);
  }
};

// Two blocks to an SM.
template <class U, bool kIndexed, int kItems>
__global__ __launch_bounds__(kPartitionThreads, 2) void partition_kernel(const __grid_constant__ PartitionArguments<U> arguments) {
  start_after_predecessor();
  extern __shared__ __align__(16) uint8_t storage[];
  __shared__ BlockScanStorage<uint32_t> scan;
  PartitionBlock<U, kIndexed, kItems>(arguments, storage).run(scan);
}

}  // namespace gpusort
