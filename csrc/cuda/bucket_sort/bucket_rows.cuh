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
// Few buckets need more than that. Those in which flat forms are out of order, or of floats of many magnitudes, go through the exact map
// (bucket_maps.cuh); those of few values are counted value by value (bucket_values.cuh). What has a bin of more than kMostInBin keys all
// the same, since ranking is quadratic in that, and what is larger than a block takes, is left to bucket_rest.cuh. Invariant after the
// scatter: a record of an earlier bin is below, one of a later bin above. So reading past a bin's end counts nothing.
#pragma once

#include <cstdint>

#include "../../core/flat_order.h"
#include "../../plan/bucket_shape.h"
#include "../primitives/block_scan.cuh"
#include "../primitives/dependent_launch.cuh"
#include "../rows/warp_reduce.cuh"
#include "bucket_maps.cuh"
#include "bucket_records.cuh"
#include "bucket_values.cuh"

namespace gpusort {

constexpr uint32_t kMostInBin = 64;
constexpr uint32_t kMostPerValue = 8;   // keys to a value, if the bucket's range were full
constexpr uint32_t kFewMagnitudes = 8;  // binary ones, in which codes spread about as evenly as numbers

template <class Flat>
struct BucketNotes {
  Flat lowest[32];
  Flat highest[32];
  uint32_t totals[32];
};

template <class U, int kThreads, int kItems, int kBinsPerFourKeys, bool kNumbered, int kRankTogether>
struct BucketRows {
  using Records = BucketRecords<U>;
  using Record = typename Records::Record;
  using Flat = typename Records::Flat;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kCapacity = kThreads * kItems;
  static constexpr int kGroup = 4;     // keys that are loaded at a time
  static constexpr int kBatch = 8;     // indices that are loaded at a time
  static constexpr int kRankStep = 2;  // records that are compared at a time
  static_assert(kItems % kBatch == 0, "");
  static_assert(kWarps > 1 && (kWarps & (kWarps - 1)) == 0 && kRankStep <= kRecordPads, "");

  const BucketSpan<U>& bucket;
  const FlatOrder<U> order;
  const uint32_t thread, size;
  BucketNotes<Flat>& notes;
  const uint32_t counters;  // shared address; there is a word before it
  const uint32_t vectors;   // of four counters, to a thread
  const Records records;

  __device__ __forceinline__ BucketRows(const BucketSpan<U>& span, uint32_t storage, BucketNotes<Flat>& shared)
      : bucket(span),
        order(span.arguments.order),
        thread(threadIdx.x),
        size(span.size),
        notes(shared),
        counters(storage + 16),
        vectors(min((span.size * kBinsPerFourKeys / 4 + 4 * kThreads - 1) / (4 * kThreads), static_cast<uint32_t>(kItems / 4))),
        records(storage + bucket_counter_bytes(kThreads, kItems), kCapacity) {}

  __device__ __forceinline__ uint32_t bins() const { return vectors * (4 * kThreads); }

