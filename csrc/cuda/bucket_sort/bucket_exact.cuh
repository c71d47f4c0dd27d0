// Sorts the buckets that the flat map does not serve (bucket_rows.cuh): by codes, or by the numbers that keys stand for, through the exact
// map (bucket_maps.cuh) as there; where keys crowd together, most often copies of one value, by counting them stably
// (bucket_crowds.cuh). What fails there too is left to bucket_rest.cuh.
//
// The blocks that an SM has room for share the list. They read the keys of a bucket as often as they need them, and all of it is read
// before any of it is written.
#pragma once

#include <cstdint>

#include "../primitives/dependent_launch.cuh"
#include "bucket_block.cuh"
#include "bucket_crowds.cuh"
#include "bucket_maps.cuh"

namespace gpusort {

template <class U, int kThreads, int kItems>
struct BucketExact : BucketBlock<U, kThreads, kItems> {
  using Block = BucketBlock<U, kThreads, kItems>;
  using Record = typename Block::Record;
  using Flat = typename Block::Flat;
  using Block::bin_bounds;
  using Block::bins;
  using Block::bucket;
  using Block::clear_counters;
  using Block::counters;
  using Block::kWarps;
  using Block::order;
  using Block::prefetch_indices;
  using Block::records;
  using Block::reduce_range;
  using Block::scan;
  using Block::set_pads;
  using Block::size;
  using Block::thread;
  static constexpr int kGroup = 4;  // keys that are loaded at a time
  // Few keys to a thread do not make its registers as few as bucket_blocks_per_sm() counts for them.
  static constexpr int kMostBlocks = 65536 / (kThreads * (sizeof(U) == 8 ? 96 : 64));
  static constexpr int kFittingBlocks = bucket_blocks_per_sm(sizeof(U), kThreads, kItems, sizeof(CrowdSplitters<Flat>));
  static constexpr int kBlocksPerSm = kItems > 8 || kFittingBlocks < kMostBlocks ? kFittingBlocks : kMostBlocks;

  using Block::Block;

  // Calls visit(flat form, slot) of every key.
  template <class Visit>
  __device__ __forceinline__ void for_each_key(Visit visit) const {
    const U* keys = bucket.keys();
#pragma unroll 1
    for (uint32_t first = thread; first < size; first += kGroup * kThreads) {
      U key[kGroup];
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        if (first + k * kThreads < size) key[k] = keys[first + k * kThreads];
      }
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        if (first + k * kThreads < size) visit(static_cast<Flat>(order.flat(key[k])), first + k * kThreads);
      }
    }
  }

  // As BucketRows::distribute(), by codes or by numbers. Places are taken by moving the begins on, so each bin's begin is found in the bin
  // before.
  __device__ __forceinline__ bool distribute_exactly(ExactMap<U>& map) const {
#pragma unroll 1
    while (true) {
      for_each_key([&](Flat flat, uint32_t) { add_shared(counters + map.bin(flat) * 4, 1); });
      if (scan(kMostInBin)) break;
      clear_counters();
      __syncthreads();
      if (!map.by_number) return false;
      map.by_number = false;
    }
    set_pads();
    const uint32_t* indices = bucket.indices();
    for_each_key([&](Flat flat, uint32_t slot) {
      const uint32_t index = indices ? indices[slot] : slot;
      records.set(fetch_add_shared(counters + map.bin(flat) * 4, 1), Record{flat, index});
    });
    __syncthreads();
    Block::template rank_and_write<1>(BucketOutput<U>(bucket), map,
                                      [&](const Record& record, uint32_t) { return bin_bounds(counters + map.bin(record.key) * 4 - 4); });
    return true;
  }

  // Are two of three keys equal? Then the bucket is likely crowded.
  __device__ __forceinline__ bool looks_crowded(const ExactMap<U>& map) const {
    const U* keys = bucket.keys();
    const Flat a = map.code(order.flat(keys[0])), b = map.code(order.flat(keys[size / 2])), c = map.code(order.flat(keys[size - 1]));
    return a == b || b == c || a == c;
  }

  // False, for all threads, when the bucket is not sorted. The counters have been cleared; where `range` is small, before a barrier.
  // `flat`: flat forms are in order, else codes are; `range` is that of the ones or the others.
  __device__ __forceinline__ bool sort_crowd(bool flat, Flat lowest, Flat range) const {
    __shared__ CrowdSplitters<Flat> splitters;
    const uint32_t groups = bins() / kWarps;
    const bool each_value = range < groups;
    const int levels = each_value ? 0 : min(kMostCrowdLevels, range_bits(groups) - 2);  // two groups to a splitter
    const BucketCrowds<U, kThreads, kItems> crowds{bucket, order, records, counters, flat, lowest, levels, splitters};
    uint32_t found[kItems];
    if (!each_value) crowds.choose_splitters();
    crowds.count(found);
    scan(~0u);
    if (__syncthreads_or(crowds.finds_large_group())) return false;
    set_pads();
    crowds.scatter(found);
    crowds.write();
    return true;
  }

  // False: left to bucket_rest.cuh. `crowded`: flat forms are in order, but a bin of the flat map held too many.
  __device__ __forceinline__ bool sort(bool crowded) const {
    prefetch_indices();
    clear_counters();
    bool flat = true;
    Flat lowest = 0, range = ~Flat{0};
    if (!crowded) {
      Flat low = ~Flat{0}, high = 0;
      for_each_key([&](Flat key, uint32_t) {
        low = min(low, key);
        high = max(high, key);
      });
      reduce_range(low, high);
      const KeyOrder<U>& codes = bucket.arguments.order;
      Flat low_code = codes.code(order.bits(static_cast<U>(low))), high_code = codes.code(order.bits(static_cast<U>(high)));
      flat = order.right_between(static_cast<U>(low), static_cast<U>(high));
      if (!flat) {
        for_each_key([&](Flat key, uint32_t) {
          const Flat code = codes.code(order.bits(static_cast<U>(key)));
          low_code = min(low_code, code);
          high_code = max(high_code, code);
        });
        __syncthreads();
        reduce_range(low_code, high_code);
      }
      lowest = flat ? low : low_code;
      range = high_code - low_code;
      if (range == 0) {
        copy_bucket(bucket, thread, kThreads);
        return true;
      }
      ExactMap<U> map(bucket.arguments, order, low, high, low_code, high_code, bins());
      if (range >= bins() / kWarps && !looks_crowded(map) && distribute_exactly(map)) return true;
    }
    return sort_crowd(flat, lowest, range);
  }
};

template <class U, int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads, BucketExact<U, kThreads, kItems>::kBlocksPerSm)
    bucket_exact_kernel(const __grid_constant__ BucketArguments<U> arguments) {
  using Exact = BucketExact<U, kThreads, kItems>;
  start_after_predecessor();
  extern __shared__ uint4 shared_memory[];
  __shared__ BucketNotes<typename Exact::Flat> notes;
  const uint32_t listed = arguments.overflow[kExactCount];
  for (uint32_t i = blockIdx.x; i < listed; i += gridDim.x) {
    const uint32_t noted = exact_list(arguments)[i];
    const BucketSpan<U> bucket(arguments, noted & ~kCrowdedBucket);
    const bool sorted = Exact(bucket, shared_address(shared_memory), notes).sort((noted & kCrowdedBucket) != 0);
    if (!sorted && threadIdx.x == 0) note_for_rest(arguments, bucket.number);
    __syncthreads();
  }
}

}  // namespace gpusort
