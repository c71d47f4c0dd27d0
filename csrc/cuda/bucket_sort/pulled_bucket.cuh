// One bucket, pulled from the ordered tiles of its row (order_tiles.cuh): where it begins, how many keys it has, where each of them lies.
//
// The table says how many keys of each tile lie in buckets before: their sum over all tiles is where the bucket begins in the row. The
// bucket's slots are its parts of all tiles, one behind the other, which is the order of the row. For a window of slots the block notes the
// source of each in shared memory: some lanes walk along the part of one tile, all threads along what is left of long ones.
//
// Of a value that fills several buckets (`shares` in pulled_arguments.h) each takes a range of the slots.
#pragma once

#include <cstdint>

#include "../primitives/block_scan.cuh"
#include "../primitives/shared_memory.cuh"
#include "bucket_records.cuh"
#include "pulled_arguments.h"

namespace gpusort {

constexpr uint32_t kMostSteps = 24;  // along a part, of as many lanes as a mean one needs
constexpr uint32_t kMostLongParts = 8192 / (8 * kMostSteps) + 1;

struct PulledNotes {
  BlockScanStorage<uint32_t> scan;
  uint32_t starts[32];  // sums of warps
  uint32_t long_parts;
  uint16_t long_part[kMostLongParts];
};

template <class U, int kThreads>
struct PulledBucket {
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kMostOwn = pulled_shapes::kMostTiles / kThreads;  // tiles of a thread

  const PulledArguments<U>& all;
  const uint32_t sources;  // shared address, of a word to a slot of a window: tile << 16 | place in it
  const uint32_t parts;    // shared address, of a word to a tile and one more: first slot in the window << 16 | place of that in the tile
  PulledNotes& notes;
  const uint32_t thread, row, bucket;

  uint32_t starts[kMostOwn];  // of the parts, in the own tiles, which are neighbours
  uint32_t slots[kMostOwn];   // the first of each part
  uint32_t first_slot = 0;    // of this bucket's share of a value that fills several
  uint32_t size = 0, begin = 0;
  bool all_equal = false;

  __device__ __forceinline__ PulledBucket(const PulledArguments<U>& arguments, uint32_t storage, uint32_t capacity, PulledNotes& shared)
      : all(arguments),
        sources(storage),
        parts(storage + capacity * 4),
        notes(shared),
        thread(threadIdx.x),
        row(blockIdx.x / arguments.partition.buckets),
        bucket(blockIdx.x - row * arguments.partition.buckets) {}

  __device__ __forceinline__ uint32_t tiles() const { return all.partition.tiles_per_row; }
  __device__ __forceinline__ uint32_t own_tiles() const { return (tiles() + kThreads - 1) / kThreads; }
  __device__ __forceinline__ uint32_t tile_keys(uint32_t tile) const {
    return min(all.partition.tile_length, all.partition.length - tile * all.partition.tile_length);
  }

  // Loads of a column of the table: the part of bucket `column` in the own tiles.
  __device__ __forceinline__ void load_column(uint32_t column, uint32_t (&ends)[kMostOwn]) {
    const uint16_t* const table = reinterpret_cast<const uint16_t*>(all.starts) + static_cast<uint64_t>(row) * tiles() * (2 * all.pairs);
    const bool last = column + 1 == static_cast<uint32_t>(all.partition.buckets);
#pragma unroll
    for (int k = 0; k < kMostOwn; ++k) {
      const uint32_t tile = thread * own_tiles() + k;
      starts[k] = ends[k] = 0;
      if (static_cast<uint32_t>(k) < own_tiles() && tile < tiles()) {
        const uint16_t* const at = table + static_cast<uint64_t>(tile) * (2 * all.pairs) + column;
        starts[k] = at[0];
        ends[k] = last ? tile_keys(tile) : at[1];
      }
    }
  }

  // Keys of the bucket in all tiles; `slots` and `begin` become known.
  __device__ __forceinline__ uint32_t sum_up(const uint32_t (&ends)[kMostOwn]) {
    uint32_t before = 0, keys = 0, total;
#pragma unroll
    for (int k = 0; k < kMostOwn; ++k) {
      before += starts[k];
      slots[k] = keys;
      keys += ends[k] - starts[k];
    }
    before = __reduce_add_sync(~0u, before);
    if (thread % 32 == 0) notes.starts[thread / 32] = before;
    const uint32_t first = block_exclusive_scan(keys, total, notes.scan);
#pragma unroll
    for (int k = 0; k < kMostOwn; ++k) slots[k] += first;
    begin = __reduce_add_sync(~0u, thread % 32 < kWarps ? notes.starts[thread % 32] : 0);
    return total;
  }

