// Second partition: tiles of a region are ordered by part, the bits of the bin behind those of the region, and written as they lie.
//
// As spread.cuh, but nothing is scattered in memory: the regions, one behind the other, fill the workspace, in tiles of equal length. Where
// the parts begin in a tile is written into the upper bits of its first indices (mapped_arguments.h).
#pragma once

#include <cstdint>

#include "spread.cuh"

namespace gpusort {

struct RegionTables {
  uint32_t begins[mapped_shapes::kMostRegions + 2];      // and the length of all, and kAccepted
  uint32_t first_tile[mapped_shapes::kMostRegions + 1];  // and the number of all
};

// A tile, and where its records lie: in one chunk or two.
struct OrderTile {
  uint32_t region;
  uint32_t first;  // in the region
  uint32_t count;
  uint32_t split;       // records from here on are in the second chunk
  const uint2* before;  // as if the whole tile were in the first
  const uint2* behind;  // or in the second
};

struct OrderShared {
  uint32_t map[kMapCells];
  uint32_t counters[kMostDigits];
  uint32_t starts[kMostDigits + 1];
  uint32_t totals[kMostDigits / 32];
  RegionTables regions;
  BlockScanStorage<uint32_t> scan;
  OrderTile next;
  alignas(16) uint2 records[mapped_shapes::kTile];
};

GPUSORT_HD uint32_t region_tiles(uint32_t records) {
  return records < kLeastRegion ? (records > 0 ? 1 : 0) : (records + mapped_shapes::kTile - 1) / mapped_shapes::kTile;
}

struct OrderBlock {
  static constexpr int kThreads = mapped_shapes::kThreads;
  static constexpr int kItems = mapped_shapes::kItems;

  const MappedArguments& arguments;
  OrderShared& shared;
  const uint32_t thread, counters, records;

  __device__ __forceinline__ OrderBlock(const MappedArguments& all, OrderShared& storage)
      : arguments(all),
        shared(storage),
        thread(threadIdx.x),
        counters(shared_address(storage.counters)),
        records(shared_address(storage.records)) {}

