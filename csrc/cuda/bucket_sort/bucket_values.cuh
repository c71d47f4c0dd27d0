// Sorts a bucket of few possible values by counting them, stably (counting sort; Seward 1954).
//
// A warp takes a stretch of neighbours and counts its keys of each value; the counts lie value by value, and warp by warp within a value,
// so one exclusive scan gives every warp the place of its next key of each value. The warp goes through its stretch again, 32 keys at a
// time: ballots tell which lanes hold the same value, and how many of them are before.
#pragma once

#include <cstdint>

#include "../../core/flat_order.h"
#include "../../core/word_map.h"
#include "bucket_records.cuh"

namespace gpusort {

template <class U, int kThreads>
struct BucketValues {
  using Record = typename BucketRecords<U>::Record;
  using Flat = typename BucketRecords<U>::Flat;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kTogether = 4;  // keys loaded at a time

  const BucketSpan<U>& bucket;
  const FlatOrder<U>& order;
  const BucketRecords<U>& records;
  const uint32_t counters;  // shared address
  const Flat low, high;     // codes

  // A counter to each value and warp is there.
  __device__ __forceinline__ bool fit(uint32_t all_counters) const { return high - low < all_counters / kWarps; }

  // Calls visit(valid, slot, key, index) for the warp's stretch, in order; all lanes together.
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
      for (int k = 0; k < kTogether; ++k) visit(round + k < rounds && own + (round + k) * 32 < bucket.size, key[k], index[k]);
    }
  }

  __device__ __forceinline__ uint32_t counter_of(U key) const {
    const uint32_t value = static_cast<uint32_t>(static_cast<Flat>(bucket.arguments.order.code(key)) - low);
    return counters + (value * kWarps + threadIdx.x / 32) * 4;
  }

  __device__ __forceinline__ void count() const {
    for_each<false>([&](bool valid, U key, uint32_t) {
      if (valid) add_shared(counter_of(key), 1);
    });
  }

  // The counts have become begins.
  __device__ __forceinline__ void scatter() const {
    const uint32_t lanes_before = (1u << threadIdx.x % 32) - 1;
    const int first_bit = range_bits(static_cast<uint32_t>(kWarps * 4 - 1)),
              last_bit = first_bit + range_bits(static_cast<uint32_t>(high - low));
    for_each<true>([&](bool valid, U key, uint32_t index) {
      const uint32_t counter = valid ? counter_of(key) : counters;
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
        records.set(begin + before, Record{order.flat(key), index});
      }
      __syncwarp();
    });
    __syncthreads();
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
