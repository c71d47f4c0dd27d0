// Sorts buckets, one to a block, by distribution: every key goes to the bin that its value says, then to its place within the bin.
//
// A bucket holds the keys between two splitters of a sampled partition, so they spread rather evenly over their range, which is narrow.
// The range is cut into at least as many bins as there are keys:
//   count    bin = (key - lowest) * bins / range, by one multiplication; an atomic addition counts the bin and numbers its keys
//   scan     exclusive sums of the counts are where the bins begin
//   scatter  each (key, index) goes to shared memory at its bin's begin + its number: in order up to the order within bins
//   rank     each record counts the records of its bin that are below it, and goes to that place of the output
// Steps per key do not depend on the size of the bucket: the expected cost is linear (MacLaren, "Internal sorting by radix plus sifting",
// JACM 1966; Dobosiewicz, "Sorting by distributive partitioning", 1978). The atomics number the keys of a bin in any order; the ranks
// compare (key, index), no two of them equal, so the result is exact and stable whatever that order was.
//
// A bucket is left to bucket_rest.cuh when a bin holds more than kMostInBin keys, since ranking is quadratic in that, when so few values
// are possible that this is certain, when the flat form does not order its keys (flat_order.h), and when it is larger than a block takes.
// Invariant after the scatter: a record of an earlier bin is below, one of a later bin above. So reading past a bin's end counts nothing.
#pragma once

#include <cstdint>

#include "../../core/flat_order.h"
#include "../../core/word_map.h"
#include "../../plan/bucket_shape.h"
#include "../primitives/block_scan.cuh"
#include "../rows/warp_reduce.cuh"
#include "bucket_records.cuh"

namespace gpusort {

constexpr uint32_t kMostInBin = 32;
constexpr uint32_t kMostPerValue = 8;  // keys to a value, if the bucket's range were full

template <class Flat>
struct BucketNotes {
  Flat lowest[32];
  Flat highest[32];
  uint32_t totals[32];
};

// bin_of(flat) < bins for flat forms from `lowest` to `highest`, which differ; monotone.
template <class Flat>
struct BinMap {
  Flat lowest;
  int shift;  // brings the top bit of the range to the top of the word
  uint32_t factor;

  __device__ __forceinline__ BinMap(Flat low, Flat high, uint32_t bins) : lowest(low), shift(leading_zeros(static_cast<Flat>(high - low))) {
    const float range = static_cast<float>(above_lowest(high)) + 1.0f;
    // Five roundings of 2^-24 (the division: 2^-22) are less than what the last factor takes away.
    factor = static_cast<uint32_t>(__fdividef(static_cast<float>(bins) * 4294967296.0f, range) * (1.0f - 0x1p-20f));
  }

  // The leading 32 bits of the distance to the lowest.
  __device__ __forceinline__ uint32_t above_lowest(Flat flat) const {
    return static_cast<uint32_t>(static_cast<Flat>((flat - lowest) << shift) >> (sizeof(Flat) * 8 - 32));
  }
  __device__ __forceinline__ uint32_t operator()(Flat flat) const { return __umulhi(above_lowest(flat), factor); }
};

template <class U, int kThreads, int kItems>
struct BucketRows {
  using Records = BucketRecords<U>;
  using Record = typename Records::Record;
  using Flat = typename Records::Flat;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kCapacity = kThreads * kItems;
  static constexpr int kGroup = 4;     // keys that are loaded at a time
  static constexpr int kRankStep = 2;  // records that are compared at a time
  static_assert(kItems % kGroup == 0 && kCapacity <= 65536 / 2, "a bin and a number share a register");
  static_assert(kWarps > 1 && (kWarps & (kWarps - 1)) == 0 && kRankStep <= kRecordPads, "");

  const BucketSpan<U>& bucket;
  const FlatOrder<U> order;
  const uint32_t thread, size;
  BucketNotes<Flat>& notes;
  const uint32_t counters;  // shared address
  const uint32_t vectors;   // of four counters, to a thread
  const Records records;

