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
// Few buckets need more than that: those in which flat forms are out of order, floats of many magnitudes, and bins of more than kMostInBin
// keys. They are listed for bucket_exact.cuh, whose code would take registers from this; what is larger than a block takes is listed for
// bucket_rest.cuh. Invariant after the scatter: a record of an earlier bin is below, one of a later bin above. So reading past a bin's end
// counts nothing.
#pragma once

#include <cstdint>

#include "../primitives/dependent_launch.cuh"
#include "bucket_block.cuh"
#include "bucket_maps.cuh"

namespace gpusort {

constexpr uint32_t kMostPerValue = 8;   // keys to a value, if the bucket's range were full
constexpr uint32_t kFewMagnitudes = 8;  // binary ones, in which codes spread about as evenly as numbers

template <class U, int kThreads, int kItems>
struct BucketRows : BucketBlock<U, kThreads, kItems> {
  using Block = BucketBlock<U, kThreads, kItems>;
  using Record = typename Block::Record;
  using Flat = typename Block::Flat;
  using Block::bin_bounds;
  using Block::bins;
  using Block::bucket;
  using Block::clear_counters;
  using Block::counters;
  using Block::kWarps;
  using Block::notes;
  using Block::order;
  using Block::prefetch_indices;
  using Block::records;
  using Block::reduce_range;
  using Block::scan;
  using Block::set_pads;
  using Block::size;
  using Block::thread;
  static constexpr int kGroup = 4;         // keys that are loaded at a time
  static constexpr int kBatch = 8;         // indices that are loaded at a time
  static constexpr int kRankTogether = 2;  // records that are ranked at a time
  static_assert(kItems % kBatch == 0, "");

  using Block::Block;

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

  __device__ __forceinline__ void load(Flat (&held)[kItems]) const {
    const U* own = bucket.keys() + thread;
    for_each_item([&](int e) { held[e] = own[e * kThreads]; });
  }

  // numbers: of the keys in their bins, a byte to each. Where a bin takes more than that, the scan says so.
  template <class Map>
  __device__ __forceinline__ void count(const Flat (&held)[kItems], const Map& map, uint32_t (&numbers)[kItems / 4]) const {
    for_each_item([&](int e) {
      const uint32_t counter = counters + map.bin(held[e]) * 4;
      const uint32_t number = fetch_add_shared(counter, 1);
      if (e % 4 == 0) numbers[e / 4] = 0;
      numbers[e / 4] += number << (e % 4 * 8);
    });
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

  // `batch`: the first indices; each batch is on its way while the one before is stored.
  template <class Map>
  __device__ __forceinline__ void scatter(const Flat (&held)[kItems], const uint32_t (&numbers)[kItems / 4], const Map& map,
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
            records.set(load_shared(counter) + (numbers[e / 4] >> (e % 4 * 8) & 0xff), Record{held[e], batch[k]});
          }
        }
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) batch[k] = next[k];
    }
    __syncthreads();
  }

  // False, for all threads, when a bin holds too many; nothing is written then.
  template <class Map>
  __device__ __forceinline__ bool distribute(const Flat (&held)[kItems], const Map& map) const {
    uint32_t numbers[kItems / 4], batch[kBatch];
    count(held, map, numbers);
    load_indices(0, batch);
    if (!scan(kMostInBin)) return false;
    scatter(held, numbers, map, batch);
    Block::template rank_and_write<kRankTogether>(
        BucketOutput<U>(bucket), map, [&](const Record& record, uint32_t) { return bin_bounds(counters + map.bin(record.key) * 4); });
    return true;
  }

  // Floats from `low` to `high` of more magnitudes than kFewMagnitudes, or of both signs.
  __device__ __forceinline__ bool many_magnitudes(Flat low, Flat high) const {
    constexpr int kFractionBits = sizeof(U) == 8 ? 52 : 23;
    return bucket.arguments.is_float && high - low > (Flat{kFewMagnitudes} << kFractionBits);
  }

  // Are most of 32 neighbours like the next one? Warps note it for has_runs(), a barrier later; where they meet at few counters, counting
  // takes far longer than what comes of it is worth.
  __device__ __forceinline__ void note_runs(Flat first) const {
    const bool alike = first == __shfl_down_sync(~0u, first, 1);
    const uint32_t votes = __ballot_sync(~0u, alike && thread < size);
    if (thread % 32 == 0) notes.totals[thread / 32] = __popc(votes);
  }

  __device__ __forceinline__ uint32_t alike_neighbours() const {
    return __reduce_add_sync(~0u, thread % 32 < kWarps ? notes.totals[thread % 32] : 0);
  }
  __device__ __forceinline__ bool has_runs() const {
    return alike_neighbours() > min(size, static_cast<uint32_t>(kThreads)) / 2;
  }

  // Without it flat forms are in the order of the codes, if there is no NaN.
  __device__ __forceinline__ bool holds_negative_zero(const Flat (&held)[kItems]) const {
    const Flat zero = order.flat(static_cast<U>(U{1} << (sizeof(U) * 8 - 1)));
    bool found = false;
    for_each_item([&](int e) { found |= held[e] == zero; });
    return __syncthreads_or(found);
  }

  // Is the bucket left to bucket_exact.cuh, and why?
  __device__ __forceinline__ BucketFate sort() const {
    Flat low = ~Flat{0}, high = 0;
    Flat held[kItems];
    prefetch_indices();
    load(held);
    clear_counters();
    for_each_item([&](int e) {
      held[e] = order.flat(static_cast<U>(held[e]));
      low = min(low, held[e]);
      high = max(high, held[e]);
    });
    note_runs(thread < size ? held[0] : Flat{0});
    reduce_range(low, high);
    if (high - low < size / kMostPerValue || low == high) return BucketFate::kNotFlat;
    if (order.right_between(static_cast<U>(low), static_cast<U>(high)) && !many_magnitudes(low, high)) {
      if (has_runs()) return BucketFate::kCrowded;
      return distribute(held, FlatMap<U>(low, high, bins())) ? BucketFate::kSorted : BucketFate::kCrowded;
    }
    if constexpr (sizeof(U) >= 4) {
      const NumberMap<U> map(bucket.arguments, order, low, high, bins());
      if (bucket.arguments.is_float && map.possible && !has_runs() && !order.may_hold_nan(static_cast<U>(low), static_cast<U>(high)) &&
          !holds_negative_zero(held) && distribute(held, map)) {
        return BucketFate::kSorted;
      }
    }
    return BucketFate::kNotFlat;
  }
};

template <class U, int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads, bucket_blocks_per_sm(sizeof(U), kThreads, kItems))
    bucket_rows_kernel(const __grid_constant__ BucketArguments<U> arguments) {
  using Rows = BucketRows<U, kThreads, kItems>;
  start_after_predecessor();
  extern __shared__ uint4 shared_memory[];
  __shared__ BucketNotes<typename Rows::Flat> notes;
  const BucketSpan<U> bucket(arguments, blockIdx.x);
  if (bucket.size == 0) return;
  if (bucket.all_equal) {
    copy_bucket(bucket, threadIdx.x, kThreads);
  } else if (bucket.size > Rows::kCapacity) {
    if (threadIdx.x == 0) note_for_rest(arguments, bucket.number);
  } else {
    const BucketFate fate = Rows(bucket, shared_address(shared_memory), notes).sort();
    if (fate != BucketFate::kSorted && threadIdx.x == 0) note_for_exact(arguments, bucket.number, fate);
  }
}

}  // namespace gpusort