  // Where regions begin in the workspace, and their tiles among all; ends with a barrier.
  __device__ __forceinline__ void find_regions() const {
    constexpr int kOwn = (mapped_shapes::kMostRegions + kThreads - 1) / kThreads;
    const uint32_t all = arguments.regions();
    uint32_t count[kOwn], records = 0, tiles = 0, all_records, all_tiles;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      count[k] = kOwn * thread + k < all ? arguments.claims[kOwn * thread + k] : 0;
      records += count[k];
      tiles += region_tiles(count[k]);
    }
    uint32_t begin = block_exclusive_scan(records, all_records, shared.scan);
    __syncthreads();
    uint32_t first = block_exclusive_scan(tiles, all_tiles, shared.scan);
    RegionTables& tables = shared.regions;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      if (kOwn * thread + k < all) {
        tables.begins[kOwn * thread + k] = begin;
        tables.first_tile[kOwn * thread + k] = first;
      }
      begin += count[k];
      first += region_tiles(count[k]);
    }
    if (thread == 0) {
      tables.begins[all] = all_records;
      tables.begins[all + 1] = kAccepted;
      tables.first_tile[all] = all_tiles;
    }
    __syncthreads();
  }

  __device__ __forceinline__ OrderTile tile_number(uint32_t number) const {
    const RegionTables& tables = shared.regions;
    uint32_t low = 0, high = arguments.regions();  // first_tile[low] <= number < first_tile[high]
    while (high - low > 1) {
      const uint32_t middle = (low + high) / 2;
      if (tables.first_tile[middle] <= number)
        low = middle;
      else
        high = middle;
    }
    const uint32_t all = tables.begins[low + 1] - tables.begins[low], tiles = tables.first_tile[low + 1] - tables.first_tile[low];
    const uint32_t length = (all + tiles - 1) / tiles, first = (number - tables.first_tile[low]) * length;
    const uint32_t count = min(length, all - first), last = first + count - 1;
    const uint32_t* const chunk_of = arguments.chunk_of + static_cast<uint64_t>(low) * arguments.chunks_per_region;
    const int bits = arguments.chunk_bits;
    const uint32_t inside = first & ((1u << bits) - 1), split = (1u << bits) - inside;
    const uint2* const before = record_at(arguments, ((chunk_of[first >> bits] - 1) << bits) + inside);
    const uint2* behind = before;
    if (last >> bits != first >> bits) behind = record_at(arguments, (chunk_of[last >> bits] - 1) << bits) - split;
    return {low, first, count, split, before, behind};
  }

  __device__ __forceinline__ void load(const OrderTile& tile, uint2 (&held)[kItems]) const {
    const uint2 *const before = tile.before, *const behind = tile.behind;
    const uint32_t split = tile.split, last = tile.count - 1;
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      const uint32_t place = min(thread + item * kThreads, last);
      held[item] = (place < split ? before : behind)[place];
    }
  }

  __device__ __forceinline__ void write(uint32_t region, uint32_t first, uint32_t count) const {
    const uint32_t begin = shared.regions.begins[region] + first, parts = 1u << arguments.part_bits;
    const uint32_t table_end = mapped_shapes::kTableBits * (arguments.regions() + 2);
    uint2* const to = arguments.ordered + begin;
#pragma unroll 2
    for (uint32_t place = thread; place < count; place += kThreads) {
      uint2 record;
      load_shared(records + place * 8, record);
      if (place < 4 * parts) record.x |= shared.starts[place / 4] >> (place % 4 * 4) << kPlaceShift;
      const uint32_t at = begin + place;
      if (at < table_end) record.x |= (shared.regions.begins[at / 32] >> (at % 32) & 1) << mapped_shapes::kIndexBits;
      to[place] = record;
    }
  }

  __device__ __forceinline__ void run() const {
    if (thread < kMostDigits) shared.counters[thread] = 0;
    find_regions();
    const uint32_t tiles = shared.regions.first_tile[arguments.regions()];
    uint32_t number = static_cast<uint32_t>(static_cast<uint64_t>(tiles) * blockIdx.x / gridDim.x);
    const uint32_t end = static_cast<uint32_t>(static_cast<uint64_t>(tiles) * (blockIdx.x + 1) / gridDim.x);
    if (number == end) return;
    const SampledMap map{shared_address(shared.map)};
    const int shift = mapped_shapes::kBinBits - arguments.region_bits - arguments.part_bits;
    const uint32_t mask = (1u << arguments.part_bits) - 1;
    if (thread == kThreads - 1) shared.next = tile_number(number);
    __syncthreads();
    uint32_t region = shared.next.region, first = shared.next.first, count = shared.next.count;
    load_map(arguments, region >> arguments.region_bits, shared.map);
    uint2 held[kItems];
    load(shared.next, held);
    __syncthreads();
    if (thread == kThreads - 1 && number + 1 < end) shared.next = tile_number(number + 1);
    for (;;) {
      uint32_t digits[kItems / 4];
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        const uint32_t digit = map.bin(arguments.codec.code(held[item].y)) >> shift & mask;
        if (thread + item * kThreads < count) add_shared(counters + digit * 4, 1);
        digits[item / 4] = item % 4 == 0 ? digit : digits[item / 4] | digit << (item % 4 * 8);
      }
      __syncthreads();
      starts_of_digits(shared.counters, shared.starts, shared.totals);
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        if (thread + item * kThreads < count) {
          const uint32_t place = fetch_add_shared(counters + (digits[item / 4] >> (item % 4 * 8) & 255) * 4, 1);
          store_shared(records + place * 8, held[item]);
        }
      }
      const bool more = ++number < end;
      if (more) load(shared.next, held);
      const uint32_t next_region = shared.next.region, next_first = shared.next.first, next_count = shared.next.count;
      __syncthreads();
      // While the tile is written, one thread finds the next but one.
      if (thread == kThreads - 1 && number + 1 < end) shared.next = tile_number(number + 1);
      if (thread < kMostDigits) shared.counters[thread] = 0;
      if (more && next_region >> arguments.region_bits != region >> arguments.region_bits) {
        load_map(arguments, next_region >> arguments.region_bits, shared.map);
      }
      write(region, first, count);
      if (!more) return;
      region = next_region;
      first = next_first;
      count = next_count;
      __syncthreads();
    }
  }
};

__global__ __launch_bounds__(mapped_shapes::kThreads,
                             mapped_shapes::kBlocksPerSm) void order_parts_kernel(const __grid_constant__ MappedArguments arguments) {
  start_after_predecessor();
  extern __shared__ uint4 storage[];
  if (!accepted(arguments)) return;
  OrderBlock(arguments, *reinterpret_cast<OrderShared*>(storage)).run();
}

}  // namespace gpusort
