// The buckets: a block pulls the parts of its bucket from all tiles of the region and sorts them on chip, by distribution as
// bucket_sort/bucket_rows.cuh. Records of a bucket come in any order; their indices tell equal keys apart.
//
// Left to listed_words.cuh: buckets above the capacity, those in which flat forms are out of order (NaN, zeros of both signs), and those
// whose keys crowd. Their codes and indices go to their part of the index output as words of 64 bits, and a mark to the workspace.
#pragma once

#include <cstdint>

#include "../bucket_sort/bucket_rows.cuh"
#include "order_parts.cuh"

namespace gpusort {

// A word of the table at the start of the workspace; whole warps call.
__device__ __forceinline__ uint32_t region_begin(const MappedArguments& arguments, uint32_t region) {
  const uint32_t word = arguments.ordered[region * mapped_shapes::kTableBits + threadIdx.x % 32].x;
  return __ballot_sync(~0u, word >> mapped_shapes::kIndexBits & 1);
}

// Where the records of a bucket lie.
struct BucketParts {
  uint2* region;
  uint32_t count, tiles, length;  // of the region: records, tiles, records of a tile
  uint32_t part, parts;

  __device__ __forceinline__ BucketParts(const MappedArguments& arguments, uint32_t bucket, uint32_t begin, uint32_t records)
      : region(arguments.ordered + begin),
        count(records),
        tiles(region_tiles(records)),
        length(tiles > 0 ? (records + tiles - 1) / tiles : 0),
        part(bucket & ((1u << arguments.part_bits) - 1)),
        parts(1u << arguments.part_bits) {}

  __device__ __forceinline__ bool none() const { return count == 0 || (count < kLeastRegion && part > 0); }

  __device__ __forceinline__ uint32_t start(uint32_t tile, uint32_t of_part) const {
    const uint2* const from = region + tile * length + of_part * 4;
    return from[0].x >> kPlaceShift | from[1].x >> kPlaceShift << 4 | from[2].x >> kPlaceShift << 8 | from[3].x >> kPlaceShift << 12;
  }
  // The same in two steps: the loads, of nothing where there is no table, and what they say.
  __device__ __forceinline__ uint4 load_start(uint32_t tile, uint32_t of_part) const {
    if (tile >= tiles || of_part >= parts || count < kLeastRegion) return make_uint4(0, 0, 0, 0);
    const uint2* const from = region + tile * length + of_part * 4;
    return make_uint4(from[0].x, from[1].x, from[2].x, from[3].x);
  }
  __device__ __forceinline__ uint32_t end_by(const uint4& loaded, uint32_t tile, uint32_t of_part) const {
    if (tile >= tiles) return 0;
    if (count < kLeastRegion) return count;
    if (of_part + 1 >= parts) return min(length, count - tile * length);
    return loaded.x >> kPlaceShift | loaded.y >> kPlaceShift << 4 | loaded.z >> kPlaceShift << 8 | loaded.w >> kPlaceShift << 12;
  }

  // End and begin in a tile; 0 in those that are not there.
  __device__ __forceinline__ uint32_t end_in_tile(uint32_t tile) const {
    if (tile >= tiles) return 0;
    if (count < kLeastRegion) return count;
    return part + 1 < parts ? start(tile, part + 1) : min(length, count - tile * length);
  }
  __device__ __forceinline__ uint2 of_tile(uint32_t tile) const {
    return make_uint2(tile < tiles && count >= kLeastRegion ? start(tile, part) : 0, end_in_tile(tile));
  }

  // Its upper bits say whether the bucket is left over.
  __device__ __forceinline__ uint32_t* mark() const { return &region[count < kLeastRegion ? 0 : 4 * parts + part].x; }
};

constexpr int kBucketThreads = mapped_shapes::kBucket.threads;

struct PartNotes {
  BlockScanStorage<uint32_t> scan;
  uint32_t sums[32];
  uint32_t ends[kBucketThreads];       // of the bucket, in each tile
  uint32_t slots[kBucketThreads + 1];  // where the part of each tile begins in the bucket
  uint16_t starts[kBucketThreads];     // and in the tile
  uint32_t region_begin, region_records, offset;
};

constexpr uint32_t kMostMappedInBin = (1u << (32 - mapped_shapes::kIndexBits)) - 1;

// Both outputs are wanted always.
struct RecordOutput {
  uint32_t* keys;
  int64_t* indices;