  // Finds size, begin and where the keys lie, and notes where the bucket begins.
  __device__ __forceinline__ void find() {
    const uint32_t buckets = all.partition.buckets, share_word = all.shares[static_cast<uint64_t>(row) * buckets + bucket];
    uint32_t ends[kMostOwn];
    load_column(bucket, ends);
    all_equal = share_word != 0;
    const uint32_t first_alike = share_word & ((1u << kShareBits) - 1), after = share_word >> kShareBits & ((1u << kShareBits) - 1);
    if (all_equal && after != bucket + 1) load_column(after - 1, ends);
    size = sum_up(ends);
    if (all_equal) {
      const uint64_t keys = size;
      const uint32_t shares = after - first_alike, share = bucket - first_alike;
      first_slot = static_cast<uint32_t>(keys * share / shares);
      size = static_cast<uint32_t>(keys * (share + 1) / shares) - first_slot;
      begin += first_slot;
    }
    if (thread == 0) {
      uint32_t* const begins = all.partition.begins + static_cast<uint64_t>(row) * (buckets + 1) + bucket;
      begins[0] = begin | (all_equal ? kEqualBucket : 0);
      if (bucket + 1 == buckets) begins[1] = all.partition.length;
    }
  }

  // Notes the sources of `count` slots from `from` on, which are at most the capacity. Ends with a barrier.
  __device__ __forceinline__ void find_sources(uint32_t from, uint32_t count) const {
    const uint32_t window = first_slot + from;
#pragma unroll
    for (int k = 0; k < kMostOwn; ++k) {
      const uint32_t tile = thread * own_tiles() + k;
      if (static_cast<uint32_t>(k) >= own_tiles() || tile >= tiles()) continue;
      const uint32_t skipped = window > slots[k] ? window - slots[k] : 0, first = slots[k] + skipped - window;
      store_shared(parts + tile * 4, min(first, count) << 16 | ((starts[k] + skipped) & 0xffff));
    }
    if (thread == 0) {
      store_shared(parts + tiles() * 4, count << 16);
      notes.long_parts = 0;
    }
    __syncthreads();
    const uint32_t lanes = all.run_lanes, lane = thread & (lanes - 1), groups = kThreads / lanes, most = kMostSteps * lanes;
#pragma unroll 2
    for (uint32_t tile = thread / lanes; tile < tiles(); tile += groups) {
      const uint32_t part = load_shared(parts + tile * 4), end = load_shared(parts + tile * 4 + 4) >> 16;
      const uint32_t first = part >> 16, source = (tile << 16 | (part & 0xffff)) - first;
      for (uint32_t slot = first + lane; slot < min(end, first + most); slot += lanes) store_shared(sources + slot * 4, source + slot);
      if (lane == 0 && end > first + most) notes.long_part[atomicAdd(&notes.long_parts, 1u)] = tile;
    }
    __syncthreads();
    // All threads walk along the rest of a long part.
    const uint32_t long_parts = notes.long_parts;
    if (long_parts == 0) return;
#pragma unroll 1
    for (uint32_t k = 0; k < long_parts; ++k) {
      const uint32_t tile = notes.long_part[k], part = load_shared(parts + tile * 4), end = load_shared(parts + tile * 4 + 4) >> 16;
      const uint32_t first = part >> 16, source = (tile << 16 | (part & 0xffff)) - first;
      for (uint32_t slot = first + most + thread; slot < end; slot += kThreads) store_shared(sources + slot * 4, source + slot);
    }
    __syncthreads();
  }

  // Where a source's tile lies in the row.
  __device__ __forceinline__ uint32_t tile_begin(uint32_t source) const {
    return (source >> 16) * all.partition.tile_length;
  }
  __device__ __forceinline__ const U* keys() const {
    return all.partition.keys_to + row * all.row_stride;
  }
  __device__ __forceinline__ const uint16_t* places() const {
    return all.tile_places + row * all.row_stride;
  }

  // Calls visit(slot, key, index) of every key, in windows of the capacity. Keys alone have no index.
  template <bool kIndexed, class Visit>
  __device__ __forceinline__ void for_each(uint32_t capacity, Visit visit) const {
    constexpr int kTogether = 8;
#pragma unroll 1
    for (uint32_t from = 0; from < size; from += capacity) {
      const uint32_t count = min(capacity, size - from);
      find_sources(from, count);
#pragma unroll 1
      for (uint32_t first = thread; first < count; first += kTogether * kThreads) {
        U key[kTogether];
        uint32_t index[kTogether];
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          if (first + k * kThreads >= count) continue;
          const uint32_t source = load_shared(sources + (first + k * kThreads) * 4), at = tile_begin(source) + (source & 0xffff);
          key[k] = keys()[at];
          index[k] = kIndexed ? tile_begin(source) + places()[at] : 0;
        }
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          if (first + k * kThreads < count) visit(from + first + k * kThreads, key[k], index[k]);
        }
      }
      __syncthreads();
    }
  }
};

}  // namespace gpusort
