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
  static constexpr int kBlocksPerSm = bucket_blocks_per_sm(sizeof(U), kThreads, kItems);

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
    Block::template rank_and_write<1>(map,
                                      [&](const Record& record, uint32_t) { return bin_bounds(counters + map.bin(record.key) * 4 - 4); });
    return true;
  }

  // The middle one of the codes of three keys. `alike`: two of them are equal, so the bucket is likely crowded.
  __device__ __forceinline__ Flat middle_code(const ExactMap<U>& map, bool& alike) const {
    const U* keys = bucket.keys();
    const Flat a = map.code(order.flat(keys[0])), b = map.code(order.flat(keys[size / 2])), c = map.code(order.flat(keys[size - 1]));
    alike = a == b || b == c || a == c;
    return max(min(a, b), min(max(a, b), c));
  }

  // False, for all threads, when different codes crowd together. The counters are zero.
  __device__ __forceinline__ bool sort_crowd(BucketCrowds<U, kThreads>& crowds) const {
    set_pads();
#pragma unroll 1
    for (int attempt = 0;; ++attempt) {
      crowds.count();
      scan(~0u);
      crowds.scatter();
      if (crowds.each_value || !__syncthreads_or(crowds.falls())) {
        crowds.write();
        return true;
      }
      Flat common = static_cast<Flat>(~Flat{0}), any = 0;
      if (!__syncthreads_or(crowds.falls_in_large_group(common))) {
        Block::template rank_and_write<1>(crowds.map,
                                          [&](const Record& record, uint32_t place) { return crowds.bounds_to_rank(record, place); });
        return true;
      }
      if (attempt == 1) return false;
      reduce_range(common, any);
      crowds.pivot = common;
      clear_counters();
      __syncthreads();
    }
  }

  // False: left to bucket_rest.cuh. `crowded`: a bin of the flat map held too many.
  __device__ __forceinline__ bool sort(bool crowded) const {
    const KeyOrder<U>& codes = bucket.arguments.order;
    prefetch_indices();
    clear_counters();
    Flat low = ~Flat{0}, high = 0, low_code = ~Flat{0}, high_code = 0;
    for_each_key([&](Flat flat, uint32_t) {
      const Flat code = codes.code(order.bits(static_cast<U>(flat)));
      low = min(low, flat);
      high = max(high, flat);
      low_code = min(low_code, code);
      high_code = max(high_code, code);
    });
    reduce_range(low, high);
    __syncthreads();
    reduce_range(low_code, high_code);
    if (low_code == high_code) {
      copy_bucket(bucket, thread, kThreads);
      return true;
    }
    const bool has_numbers = bucket.arguments.is_float && !order.may_hold_nan(static_cast<U>(low), static_cast<U>(high));
    const bool each_value = high_code - low_code < bins() / kWarps;
    ExactMap<U> map(bucket.arguments, order, low_code, high_code, bins());
    bool alike;
    const Flat pivot = middle_code(map, alike);
    if (!each_value && !crowded && !alike) {
      if (has_numbers) map.cut_by_number(low, high);
      if (distribute_exactly(map)) return true;
    }
    ExactMap<U> groups(bucket.arguments, order, low_code, high_code, bins() / kWarps - 2);
    if (has_numbers) groups.cut_by_number(low, high);
    BucketCrowds<U, kThreads> crowds{bucket, order, records, counters, groups, each_value, pivot};
    return sort_crowd(crowds);
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
