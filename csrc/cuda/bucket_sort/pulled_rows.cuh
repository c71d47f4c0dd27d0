// Sorts buckets that are pulled from ordered tiles, one to a block: by distribution, as bucket_rows.cuh, whose steps and invariants are
// these. Keys and indices of the bucket come together, and both stay in registers until they are in their bins. A bucket of a few values is
// sorted there too, by counting them (sort_few).
//
// A bucket that is left to bucket_exact.cuh or bucket_rest.cuh is put in a row for them: the keys where the result's will be, the indices
// in the second half of their part of the result. Buckets of few runs of equal keys are sorted by their runs (bucket_runs.cuh).
#pragma once

#include <cstdint>

#include "../primitives/dependent_launch.cuh"
#include "bucket_maps.cuh"
#include "bucket_rows.cuh"
#include "bucket_runs.cuh"
#include "pulled_bucket.cuh"

namespace gpusort {

constexpr int kMostFew = 6;                   // values
constexpr int kMostInRuns = 2;                // the same where most keys are like their neighbours, most often runs of many values
constexpr uint32_t kMostPulledPerValue = 24;  // keys to a value, if the bucket's range were full: bucket_exact.cuh would read them again
constexpr uint32_t kFewAlike = 10;  // at most, to a key that is like its neighbour, where it is worth while to look for few values

// Keys and 64-bit indices, or keys alone.
template <class U, bool kIndexed>
struct PulledOutput {
  U* keys;
  int64_t* indices;

  __device__ __forceinline__ explicit PulledOutput(const BucketSpan<U>& bucket)
      : keys(bucket.arguments.keys_out + bucket.offset), indices(kIndexed ? bucket.arguments.indices_wide + bucket.offset : nullptr) {}

  __device__ __forceinline__ void store(uint32_t place, U key, uint32_t index) const {
    keys[place] = key;
    if constexpr (kIndexed) indices[place] = index;
  }
};

// For keys alone the slot stands for the index, since it tells equal keys apart as well.
template <class U, int kThreads, int kItems, bool kIndexed>
struct PulledRows : BucketRows<U, kThreads, kItems> {
  using Rows = BucketRows<U, kThreads, kItems>;
  using Flat = typename Rows::Flat;
  using Record = typename Rows::Record;
  using Rows::bin_bounds;
  using Rows::bins;
  using Rows::bucket;
  using Rows::counters;
  using Rows::for_each_item;
  using Rows::notes;
  using Rows::order;
  using Rows::records;
  using Rows::size;
  using Rows::thread;
  static constexpr int kLoads = 4;  // sources read at a time

  using Rows::Rows;

  __device__ __forceinline__ void pull(const PulledBucket<U, kThreads>& pulled, Flat (&held)[kItems], uint32_t (&indices)[kItems]) const {
    const U* const keys = pulled.keys();
    const uint16_t* const places = pulled.places();
#pragma unroll
    for (int first = 0; first < kItems; first += kLoads) {
      if (first * kThreads >= size) continue;
      uint32_t source[kLoads];
#pragma unroll
      for (int k = 0; k < kLoads; ++k) {
        const uint32_t slot = (first + k) * kThreads + thread;
        source[k] = load_shared(pulled.sources + (slot < size ? slot : 0) * 4);
      }
#pragma unroll
      for (int k = 0; k < kLoads; ++k) {
        const uint32_t begin = pulled.tile_begin(source[k]), at = begin + (source[k] & 0xffff);
        held[first + k] = keys[at];
        indices[first + k] = kIndexed ? begin + places[at] : (first + k) * kThreads + thread;
      }
    }
  }

