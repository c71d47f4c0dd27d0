// Second partition: tiles of a region are ordered by part, the bits of the bin behind those of the region, and written as they lie.
//
// As spread.cuh, but nothing is scattered in memory: the regions, one behind the other, fill the workspace, in tiles of equal length. Where
// the parts begin in a tile is written into the upper bits of its first indices (mapped_arguments.h).
//
// One block to an SM holds three tiles in shared memory: one on its way in, one that is ordered in its place, one on its way out. Whole
// tiles come and go by bulk copies, which one thread asks for. Only the first records, which carry the table, are written by threads. Two
// barriers a tile: between one and the next, a tile is placed and the one behind it counted; then one warp turns its counts into starts,
// while the others write the table of the tile before. Blocks take tiles in turn: one front moves through memory, not one for each SM
// (H200, 2^26 records: 292 us instead of 308, of which the copies alone take 290).
#pragma once

#include <cstdint>

#include "../primitives/bulk_copy.cuh"
#include "spread.cuh"

namespace gpusort {

constexpr uint32_t kOrderBuffers = 3;
constexpr uint32_t kNotedTiles = kOrderBuffers + 1;

GPUSORT_HD uint32_t region_tiles(uint32_t records) {
  return records < kLeastRegion ? (records > 0 ? 1 : 0) : (records + mapped_shapes::kTile - 1) / mapped_shapes::kTile;
}

struct RegionTables {
  uint32_t begins[mapped_shapes::kMostRegions + 2];      // and the length of all, and kAccepted
  uint32_t first_tile[mapped_shapes::kMostRegions + 1];  // and the number of all
};

struct OrderTile {
  uint32_t region;
  uint32_t first;  // in the region
  uint32_t count;
  uint32_t begin;  // in the workspace
};

struct OrderShared {
  uint32_t map[kMapCells];
  alignas(16) uint32_t counters[2][kMostDigits];  // of tiles in turn
  alignas(16) uint32_t starts[2][kMostDigits];
  uint32_t nowhere[32];  // counters of what lies behind the end of a tile
  RegionTables regions;
  alignas(16) OrderTile tiles[kNotedTiles];
  ArrivalBarrier loaded[kOrderBuffers];
  // A record more on either side, as bulk copies begin and end at even places of memory.
  alignas(128) uint2 records[kOrderBuffers][mapped_shapes::kTile + 2];
};

static_assert(sizeof(OrderShared) <= mapped_shapes::kOrderSharedBytes);

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

struct OrderBlock {
  static constexpr int kThreads = mapped_shapes::kOrderThreads;
  static constexpr int kItems = mapped_shapes::kTile / kThreads;

  const MappedArguments& arguments;
  OrderShared& shared;
  const uint32_t thread, counters;

  __device__ __forceinline__ OrderBlock(const MappedArguments& all, OrderShared& storage)
      : arguments(all), shared(storage), thread(threadIdx.x), counters(shared_address(storage.counters)) {}