  __device__ __forceinline__ void store(uint32_t place, uint32_t key, uint32_t index) const {
    keys[place] = key;
    indices[place] = index;
  }
};

// Sorts keys that a block holds in registers, in any order.
template <int kThreads, int kItems>
struct MappedRows : BucketRows<uint32_t, kThreads, kItems> {
  using Rows = BucketRows<uint32_t, kThreads, kItems>;
  using Record = typename Rows::Record;
  using Rows::bin_bounds;
  using Rows::bins;
  using Rows::bucket;
  using Rows::counters;
  using Rows::for_each_item;
  using Rows::order;
  using Rows::records;
  using Rows::size;

  using Rows::Rows;

  // `taken`: indices, and numbers in the bins besides when it returns.
  template <class Map, class Output>
  __device__ __forceinline__ bool distribute(const uint32_t (&held)[kItems], uint32_t (&taken)[kItems], const Map& map,
                                             Output output) const {
    for_each_item([&](int e) { taken[e] |= fetch_add_shared(counters + map.bin(held[e]) * 4, 1) << mapped_shapes::kIndexBits; });
    if (!Rows::scan(kMostMappedInBin)) return false;
    Rows::set_pads();
    for_each_item([&](int e) {
      const uint32_t begin = load_shared(counters + map.bin(held[e]) * 4);
      records.set(begin + (taken[e] >> mapped_shapes::kIndexBits), Record{held[e], taken[e] & kIndexMask});
    });
    __syncthreads();
    Rows::template rank_and_write<Rows::kRankTogether>(
        output(), map, [&](const Record& record, uint32_t) { return bin_bounds(counters + map.bin(record.key) * 4); });
    return true;
  }

  // As BucketRows::sort(). False: not sorted, and nothing is written.
  template <class Output>
  __device__ __forceinline__ bool sort_keys(uint32_t (&held)[kItems], uint32_t (&taken)[kItems], Output output) const {
    uint32_t low = ~0u, high = 0;
    for_each_item([&](int e) {
      held[e] = order.flat(held[e]);
      low = min(low, held[e]);
      high = max(high, held[e]);
    });
    Rows::reduce_range(low, high);
    if (high - low < size / kMostPerValue || low == high) return false;
    if (order.right_between(low, high) && !Rows::many_magnitudes(low, high)) {
      return distribute(held, taken, FlatMap<uint32_t>(low, high, bins()), output);
    }
    const NumberMap<uint32_t> map(bucket.arguments, order, low, high, bins());
    return bucket.arguments.is_float && map.possible && !order.may_hold_nan(low, high) && !Rows::holds_negative_zero(held) &&
           distribute(held, taken, map, output);
  }

  // The same where codes are held: never out of order.
  template <class Output>
  __device__ __forceinline__ bool sort_codes(const uint32_t (&held)[kItems], uint32_t (&taken)[kItems], Output output) const {
    uint32_t low = ~0u, high = 0;
    for_each_item([&](int e) {
      low = min(low, held[e]);
      high = max(high, held[e]);
    });
    Rows::reduce_range(low, high);
    return high - low >= size / kMostPerValue && low != high && distribute(held, taken, FlatMap<uint32_t>(low, high, bins()), output);
  }
};

__device__ __forceinline__ void copy_record_async(uint32_t to, const uint2* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(from) : "memory");
}

// Buckets that follow each other, most often of one region: each begins where the one before ends, in memory and in every tile.
struct BucketSequence {
  static constexpr uint32_t kThreads = kBucketThreads;
  static constexpr int kItems = mapped_shapes::kBucket.items;
  static constexpr uint32_t kCapacity = kThreads * kItems;
  static constexpr uint32_t kLanes = 16;  // that copy the part of a tile
  using Rows = MappedRows<kBucketThreads, kItems>;