  __device__ __forceinline__ void clear_counters() const {
    for (uint32_t v = 0; v < vectors; ++v) clear_shared_16_bytes(counters + (v * kThreads + thread) * 16);
    if (thread == 0) store_shared(counters - 4, 0);
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

  // The extremes of the whole bucket, from those of this thread.
  __device__ __forceinline__ void reduce_range(Flat& lowest, Flat& highest) const {
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

  // numbers: of the keys in their bins, a byte to each. Where a bin takes more than that, the scan says so.
  __device__ __forceinline__ void count(const Flat (&held)[kItems], const FlatMap<U>& map, uint32_t (&numbers)[kItems / 4]) const {
    for_each_item([&](int e) {
      const uint32_t counter = counters + map.bin(held[e]) * 4;
      if constexpr (kNumbered) {
        const uint32_t number = fetch_add_shared(counter, 1);
        if (e % 4 == 0) numbers[e / 4] = 0;
        numbers[e / 4] += number << (e % 4 * 8);
      } else {
        add_shared(counter, 1);
      }
    });
  }

  // Counts become begins. False, for all threads, when a bin holds more than `limit`.
  __device__ __forceinline__ bool scan(uint32_t limit) const {
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
    if (__syncthreads_or(most > limit)) return false;
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

  // Indices of the batch of items that begins with `first`. Where none are wanted the slot stands for the index.
  __device__ __forceinline__ void load_indices(int first, uint32_t (&batch)[kBatch]) const {
    if (bucket.arguments.indices == nullptr) {
#pragma unroll
      for (int k = 0; k < kBatch; ++k) batch[k] = (first + k) * kThreads + thread;
    } else if (first * kThreads < size) {
      const uint32_t* own = bucket.indices() + thread;
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        if ((first + k) * kThreads + thread < size) batch[k] = own[(first + k) * kThreads];
      }
    }
  }

  __device__ __forceinline__ void set_pads() const {
    if (thread < kRecordPads) records.set(size + thread, Record{static_cast<Flat>(~Flat{0}), kPadIndex});
  }

  // `batch`: the first indices; each batch is on its way while the one before is stored.
  __device__ __forceinline__ void scatter(const Flat (&held)[kItems], const uint32_t (&numbers)[kItems / 4], const FlatMap<U>& map,
                                          uint32_t (&batch)[kBatch]) const {
    set_pads();
#pragma unroll
    for (int first = 0; first < kItems; first += kBatch) {
      uint32_t next[kBatch];
      if (first + kBatch < kItems) load_indices(first + kBatch, next);
      if (first * kThreads < size) {
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
          const int e = first + k;
          if (e * kThreads + thread < size) {
            const uint32_t counter = counters + map.bin(held[e]) * 4;
            if constexpr (kNumbered) {
              records.set(load_shared(counter) + (numbers[e / 4] >> (e % 4 * 8) & 0xff), Record{held[e], batch[k]});
            } else {
              records.set(fetch_add_shared(counter, 1), Record{held[e], batch[k]});
            }
          }
        }
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) batch[k] = next[k];
    }
    __syncthreads();
  }

  // begins: where the begins of the bins lie, followed by the end of the last. kTogether: records that are ranked at a time.
  template <int kTogether, class Map>
  __device__ __forceinline__ void rank_and_write(const Map& map, uint32_t begins) const {
    const BucketOutput<U> output(bucket);
#pragma unroll 1
    for (uint32_t place = thread; place < size; place += kTogether * kThreads) {
      Record mine[kTogether];
      uint32_t other[kTogether], end[kTogether], rank[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const uint32_t at = place + i * kThreads;
        mine[i] = records.get(at < size ? at : place);
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const uint32_t begin = begins + map.bin(mine[i].key) * 4;
        rank[i] = other[i] = load_shared(begin);
        end[i] = load_shared(begin + 4);
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
#pragma unroll 1
        for (; other[i] < end[i]; other[i] += kRankStep) {
          Record others[kRankStep];
#pragma unroll
          for (int k = 0; k < kRankStep; ++k) others[k] = records.get(other[i] + k);
#pragma unroll
          for (int k = 0; k < kRankStep; ++k) rank[i] += map.below(others[k], mine[i]);
        }
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        if (place + i * kThreads < size) output.store(rank[i], order.bits(static_cast<U>(mine[i].key)), mine[i].index);
      }
    }
  }

  // False, for all threads, when a bin holds too many; nothing is written then.
  __device__ __forceinline__ bool distribute(const Flat (&held)[kItems], const FlatMap<U>& map) const {
    uint32_t numbers[kItems / 4], batch[kBatch];
    count(held, map, numbers);
    load_indices(0, batch);
    if (!scan(kMostInBin)) return false;
    scatter(held, numbers, map, batch);
    rank_and_write<kRankTogether>(map, kNumbered ? counters : counters - 4);
    return true;
  }

  // Calls visit(flat form, slot), for rare buckets: they read their keys as often as they need them.
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

  // As distribute(), by codes or by numbers. Places are taken by moving the begins on, so each bin's begin is found in the bin before.
  __device__ __forceinline__ bool distribute_exactly(ExactMap<U>& map) const {
#pragma unroll 1
    while (true) {
      for_each_key([&](Flat flat, uint32_t) { add_shared(counters + map.bin(flat) * 4, 1); });
      if (scan(kMostInBin)) break;
      if (!map.by_number) return false;
      map.by_number = false;
      clear_counters();
      __syncthreads();
    }
    set_pads();
    const uint32_t* indices = bucket.indices();
    for_each_key([&](Flat flat, uint32_t slot) {
      const uint32_t index = indices ? indices[slot] : slot;
      records.set(fetch_add_shared(counters + map.bin(flat) * 4, 1), Record{flat, index});
    });
    __syncthreads();
    rank_and_write<1>(map, counters - 4);
    return true;
  }

  // Floats from `low` to `high` of more magnitudes than kFewMagnitudes, or of both signs.
  __device__ __forceinline__ bool many_magnitudes(Flat low, Flat high) const {
    constexpr int kFractionBits = sizeof(U) == 8 ? 52 : 23;
    return bucket.arguments.is_float && high - low > (Flat{kFewMagnitudes} << kFractionBits);
  }

  // By codes, for what the flat map does not serve. `low` and `high`: of the flat forms. The counters are in any state.
  __device__ __forceinline__ bool sort_exactly(Flat low, Flat high) const {
    const KeyOrder<U>& codes = bucket.arguments.order;
    __syncthreads();
    clear_counters();
    Flat low_code = ~Flat{0}, high_code = 0;
    for_each_key([&](Flat flat, uint32_t) {
      const Flat code = codes.code(order.bits(static_cast<U>(flat)));
      low_code = min(low_code, code);
      high_code = max(high_code, code);
    });
    reduce_range(low_code, high_code);
    if (low_code == high_code) {
      copy_bucket(bucket, thread, kThreads);
      return true;
    }
    const BucketValues<U, kThreads> values{bucket, order, records, counters, low_code, high_code};
    if (values.fit(bins())) {
      values.count();
      scan(~0u);
      values.scatter();
      values.write();
      return true;
    }
    ExactMap<U> map(bucket.arguments, order, low_code, high_code, bins());
    if (bucket.arguments.is_float && !order.may_hold_nan(static_cast<U>(low), static_cast<U>(high))) map.cut_by_number(low, high);
    return distribute_exactly(map);
  }

  // False: left to bucket_rest.cuh.
  __device__ __forceinline__ bool sort() const {
    Flat low = ~Flat{0}, high = 0;
    {
      Flat held[kItems];
      if (thread == 0 && bucket.arguments.indices) prefetch_indices();
      load(held);
      clear_counters();
      for_each_item([&](int e) {
        held[e] = order.flat(static_cast<U>(held[e]));
        low = min(low, held[e]);
        high = max(high, held[e]);
      });
      reduce_range(low, high);
      const bool flat = high - low >= size / kMostPerValue && order.right_between(static_cast<U>(low), static_cast<U>(high));
      if (flat && !many_magnitudes(low, high) && low != high && distribute(held, FlatMap<U>(low, high, bins()))) return true;
    }
    return sort_exactly(low, high);
  }
};

template <class U, int kThreads, int kItems, int kBlocksPerSm = bucket_blocks_per_sm(sizeof(U), kThreads, kItems), int kBinsPerFourKeys = 4,
          bool kNumbered = true, int kRankTogether = 2>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm) bucket_rows_kernel(const __grid_constant__ BucketArguments<U> arguments) {
  using Rows = BucketRows<U, kThreads, kItems, kBinsPerFourKeys, kNumbered, kRankTogether>;
  start_after_predecessor();
  extern __shared__ uint4 shared_memory[];
  __shared__ BucketNotes<typename Rows::Flat> notes;
  const BucketSpan<U> bucket(arguments, blockIdx.x);
  if (bucket.size == 0) return;
  if (bucket.all_equal) {
    copy_bucket(bucket, threadIdx.x, kThreads);
  } else if (bucket.size > Rows::kCapacity) {
    if (threadIdx.x == 0) note_large_bucket(arguments, bucket.number);
  } else if (!Rows(bucket, shared_address(shared_memory), notes).sort()) {
    if (threadIdx.x == 0) note_crowded_bucket(arguments, bucket.number);
  }
}

}  // namespace gpusort