  // The first warp: where regions begin in the workspace, and their tiles among all.
  __device__ __forceinline__ void find_regions() const {
    constexpr int kOwn = mapped_shapes::kMostRegions / 32;
    const uint32_t all = arguments.regions(), own = thread * kOwn;
    uint32_t count[kOwn], records = 0, tiles = 0;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      count[k] = own + k < all ? arguments.claims[own + k] : 0;
      records += count[k];
      tiles += region_tiles(count[k]);
    }
    uint32_t begin = warp_inclusive_scan(records) - records, first = warp_inclusive_scan(tiles) - tiles;
    RegionTables& tables = shared.regions;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      if (own + k < all) {
        tables.begins[own + k] = begin;
        tables.first_tile[own + k] = first;
      }
      begin += count[k];
      first += region_tiles(count[k]);
    }
    if (thread == 31) {
      tables.begins[all] = begin;
      tables.begins[all + 1] = kAccepted;
      tables.first_tile[all] = first;
    }
  }

  // Notes the block's own tile k, whose region is not before `region`. Returns its region.
  __device__ __forceinline__ uint32_t note_tile(uint32_t k, uint32_t region, OrderTile& tile) const {
    const RegionTables& tables = shared.regions;
    const uint32_t number = blockIdx.x + k * gridDim.x;
    while (tables.first_tile[region + 1] <= number) ++region;
    const uint32_t begin = tables.begins[region], all = tables.begins[region + 1] - begin;
    const uint32_t tiles = tables.first_tile[region + 1] - tables.first_tile[region];
    const uint32_t length = (all + tiles - 1) / tiles, first = (number - tables.first_tile[region]) * length;
    tile = {region, first, min(length, all - first), begin + first};
    return region;
  }

  // Brings a tile on its way, from one chunk or two; behind one record more where its first is at an odd place.
  __device__ __forceinline__ void fetch(const OrderTile& tile, uint32_t buffer) const {
    uint2* const slots = shared.records[buffer];
    ArrivalBarrier& loaded = shared.loaded[buffer];
    const uint32_t* const chunk_of = arguments.chunk_of + static_cast<uint64_t>(tile.region) * arguments.chunks_per_region;
    const int bits = arguments.chunk_bits;
    const uint32_t length = 1u << bits, odd = tile.first & 1, inside = (tile.first & (length - 1)) - odd;
    const uint32_t end = odd + tile.count, split = min(end, length - inside);  // slots from the split on come from the second chunk
    const uint2* const before = record_at(arguments, ((chunk_of[tile.first >> bits] - 1) << bits) + inside);
    const uint2* const behind = split < end ? record_at(arguments, (chunk_of[(tile.first >> bits) + 1] - 1) << bits) - split : before;
    uint32_t whole = end;
    if (end % 2 != 0) {
      // The last record comes with the next one of its chunk, if there is one.
      if (tile.begin + tile.count < shared.regions.begins[tile.region + 1]) {
        ++whole;
      } else {
        --whole;
        slots[whole] = behind[whole];
      }
    }
    const uint32_t first_part = split < end ? split : whole;
    loaded.expect(whole * 8);
    if (first_part > 0) bulk_load(slots, before, first_part * 8, loaded);
    if (whole > first_part) bulk_load(slots + first_part, behind + first_part, (whole - first_part) * 8, loaded);
  }

  // Records of a tile that threads write: those with bits of tables. An even place of the workspace follows.
  __device__ __forceinline__ uint32_t head(const OrderTile& tile) const {
    const uint32_t table_end = mapped_shapes::kTableBits * (arguments.regions() + 2);
    return tile.begin < table_end ? tile.count : min(tile.count, (4u << arguments.part_bits) + (tile.begin & 1));
  }

  __device__ __forceinline__ bool asks_for_copies() const {
    return thread == kThreads - 1;
  }

  // Writes an ordered tile. Threads write its head, and the last record where that is at an even place.
  __device__ __forceinline__ void write(const OrderTile& tile, uint32_t buffer, uint32_t set) const {
    const uint32_t begin = tile.begin, count = tile.count, parts = 1u << arguments.part_bits, first = head(tile);
    const uint32_t table_end = mapped_shapes::kTableBits * (arguments.regions() + 2), end = count - ((begin + count) & 1);
    const uint2* const slots = shared.records[buffer] + (begin & 1);
    uint2* const to = arguments.ordered + begin;
    if (asks_for_copies() && end > first) bulk_store(to + first, slots + first, (end - first) * 8);
    if (thread == 0 && end >= first && end < count) to[end] = slots[end];
#pragma unroll 1
    for (uint32_t place = thread; place < first; place += kThreads) {
      uint2 record = slots[place];
      if (place < 4 * parts) record.x |= shared.starts[set][place / 4] >> (place % 4 * 4) << kPlaceShift;
      const uint32_t at = begin + place;
      if (at < table_end) record.x |= (shared.regions.begins[at / 32] >> (at % 32) & 1) << mapped_shapes::kIndexBits;
      to[place] = record;
    }
  }

  // The first warp: counters become starts.
  __device__ __forceinline__ void scan_digits(uint32_t set_counters, uint32_t set_starts) const {
    static_assert(kMostDigits == 256);  // eight to a lane
    const uint32_t own = thread * 32;   // bytes
    uint4 low, high;
    load_shared(set_counters + own, low);
    load_shared(set_counters + own + 16, high);
    const uint32_t half = low.x + low.y + low.z + low.w, sum = half + high.x + high.y + high.z + high.w;
    const uint32_t begin = warp_inclusive_scan(sum) - sum, middle = begin + half;
    low = make_uint4(begin, begin + low.x, begin + low.x + low.y, middle - low.w);
    high = make_uint4(middle, middle + high.x, middle + high.x + high.y, begin + sum - high.w);
    for (const uint32_t to : {set_counters + own, set_starts + own}) {
      store_shared(to, low);
      store_shared(to + 16, high);
    }
  }

  __device__ __forceinline__ void order_tiles(uint32_t own) const {
    const SampledMap map{shared_address(shared.map)};
    const int shift = mapped_shapes::kBinBits - arguments.region_bits - arguments.part_bits;
    const uint32_t mask = (1u << arguments.part_bits) - 1, nowhere = shared_address(shared.nowhere + thread % 32);
    uint32_t buffer = 0, parity = 0, buffer_before = 0, noted_region = shared.tiles[min(own, kOrderBuffers) - 1].region;
#pragma unroll 1
    for (uint32_t k = 0; k < own; ++k) {
      const uint32_t set = k % 2, own_counters = counters + set * (kMostDigits * 4);
      const OrderTile tile = shared.tiles[k % kNotedTiles];
      const uint32_t records = shared_address(shared.records[buffer]);
      shared.loaded[buffer].wait(parity);
      uint2 held[kItems];
      uint32_t cells[kItems], digits[kItems / 4];
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        load_shared(records + (tile.first % 2 + min(thread + item * kThreads, tile.count - 1)) * 8, held[item]);
      }
#pragma unroll
      for (int item = 0; item < kItems; ++item) cells[item] = map.load_cell(arguments.codec.code(held[item].y));
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        const uint32_t digit = SampledMap::bin(arguments.codec.code(held[item].y), cells[item]) >> shift & mask;
        add_shared(thread + item * kThreads < tile.count ? own_counters + digit * 4 : nowhere, 1);
        digits[item / 4] = item % 4 == 0 ? digit : digits[item / 4] | digit << (item % 4 * 8);
      }
      __syncthreads();  // the tile before is placed, this one counted
      if (thread < 32) {
        scan_digits(own_counters, shared_address(shared.starts[set]));
      } else if (thread < 32 + kMostDigits) {
        store_shared(counters + ((set ^ 1) * kMostDigits + thread - 32) * 4, 0u);
      }
      if (k > 0) write(shared.tiles[(k - 1) % kNotedTiles], buffer_before, set ^ 1);
      if (k + 1 < own) {
        const uint32_t row = shared.tiles[(k + 1) % kNotedTiles].region >> arguments.region_bits;
        if (row != tile.region >> arguments.region_bits) load_map(arguments, row, shared.map);
      }
      __syncthreads();
      const uint32_t ordered = records + tile.begin % 2 * 8;
      uint32_t places[kItems];
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        const uint32_t counter = own_counters + (digits[item / 4] >> (item % 4 * 8) & 255) * 4;
        places[item] = fetch_add_shared(thread + item * kThreads < tile.count ? counter : nowhere, 1);
      }
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        if (thread + item * kThreads < tile.count) store_shared(ordered + places[item] * 8, held[item]);
      }
      fence_before_bulk_copy();
      if (asks_for_copies()) {
        wait_for_bulk_reads();  // of the tile before, in whose place the next but one comes
        if (k + 2 < own) fetch(shared.tiles[(k + 2) % kNotedTiles], buffer == 0 ? kOrderBuffers - 1 : buffer - 1);
        if (k + 3 < own) noted_region = note_tile(k + 3, noted_region, shared.tiles[(k + 3) % kNotedTiles]);
      }
      buffer_before = buffer;
      if (++buffer == kOrderBuffers) {
        buffer = 0;
        parity ^= 1;
      }
    }
    __syncthreads();
    write(shared.tiles[(own - 1) % kNotedTiles], buffer_before, (own - 1) % 2);
    if (asks_for_copies()) wait_for_bulk_stores();
  }

  __device__ __forceinline__ void run() const {
    if (thread < 2 * kMostDigits) shared.counters[0][thread] = 0;
    if (thread < 32) find_regions();
    if (asks_for_copies()) {
      for (ArrivalBarrier& loaded : shared.loaded) loaded.initialise();
    }
    __syncthreads();
    const uint32_t tiles = shared.regions.first_tile[arguments.regions()];
    const uint32_t own = (tiles + gridDim.x - 1 - blockIdx.x) / gridDim.x;
    if (own == 0) return;
    if (asks_for_copies()) {
      uint32_t region = 0;
      for (uint32_t k = 0; k < min(kOrderBuffers, own); ++k) {
        region = note_tile(k, region, shared.tiles[k]);
        if (k < kOrderBuffers - 1) fetch(shared.tiles[k], k);
      }
    }
    __syncthreads();
    load_map(arguments, shared.tiles[0].region >> arguments.region_bits, shared.map);
    __syncthreads();
    order_tiles(own);
  }
};

#endif

__global__ __launch_bounds__(mapped_shapes::kOrderThreads, 1) void order_parts_kernel(const __grid_constant__ MappedArguments arguments) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  start_after_predecessor();
  extern __shared__ uint4 storage[];
  if (!accepted(arguments)) return;
  OrderBlock(arguments, *reinterpret_cast<OrderShared*>(storage)).run();
#endif
}

}  // namespace gpusort
