// What the kernels that sort a bucket in one block share: counters and records in shared memory, the scan that makes places of counts, and
// the ranking among the records of a bin that ends the sort.
#pragma once

#include <cstdint>

#include "../../core/flat_order.h"
#include "../../plan/bucket_shape.h"
#include "../primitives/block_scan.cuh"
#include "../rows/warp_reduce.cuh"
#include "bucket_records.cuh"

namespace gpusort {

constexpr uint32_t kMostInBin = 64;  // ranking is quadratic in it

template <class Flat>
struct BucketNotes {
  Flat lowest[32];
  Flat highest[32];
  uint32_t totals[32];
};

template <class U, int kThreads, int kItems>
struct BucketBlock {
  using Records = BucketRecords<U>;
  using Record = typename Records::Record;
  using Flat = typename Records::Flat;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kCapacity = kThreads * kItems;
  static constexpr int kRankStep = 2;  // others that records are compared with at a time
  static_assert(kWarps > 1 && (kWarps & (kWarps - 1)) == 0 && kRankStep <= kRecordPads, "");

  const BucketSpan<U>& bucket;
  const FlatOrder<U> order;
  const uint32_t thread, size;
  BucketNotes<Flat>& notes;
  const uint32_t counters;  // shared address; there is a word before it
  const uint32_t vectors;   // of four counters, to a thread; without the known bound the loops over them spill registers
  const Records records;

  __device__ __forceinline__ BucketBlock(const BucketSpan<U>& span, uint32_t storage, BucketNotes<Flat>& shared)
      : bucket(span),
        order(span.arguments.order),
        thread(threadIdx.x),
        size(span.size),
        notes(shared),
        counters(storage + 16),
        vectors(min((span.size + 4 * kThreads - 1) / (4 * kThreads), static_cast<uint32_t>(kItems / 4))),
        records(storage + bucket_counter_bytes(kThreads, kItems), kCapacity) {}

  __device__ __forceinline__ uint32_t bins() const { return vectors * (4 * kThreads); }

  __device__ __forceinline__ void clear_counters() const {
    for (uint32_t v = 0; v < vectors; ++v) clear_shared_16_bytes(counters + (v * kThreads + thread) * 16);
    if (thread == 0) store_shared(counters - 4, 0);
  }

  // Brings the indices into L2 while the keys are counted.
  __device__ __forceinline__ void prefetch_indices() const {
#if __CUDA_ARCH__ >= 900
    if (thread != 0 || !bucket.arguments.indices) return;
    const uint64_t start = reinterpret_cast<uint64_t>(bucket.indices()) & ~uint64_t{15};
    const uint64_t end = reinterpret_cast<uint64_t>(bucket.indices() + size) & ~uint64_t{15};
    if (start < end) {
      asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(start), "r"(static_cast<uint32_t>(end - start)) : "memory");
    }
#endif
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

  __device__ __forceinline__ void set_pads() const {
    if (thread < kRecordPads) records.set(size + thread, Record{static_cast<Flat>(~Flat{0}), kPadIndex});
  }

  // bounds(record, place): of the records among which to rank it. kTogether: records that are ranked at a time.
  template <int kTogether, class Output, class Map, class Bounds>
  __device__ __forceinline__ void rank_and_write(const Output& output, const Map& map, Bounds bounds) const {
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
        const uint2 among = bounds(mine[i], place + i * kThreads);
        rank[i] = other[i] = among.x;
        end[i] = among.y;
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

  // Begin and end of a bin, from the address of its begin.
  __device__ __forceinline__ static uint2 bin_bounds(uint32_t begin) {
    return make_uint2(load_shared(begin), load_shared(begin + 4));
  }
};

}  // namespace gpusort