  template <class Map>
  __device__ __forceinline__ bool distribute(const Flat (&held)[kItems], const uint32_t (&indices)[kItems], const Map& map) const {
    uint32_t numbers[kItems / 4];
    Rows::count(held, map, numbers);
    if (!Rows::scan(kMostInBin)) return false;
    Rows::set_pads();
    for_each_item([&](int e) {
      const uint32_t counter = counters + map.bin(held[e]) * 4;
      records.set(load_shared(counter) + (numbers[e / 4] >> (e % 4 * 8) & 0xff), Record{held[e], indices[e]});
    });
    __syncthreads();
    Rows::template rank_and_write<Rows::kRankTogether>(PulledOutput<U, kIndexed>(bucket), map, [&](const Record& record, uint32_t) {
      return bin_bounds(counters + map.bin(record.key) * 4);
    });
    return true;
  }

  // Sorts a bucket of at most `most` values, by counting them: for each value, round and warp how many lanes hold it, in this order. So
  // the exclusive sums are places, and neither ranks nor records are needed. False, for all threads, when there are more.
  __device__ __forceinline__ bool sort_few(const Flat (&held)[kItems], const uint32_t (&indices)[kItems], Flat low, Flat high,
                                           int most) const {
    constexpr int kWarps = Rows::kWarps;
    static_assert(kMostFew * kItems * kWarps <= 4 * kThreads, "no more counters than bins");
    __shared__ Flat values[kMostFew];
    Flat value = low;
    int count = 1;
    while (true) {
      if (thread == 0) values[count - 1] = value;
      if (value == high) break;
      if (count == most) return false;
      Flat next = high;
      for_each_item([&](int e) { next = held[e] > value ? min(next, held[e]) : next; });
      Flat unused = next;
      __syncthreads();
      Rows::reduce_range(next, unused);
      value = next;
      ++count;
    }
    __syncthreads();
    const uint32_t warp = thread / 32, lane = thread % 32;
#pragma unroll 1
    for (int k = 0; k < count; ++k) {
      const Flat own = values[k];
      uint32_t lanes = 0;
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        const uint32_t votes = __ballot_sync(~0u, e * kThreads + thread < size && held[e] == own);
        if (static_cast<uint32_t>(e) == lane) lanes = __popc(votes);
      }
      if (lane < kItems) store_shared(counters + ((k * kItems + lane) * kWarps + warp) * 4, lanes);
    }
    Rows::scan(~0u);
    const PulledOutput<U, kIndexed> output(bucket);
    const uint32_t below = (1u << lane) - 1;
#pragma unroll 1
    for (int k = 0; k < count; ++k) {
      const Flat own = values[k];
      const U key = order.bits(static_cast<U>(own));
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        const bool here = e * kThreads + thread < size && held[e] == own;
        const uint32_t votes = __ballot_sync(~0u, here);
        // Else indices would be widened before the loop over values, and kept in local memory.
        const uint32_t index = opaque(indices[e]);
        if (here) output.store(load_shared(counters + ((k * kItems + e) * kWarps + warp) * 4) + __popc(votes & below), key, index);
      }
    }
    return true;
  }

  // False, for all threads, when there are too many runs. The counters stay clear.
  __device__ __forceinline__ bool sort_runs(const Flat (&held)[kItems], const uint32_t (&indices)[kItems]) const {
    using Runs = BucketRuns<U, kThreads, kItems>;
    extern __shared__ uint4 shared_memory[];
    auto* const words = reinterpret_cast<typename Runs::Words*>(shared_memory + bucket_counter_bytes(kThreads, kItems) / 16);
    return Runs{bucket, order, *words, notes}.sort(held, indices, PulledOutput<U, kIndexed>(bucket));
  }

  // As BucketRows::sort().
  __device__ __forceinline__ BucketFate sort_held(Flat (&held)[kItems], const uint32_t (&indices)[kItems]) const {
    Flat low = ~Flat{0}, high = 0;
    for_each_item([&](int e) {
      held[e] = order.flat(static_cast<U>(held[e]));
      low = min(low, held[e]);
      high = max(high, held[e]);
    });
    Rows::note_runs(thread < size ? held[0] : Flat{0});
    Rows::reduce_range(low, high);
    const bool flat = order.right_between(static_cast<U>(low), static_cast<U>(high));
    const uint32_t alike = Rows::alike_neighbours(), all = min(size, static_cast<uint32_t>(kThreads));
    const bool has_runs = alike > all / 2;
    if (alike > all / 4 * 3 && sort_runs(held, indices)) return BucketFate::kSorted;
    if (flat && alike > all / kFewAlike && sort_few(held, indices, low, high, has_runs ? kMostInRuns : kMostFew)) {
      return BucketFate::kSorted;
    }
    if (high - low < size / kMostPulledPerValue || low == high) return BucketFate::kNotFlat;
    if (flat && !Rows::many_magnitudes(low, high)) {
      if (has_runs) return BucketFate::kCrowded;
      return distribute(held, indices, FlatMap<U>(low, high, bins())) ? BucketFate::kSorted : BucketFate::kCrowded;
    }
    const NumberMap<U> map(bucket.arguments, order, low, high, bins());
    if (bucket.arguments.is_float && map.possible && !has_runs && !order.may_hold_nan(static_cast<U>(low), static_cast<U>(high)) &&
        !Rows::holds_negative_zero(held) && distribute(held, indices, map)) {
      return BucketFate::kSorted;
    }
    return BucketFate::kNotFlat;
  }

  __device__ __forceinline__ BucketFate sort(const PulledBucket<U, kThreads>& pulled) const {
    Flat held[kItems];
    uint32_t indices[kItems];
    Rows::clear_counters();
    pull(pulled, held, indices);
    const BucketFate fate = sort_held(held, indices);
    if (fate != BucketFate::kSorted) {
      U* const keys_to = bucket.arguments.keys_out + bucket.offset;
      uint32_t* const indices_to = kIndexed ? const_cast<uint32_t*>(bucket.indices()) : nullptr;
      for_each_item([&](int e) {
        keys_to[e * kThreads + thread] = order.bits(static_cast<U>(held[e]));
        if constexpr (kIndexed) indices_to[e * kThreads + thread] = indices[e];
      });
    }
    return fate;
  }
};

