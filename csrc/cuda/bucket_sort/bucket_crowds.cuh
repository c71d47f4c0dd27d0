// Sorts a bucket in which values are found often, by counting its keys group by group, stably (counting sort; Seward 1954).
//
// A group is one value when the bucket has few possible ones; else a part of the range that most often holds copies of one value only. One
// value, the pivot, has a group of its own: in data that crowds around a value, zero for most, others lie right beside it.
//   count    a warp takes a stretch of neighbours and counts its keys of each group; the counts lie group by group, and warp by warp within
//            a group, so one exclusive scan gives every warp the place of its next key of each group
//   scatter  the warp goes through its stretch again, 32 keys at a time: ballots tell which lanes hold the same group, and how many of them
//            are before
//   check    records now rise group by group, those of a group in the order of their indices. So if codes nowhere fall from one place to
//            the next, all is sorted. If they do, groups to kMostInBin keys can be ranked as bins are, and a larger one must not fall.
#pragma once

#include <cstdint>

#include "../../core/flat_order.h"
#include "../../core/word_map.h"
#include "bucket_block.cuh"
#include "bucket_maps.cuh"
#include "bucket_records.cuh"

namespace gpusort {

template <class U, int kThreads>
struct BucketCrowds {
  using Record = typename BucketRecords<U>::Record;
  using Flat = typename BucketRecords<U>::Flat;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kTogether = 4;  // keys loaded at a time

  const BucketSpan<U>& bucket;
  const FlatOrder<U>& order;
  const BucketRecords<U>& records;
  const uint32_t counters;  // shared address; the word before it is zero
  const ExactMap<U>& map;   // to groups, but for the pivot's; at least two less than there are counters to a warp
  const bool each_value;    // is a group
  Flat pivot = 0;           // code

  __device__ __forceinline__ uint32_t last_group() const { return each_value ? static_cast<uint32_t>(map.high - map.low) : map.bins + 1; }

  __device__ __forceinline__ uint32_t group_of(Flat flat) const {
    const Flat code = map.code(flat);
    return each_value ? static_cast<uint32_t>(code - map.low) : map.bin(flat) + (code >= pivot) + (code > pivot);
  }

  // Calls visit(valid, flat form, index) for the warp's stretch, in order; all lanes together.
  template <bool kIndices, class Visit>
  __device__ __forceinline__ void for_each(Visit visit) const {
    const U* keys = bucket.keys();
    const uint32_t* indices = bucket.indices();
    const uint32_t rounds = (bucket.size + kThreads - 1) / kThreads;
    const uint32_t own = threadIdx.x / 32 * rounds * 32 + threadIdx.x % 32;
#pragma unroll 1
    for (uint32_t round = 0; round < rounds; round += kTogether) {
      U key[kTogether];
      uint32_t index[kTogether];
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const uint32_t slot = own + (round + k) * 32;
        const bool valid = round + k < rounds && slot < bucket.size;
        key[k] = valid ? keys[slot] : U{0};
        index[k] = kIndices && valid && indices != nullptr ? indices[slot] : slot;
      }
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        if (round + k < rounds) visit(own + (round + k) * 32 < bucket.size, static_cast<Flat>(order.flat(key[k])), index[k]);
      }
    }
  }

  __device__ __forceinline__ uint32_t counter_of(Flat flat) const {
    return counters + (group_of(flat) * kWarps + threadIdx.x / 32) * 4;
  }

  __device__ __forceinline__ void count() const {
    for_each<false>([&](bool valid, Flat flat, uint32_t) {
      if (valid) add_shared(counter_of(flat), 1);
    });
  }

  // The counts have become begins; afterwards they are where the next warp, or group, begins.
  __device__ __forceinline__ void scatter() const {
    const uint32_t lanes_before = (1u << threadIdx.x % 32) - 1;
    const int first_bit = range_bits(static_cast<uint32_t>(kWarps * 4 - 1)), last_bit = first_bit + range_bits(last_group());
    for_each<true>([&](bool valid, Flat flat, uint32_t index) {
      // Lanes without a key read a counter too: one of their own warp, as other warps write theirs meanwhile.
      const uint32_t counter = valid ? counter_of(flat) : counters + threadIdx.x / 32 * 4;
      uint32_t peers = __ballot_sync(~0u, valid);
#pragma unroll 1
      for (int bit = first_bit; bit < last_bit; ++bit) {
        const bool set = (counter - counters) >> bit & 1;
        const uint32_t votes = __ballot_sync(~0u, set);
        peers &= set ? votes : ~votes;
      }
      const uint32_t begin = load_shared(counter), before = __popc(peers & lanes_before);
      __syncwarp();
      if (valid) {
        if (before == 0) store_shared(counter, begin + __popc(peers));
        records.set(begin + before, Record{flat, index});
      }
      __syncwarp();
    });
    __syncthreads();
  }

  // x: begin, y: end of the group of a record.
  __device__ __forceinline__ uint2 group_bounds(Flat flat) const {
    const uint32_t first = counters + group_of(flat) * kWarps * 4;
    return make_uint2(load_shared(first - 4), load_shared(first + (kWarps - 1) * 4));
  }

  // The bounds of what a record must be ranked among: its group, or nothing when it has its place.
  __device__ __forceinline__ uint2 bounds_to_rank(const Record& record, uint32_t place) const {
    const uint2 group = group_bounds(record.key);
    return group.y - group.x > kMostInBin ? make_uint2(place, place) : group;
  }

  __device__ __forceinline__ bool falls_before(uint32_t place) const {
    return place > 0 && map.code(records.get(place - 1).key) > map.code(records.get(place).key);
  }

  // Does a code fall before one of this thread's places?
  __device__ __forceinline__ bool falls() const {
    bool found = false;
#pragma unroll 2
    for (uint32_t place = threadIdx.x; place < bucket.size; place += kThreads) found |= falls_before(place);
    return found;
  }

  // Does one in a group too large to be ranked? `common` is then a code that such a group holds, most likely its most common one.
  __device__ __forceinline__ bool falls_in_large_group(Flat& common) const {
    bool found = false;
#pragma unroll 1
    for (uint32_t place = threadIdx.x; place < bucket.size; place += kThreads) {
      if (!falls_before(place)) continue;
      const uint2 group = group_bounds(records.get(place).key);
      if (group.y - group.x <= kMostInBin) continue;  // codes do not fall from group to group
      found = true;
      common = map.code(records.get((group.x + group.y) / 2).key);
    }
    return found;
  }

  __device__ __forceinline__ void write() const {
    const BucketOutput<U> output(bucket);
#pragma unroll 4
    for (uint32_t place = threadIdx.x; place < bucket.size; place += kThreads) {
      const Record record = records.get(place);
      output.store(place, order.bits(static_cast<U>(record.key)), record.index);
    }
  }
};

}  // namespace gpusort
