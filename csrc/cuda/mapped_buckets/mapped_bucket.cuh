// The buckets: a block pulls the parts of its bucket from all tiles of the region and sorts them on chip (mapped_rows.cuh). Records of a
// bucket come in any order; their indices tell equal keys apart.
//
// Left to listed_words.cuh: buckets above the capacity, those in which flat forms are out of order (NaN, zeros of both signs), and those
// whose keys crowd. Their codes and indices go to their part of the index output as words of 64 bits, and a mark to the workspace.
#pragma once

#include <cstdint>

#include "mapped_rows.cuh"
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
  // The same in two steps: the words, where there is a table that has them, and what they say.
  __device__ __forceinline__ bool has_start(uint32_t tile, uint32_t of_part) const {
    return tile < tiles && of_part < parts && count >= kLeastRegion;
  }
  __device__ __forceinline__ const uint2* start_words(uint32_t tile, uint32_t of_part) const {
    return region + tile * length + of_part * 4;
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
  uint4 next[kBucketThreads];          // words of where the next part ends
  uint32_t region_begin, region_records, offset;
};

// Both outputs are wanted always.
struct RecordOutput {
  uint32_t* keys;
  int64_t* indices;

  __device__ __forceinline__ void store(uint32_t place, uint32_t key, uint32_t index) const {
    keys[place] = key;
    indices[place] = index;
  }
};

__device__ __forceinline__ void copy_word_async(uint32_t to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copy_record_async(uint32_t to, const uint2* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(from) : "memory");
}

// Of shared memory that is taken with kStorageSlack bytes more than are needed. Opaque, or it is found anew at each use.
constexpr int kStorageSlack = 48;
__device__ __forceinline__ uint32_t aligned_storage(const uint4* storage) {
  return opaque((shared_address(storage) + 63) & ~63u);
}

// Buckets that follow each other, most often of one region: each begins where the one before ends, in memory and in every tile.
struct BucketSequence {
  static constexpr uint32_t kThreads = kBucketThreads;
  static constexpr int kItems = mapped_shapes::kBucket.items;
  static constexpr uint32_t kCapacity = kThreads * kItems;
  static constexpr uint32_t kLanes = 16;     // that copy the part of a tile
  static constexpr uint32_t kFewTiles = 64;  // of which each warp knows all
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
        staged(shared + Rows::kRecordsOffset),
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
  __device__ __forceinline__ uint32_t fetch(const BucketParts& parts) const {
    if (parts.none()) return 0;
    if (parts.has_start(thread, parts.part + 2)) {
      const uint2* const from = parts.start_words(thread, parts.part + 2);
#pragma unroll
      for (int k = 0; k < 4; ++k) copy_word_async(shared_address(notes.next + thread) + k * 4, from + k);
    }
    if (parts.tiles > kFewTiles) return fetch_many(parts);
    // Each warp finds for itself where the parts of two tiles to a lane go.
    const uint32_t lane = thread % 32;
    const uint32_t start[2] = {notes.starts[lane], notes.starts[lane + 32]};
    const uint32_t records[2] = {notes.ends[lane] - start[0], notes.ends[lane + 32] - start[1]};
    const uint32_t first = warp_inclusive_scan(records[0]), first_sum = __shfl_sync(~0u, first, 31);
    const uint32_t second = warp_inclusive_scan(records[1]) + first_sum, size = __shfl_sync(~0u, second, 31);
    if (size > kCapacity) return fetch_many(parts);
    const uint32_t at[2] = {(first - records[0]) << 16 | start[0], (second - records[1]) << 16 | start[1]};
#pragma unroll
    for (uint32_t begin = 0; begin < kFewTiles; begin += kThreads / kLanes) {
      if (begin + thread / 32 * (32 / kLanes) >= parts.tiles) break;
      const uint32_t tile = begin + thread / kLanes;
      const bool in_first = tile < 32;  // the same for the whole warp
      const uint32_t slot_start = __shfl_sync(~0u, in_first ? at[0] : at[1], tile % 32);
      const uint32_t many = __shfl_sync(~0u, in_first ? records[0] : records[1], tile % 32);
      const uint2* const from = parts.region + tile * parts.length + (slot_start & 0xffff);
      const uint32_t to = staged + (slot_start >> 16) * 8;
#pragma unroll 4
      for (uint32_t i = thread % kLanes; i < many; i += kLanes) copy_record_async(to + i * 8, from + i);
    }
    return size;
  }

  // The same for any number of tiles and records.
  __device__ __forceinline__ uint32_t fetch_many(const BucketParts& parts) const {
    const uint2 own = make_uint2(notes.starts[thread], notes.ends[thread]);
    uint32_t records = own.y - own.x, size;
    for (uint32_t tile = thread + kThreads; tile < parts.tiles; tile += kThreads) {
      const uint2 other = parts.of_tile(tile);
      records += other.y - other.x;
    }
    __syncthreads();
    const uint32_t first = block_exclusive_scan(records, size, notes.scan);
    if (size <= kCapacity) {
      for_each(parts, own, first, [&](uint32_t slot, const uint2* record) { copy_record_async(staged + slot * 8, record); });
    } else {
      uint64_t* const left = words();
      for_each(parts, own, first, [&](uint32_t slot, const uint2* record) { store_word(left, slot, record->y, record->x & kIndexMask); });
    }
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
      const BucketParts parts(arguments, bucket, notes.region_begin, notes.region_records);
      new_region = parts.part + 1 == parts.parts;
      const uint32_t size = fetch(parts), part_end = notes.ends[thread];
      Rows::clear_counters(storage);
      asm volatile("cp.async.wait_all;" ::: "memory");
      __syncthreads();
      notes.starts[thread] = static_cast<uint16_t>(part_end);
      notes.ends[thread] = parts.end_by(notes.next[thread], thread, parts.part + 1);
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
  BucketSequence(arguments, notes, bucket_notes, aligned_storage(storage)).run(begin, end);
}

}  // namespace gpusort