template <class U, int kThreads, int kItems, bool kIndexed>
__global__ void __launch_bounds__(kThreads, bucket_blocks_per_sm(sizeof(U), kThreads, kItems))
    pulled_rows_kernel(const __grid_constant__ PulledArguments<U> all) {
  using Rows = PulledRows<U, kThreads, kItems, kIndexed>;
  start_after_predecessor();
  extern __shared__ uint4 shared_memory[];
  __shared__ BucketNotes<typename Rows::Flat> notes;
  __shared__ PulledNotes pulled_notes;
  const uint32_t storage = shared_address(shared_memory);
  PulledBucket<U, kThreads> pulled(all, storage + bucket_counter_bytes(kThreads, kItems), Rows::kCapacity, pulled_notes);
  pulled.find();
  if (pulled.size == 0) return;
  const BucketSpan<U> bucket(all.buckets, blockIdx.x, pulled.size, pulled.all_equal, pulled.row * all.buckets.length + pulled.begin);
  if (bucket.all_equal) {
    const PulledOutput<U, kIndexed> output(bucket);
    pulled.template for_each<kIndexed>(Rows::kCapacity, [&](uint32_t slot, U key, uint32_t index) { output.store(slot, key, index); });
  } else if (bucket.size > Rows::kCapacity) {
    U* const keys_to = bucket.arguments.keys_out + bucket.offset;
    uint32_t* const indices_to = kIndexed ? const_cast<uint32_t*>(bucket.indices()) : nullptr;
    pulled.template for_each<kIndexed>(Rows::kCapacity, [&](uint32_t slot, U key, uint32_t index) {
      keys_to[slot] = key;
      if constexpr (kIndexed) indices_to[slot] = index;
    });
    if (threadIdx.x == 0) note_for_rest(all.buckets, bucket.number);
  } else {
    pulled.find_sources(0, bucket.size);
    const BucketFate fate = Rows(bucket, storage, notes).sort(pulled);
    if (fate != BucketFate::kSorted && threadIdx.x == 0) note_for_exact(all.buckets, bucket.number, fate);
  }
}

}  // namespace gpusort