  __device__ __forceinline__ BucketRows(const BucketSpan<U>& span, uint32_t storage, BucketNotes<Flat>& shared)
      : bucket(span),
        order(span.arguments.order),
        thread(threadIdx.x),
        size(span.size),
        notes(shared),
        counters(storage),
        vectors((span.size + 4 * kThreads - 1) / (4 * kThreads)),
        records(storage + bucket_counter_bytes(kThreads, kItems), kCapacity) {}

  __device__ __forceinline__ uint32_t bins() const { return vectors * (4 * kThreads); }

  __device__ __forceinline__ void clear_counters() const {
    for (uint32_t v = 0; v < vectors; ++v) clear_shared_16_bytes(counters + (v * kThreads + thread) * 16);
  }

  // Calls visit(e) for this thread's items: item e is in slot e * kThreads + thread of the bucket.
  template <class Visit>
  __device__ __forceinline__ void for_each_item(Visit visit) const {
#pragma unroll
    for (int first = 0; first < kItems; first += kGroup) {
      if (first * kThreads < size) {
#pragma unroll
        for (int e = first; e < first + kGroup; ++e) {
          if (e * kThreads + thread < size) visit(e);
        }
      }
    }
  }

  // Brings the indices into L2 while the keys are counted. One thread calls.
  __device__ __forceinline__ void prefetch_indices() const {
#if __CUDA_ARCH__ >= 900
    const uint64_t start = reinterpret_cast<uint64_t>(bucket.indices()) & ~uint64_t{15};
    const uint64_t end = reinterpret_cast<uint64_t>(bucket.indices() + size) & ~uint64_t{15};
    if (start < end) {
      asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(start), "r"(static_cast<uint32_t>(end - start)) : "memory");
    }
#endif
  }

  __device__ __forceinline__ void load(Flat (&held)[kItems]) const {
    const U* own = bucket.keys() + thread;
    for_each_item([&](int e) { held[e] = own[e * kThreads]; });
  }

  // Keys become their flat forms; the extremes of the whole bucket.
  __device__ __forceinline__ void find_range(Flat (&held)[kItems], Flat& lowest, Flat& highest) const {
    lowest = ~Flat{0};
    highest = 0;
    for_each_item([&](int e) {
      held[e] = order.flat(static_cast<U>(held[e]));
      lowest = min(lowest, held[e]);
      highest = max(highest, held[e]);
    });
    lowest = warp_min(lowest);
    highest = warp_max(highest);
    const uint32_t lane = thread % 32;
    if (lane == 0) {
      notes.lowest[thread / 32] = lowest;
      notes.highest[thread / 32] = highest;
    }
    __syncthreads();
    lowest = warp_min(notes.lowest[lane % kWarps]);
    highest = warp_max(notes.highest[lane % kWarps]);
  }

  // places[e]: the key's number in its bin, above the bin.
  __device__ __forceinline__ void count(const Flat (&held)[kItems], const BinMap<Flat>& bin_of, uint32_t (&places)[kItems]) const {
    for_each_item([&](int e) {
      const uint32_t bin = bin_of(held[e]);
      places[e] = fetch_add_shared(counters + bin * 4, 1) << 16 | bin;
    });
  }

  // Counts become begins. False, for all threads, when a bin holds too many.
  __device__ __forceinline__ bool scan() const {
    __syncthreads();
    const uint32_t own = counters + thread * vectors * 16;
    uint32_t sum = 0, most = 0;
    for (uint32_t v = 0; v < vectors; ++v) {
      uint4 counts;
      load_shared(own + v * 16, counts);
      sum += counts.x + counts.y + counts.z + counts.w;
      most = max(max(most, max(counts.x, counts.y)), max(counts.z, counts.w));
    }
    const uint32_t inclusive = warp_inclusive_scan(sum);
    const uint32_t lane = thread % 32, warp = thread / 32;
    if (lane == 31) notes.totals[warp] = inclusive;
    if (__syncthreads_or(most > kMostInBin)) return false;
    uint32_t begin = inclusive - sum + __reduce_add_sync(~0u, lane < warp ? notes.totals[lane] : 0);
    for (uint32_t v = 0; v < vectors; ++v) {
      uint4 counts;
      load_shared(own + v * 16, counts);
      const uint32_t second = begin + counts.x, third = second + counts.y, fourth = third + counts.z;
      store_shared(own + v * 16, make_uint4(begin, second, third, fourth));
      begin = fourth + counts.w;
    }
    if (thread == kThreads - 1) store_shared(own + vectors * 16, begin);
    __syncthreads();
    return true;
  }