  const MappedArguments& arguments;
  PartNotes& notes;
  BucketNotes<uint32_t>& bucket_notes;
  const uint32_t storage, staged;  // shared addresses
  const uint32_t thread;

  __device__ __forceinline__ BucketSequence(const MappedArguments& all, PartNotes& part_notes, BucketNotes<uint32_t>& rows_notes,
                                            uint32_t shared)
      : arguments(all),
        notes(part_notes),
        bucket_notes(rows_notes),
        storage(shared),
        staged(shared + bucket_counter_bytes(kThreads, kItems)),
        thread(threadIdx.x) {}

  // Records of the region before this bucket.
  __device__ __forceinline__ uint32_t records_before(const BucketParts& parts, uint32_t own_start) const {
    uint32_t before = own_start;
    for (uint32_t tile = thread + kThreads; tile < parts.tiles; tile += kThreads) before += parts.of_tile(tile).x;
    before = __reduce_add_sync(~0u, before);
    __syncthreads();
    if (thread % 32 == 0) notes.sums[thread / 32] = before;
    __syncthreads();
    return __reduce_add_sync(~0u, thread % 32 < kThreads / 32 ? notes.sums[thread % 32] : 0);
  }

  // Calls visit(slot, record) for every record of the bucket. `own`: this thread's part of the first tiles; `first`: its slot.
  template <class Visit>
  __device__ __forceinline__ void for_each(const BucketParts& parts, uint2 own, uint32_t first, Visit visit) const {
    uint32_t before = 0;
#pragma unroll 1
    for (uint32_t window = 0; window < parts.tiles; window += kThreads) {
      if (parts.tiles > kThreads) {
        own = parts.of_tile(window + thread);
        uint32_t total;
        __syncthreads();
        first = before + block_exclusive_scan(own.y - own.x, total, notes.scan);
        before += total;
      }
      notes.slots[thread] = first;
      notes.starts[thread] = static_cast<uint16_t>(own.x);  // of this window
      if (thread == kThreads - 1) notes.slots[kThreads] = first + own.y - own.x;
      __syncthreads();
      const uint32_t tiles = min(parts.tiles - window, kThreads), lane = thread % kLanes;
#pragma unroll 1
      for (uint32_t tile = thread / kLanes; tile < tiles; tile += kThreads / kLanes) {
        const uint32_t slot = notes.slots[tile], records = notes.slots[tile + 1] - slot;
        const uint2* const from = parts.region + (window + tile) * parts.length + notes.starts[tile];
#pragma unroll 4
        for (uint32_t i = lane; i < records; i += kLanes) visit(slot + i, from + i);
      }
    }
  }

  // Where the bucket lies in the outputs. Read anew by volatile loads, as what is held for long takes the registers of the sort.
  __device__ __forceinline__ uint32_t offset() const {
    return load_shared(shared_address(&notes.offset));
  }
  __device__ __forceinline__ RecordOutput output() const {
    const uint32_t begin = offset();
    return {arguments.buckets.keys_out + begin, arguments.buckets.indices_wide + begin};
  }
  __device__ __forceinline__ void store_word(uint64_t* words, uint32_t slot, uint32_t key, uint32_t index) const {
    words[slot] = static_cast<uint64_t>(arguments.order.code(key)) << 32 | index;
  }
  __device__ __forceinline__ uint64_t* words() const {
    return reinterpret_cast<uint64_t*>(arguments.buckets.indices_wide + offset());
  }

  // What the block has staged; false where it is left over.
  __device__ __forceinline__ bool sort_staged(uint32_t bucket, uint32_t size) const {
    const BucketSpan<uint32_t> span(arguments.buckets, bucket, size, false, 0);
    const Rows rows(span, storage, bucket_notes);
    rows.clear_counters();
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    const uint32_t own_records = staged + thread * 8;
    uint32_t held[kItems], taken[kItems];
#pragma unroll
    for (int first = 0; first < kItems; first += 4) {
      if (first * kThreads >= size) continue;
#pragma unroll
      for (int e = first; e < first + 4; ++e) {  // also beyond the end, where anything may lie
        uint2 record;
        load_shared(own_records + e * (kThreads * 8), record);
        held[e] = record.y;
        taken[e] = record.x & kIndexMask;
      }
    }
    if (rows.sort_keys(held, taken, [&] { return output(); })) return true;
    uint64_t* const left = words();
    rows.for_each_item([&](int e) { store_word(left, e * kThreads + thread, rows.order.bits(held[e]), taken[e] & kIndexMask); });
    return false;
  }