  // Without indices the slot stands for the index.
  __device__ __forceinline__ void scatter(const Flat (&held)[kItems], const uint32_t (&places)[kItems]) const {
    if (thread < kRecordPads) records.set(size + thread, Record{static_cast<Flat>(~Flat{0}), ~0u});
    uint32_t index[kItems];
    for_each_item([&](int e) { index[e] = e * kThreads + thread; });
    if (bucket.arguments.indices != nullptr) {
      const uint32_t* own = bucket.indices() + thread;
      for_each_item([&](int e) { index[e] = own[e * kThreads]; });
    }
    for_each_item([&](int e) {
      const uint32_t begin = load_shared(counters + (places[e] & 0xffff) * 4);
      records.set(begin + (places[e] >> 16), Record{held[e], index[e]});
    });
    __syncthreads();
  }

  __device__ __forceinline__ void rank_and_write(const BinMap<Flat>& bin_of) const {
    const BucketOutput<U> output(bucket);
#pragma unroll 1
    for (uint32_t place = thread; place < size; place += kThreads) {
      const Record mine = records.get(place);
      const uint32_t bin = counters + bin_of(mine.key) * 4;
      const uint32_t begin = load_shared(bin), end = load_shared(bin + 4);
      uint32_t rank = begin;
#pragma unroll 1
      for (uint32_t other = begin; other < end; other += kRankStep) {
        Record others[kRankStep];
#pragma unroll
        for (int k = 0; k < kRankStep; ++k) others[k] = records.get(other + k);
#pragma unroll
        for (int k = 0; k < kRankStep; ++k) rank += others[k] < mine;
      }
      output.store(rank, order.bits(static_cast<U>(mine.key)), mine.index);
    }
  }
};

template <class U, int kThreads, int kItems, int kBlocksPerSm = bucket_blocks_per_sm(sizeof(U), kThreads, kItems)>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm) bucket_rows_kernel(const __grid_constant__ BucketArguments<U> arguments) {
  using Rows = BucketRows<U, kThreads, kItems>;
  using Flat = typename Rows::Flat;
  extern __shared__ uint4 shared_memory[];
  __shared__ BucketNotes<Flat> notes;
  const BucketSpan<U> bucket(arguments, blockIdx.x);
  if (bucket.size == 0) return;
  if (!bucket.all_equal) {
    if (bucket.size > Rows::kCapacity) {
      if (threadIdx.x == 0) note_large_bucket(arguments, bucket.number);
      return;
    }
    const Rows rows(bucket, shared_address(shared_memory), notes);
    Flat held[kItems];
    uint32_t places[kItems];
    if (threadIdx.x == 0 && arguments.indices) rows.prefetch_indices();
    rows.load(held);
    rows.clear_counters();
    Flat lowest, highest;
    rows.find_range(held, lowest, highest);
    if (lowest != highest) {
      if (highest - lowest >= bucket.size / kMostPerValue && rows.order.right_between(static_cast<U>(lowest), static_cast<U>(highest))) {
        const BinMap<Flat> bin_of(lowest, highest, rows.bins());
        rows.count(held, bin_of, places);
        if (rows.scan()) {
          rows.scatter(held, places);
          rows.rank_and_write(bin_of);
          return;
        }
      }
      if (threadIdx.x == 0) note_crowded_bucket(arguments, bucket.number);
      return;
    }
  }
  copy_bucket(bucket, threadIdx.x, kThreads);
}

}  // namespace gpusort