  // Brings a bucket on its way to shared memory, or, where it is too large, to the output as words. Returns its size.
  __device__ __forceinline__ uint32_t fetch(uint32_t bucket, bool& last_part) const {
    const BucketParts parts(arguments, bucket, notes.region_begin, notes.region_records);
    last_part = parts.part + 1 == parts.parts;
    if (parts.none()) return 0;
    const uint2 own = make_uint2(notes.starts[thread], notes.ends[thread]);
    const uint4 next = parts.load_start(thread, parts.part + 2);
    uint32_t records = own.y - own.x, size;
    for (uint32_t tile = thread + kThreads; tile < parts.tiles; tile += kThreads) {
      const uint2 other = parts.of_tile(tile);
      records += other.y - other.x;
    }
    const uint32_t first = block_exclusive_scan(records, size, notes.scan);
    if (size <= kCapacity) {
      for_each(parts, own, first, [&](uint32_t slot, const uint2* record) { copy_record_async(staged + slot * 8, record); });
    } else {
      uint64_t* const left = words();
      for_each(parts, own, first, [&](uint32_t slot, const uint2* record) { store_word(left, slot, record->y, record->x & kIndexMask); });
    }
    __syncthreads();
    notes.starts[thread] = static_cast<uint16_t>(own.y);
    notes.ends[thread] = parts.end_by(next, thread, parts.part + 1);
    return size;
  }

  __device__ __forceinline__ void enter_region(uint32_t bucket) const {
    const uint32_t region = bucket >> arguments.part_bits, begin = region_begin(arguments, region);
    const uint32_t records = region_begin(arguments, region + 1) - begin;
    const BucketParts parts(arguments, bucket, begin, records);
    const uint2 own = parts.of_tile(thread);
    const uint32_t before = records_before(parts, own.x);
    notes.starts[thread] = static_cast<uint16_t>(own.x);
    notes.ends[thread] = own.y;
    if (thread == 0) {
      notes.region_begin = begin;
      notes.region_records = records;
      notes.offset = begin + before;
    }
    __syncthreads();
  }

  __device__ __forceinline__ void run(uint32_t bucket, uint32_t end) const {
    bool new_region = true;
#pragma unroll 1
    for (; bucket < end; ++bucket) {
      if (new_region) enter_region(bucket);
      const uint32_t size = fetch(bucket, new_region);
      const bool sorted = size == 0 || (size <= kCapacity && sort_staged(bucket, size));
      __syncthreads();
      if (thread == 0) {
        notes.offset += size;
        if (!sorted) *BucketParts(arguments, bucket, notes.region_begin, notes.region_records).mark() |= kLeftBucket << kPlaceShift;
      }
    }
  }
};

// Blocks stay, so that there is little to do where the rows are not accepted.
__global__ __launch_bounds__(kBucketThreads, mapped_shapes::kBucketBlocksPerSm) void mapped_buckets_kernel(
    const __grid_constant__ MappedArguments arguments) {
  start_after_predecessor();
  extern __shared__ uint4 storage[];
  __shared__ BucketNotes<uint32_t> bucket_notes;
  __shared__ PartNotes notes;
  if (!accepted(arguments)) return;
  const uint64_t buckets = arguments.regions() << arguments.part_bits;
  const uint32_t begin = static_cast<uint32_t>(buckets * blockIdx.x / gridDim.x),
                 end = static_cast<uint32_t>(buckets * (blockIdx.x + 1) / gridDim.x);
  BucketSequence(arguments, notes, bucket_notes, shared_address(storage)).run(begin, end);
}

}  // namespace gpusort
