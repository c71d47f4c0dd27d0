// Sorts a bucket that is made of few runs of equal keys, by its runs.
//
// A bucket's slots are in the order of the row, so keys that lie in runs there lie in runs here. A run is sorted as one thing:
//   heads   a slot begins a run where its key has other bits than the slot before; ballots mark them, and one scan numbers the runs
//   ranks   each run adds up the lengths of the runs that go before it: those of lower codes, and those of equal codes before it in the
//           bucket. That is the place of its first key. Few runs are compared each with each; of many, warps order chunks of 32, and
//           a run looks for its place in all of them by bisection
//   write   each key goes as far as its run has gone, so what is written are runs as well
//
// Keys of equal bits have equal codes, and runs of equal codes stay in their order, so the result is exact and stable for all keys, NaNs
// and zeros of both signs among them.
#pragma once

#include <cstdint>

#include "../../core/flat_order.h"
#include "../primitives/block_scan.cuh"
#include "../primitives/shared_memory.cuh"
#include "bucket_block.cuh"
#include "bucket_records.cuh"

namespace gpusort {

constexpr uint32_t kMostRuns = 1024;  // in a bucket
constexpr uint32_t kFewRuns = 96;     // that are soonest compared each with each

template <class U, int kThreads, int kItems>
struct BucketRuns {
  using Flat = typename BucketRecords<U>::Flat;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kGroup = 4;                       // rounds that are left out together
  static constexpr uint32_t kEntries = kItems * kWarps;  // rounds of warps, in the order of slots: 32 of them each
  static constexpr uint32_t kChunk = 32;                 // runs that a warp orders
  static constexpr uint32_t kLanes = 8;                  // that share the comparisons of one of few runs
  static_assert(kItems % kGroup == 0 && kEntries <= kThreads, "");

  // Shared memory.
  struct Words {
    Flat last[kEntries];        // key of the entry's last slot
    Flat codes[kMostRuns];      // of the runs
    Flat sorted[kMostRuns];     // of the runs, each chunk for itself
    uint32_t heads[kEntries];   // bits of the slots that begin a run
    uint32_t before[kEntries];  // runs that begin before the entry
    uint32_t begins[kMostRuns + 1];
    uint32_t lengths[kMostRuns];                       // in the order of `sorted`
    uint32_t sums[kMostRuns / kChunk * (kChunk + 1)];  // of the lengths before, in each chunk
    uint32_t ways[kMostRuns];                          // from the slots of a run to its places; at first its rank in its chunk
  };
  static_assert(sizeof(Words) <= kThreads * kItems * (sizeof(Flat) + 4), "no more than the records take");

  const BucketSpan<U>& bucket;
  const FlatOrder<U>& order;
  Words& words;
  BucketNotes<Flat>& notes;

  // Calls visit(e) for the rounds in use and few more.
  template <class Visit>
  __device__ __forceinline__ void for_each_round(Visit visit) const {
#pragma unroll
    for (int first = 0; first < kItems; first += kGroup) {
      if (first * kThreads < bucket.size) {
#pragma unroll
        for (int e = first; e < first + kGroup; ++e) visit(e);
      }
    }
  }

  __device__ __forceinline__ uint32_t entry_of(int e) const {
    return e * kWarps + threadIdx.x / 32;
  }
  __device__ __forceinline__ uint32_t slot_of(int e) const {
    return e * kThreads + threadIdx.x;
  }

  __device__ __forceinline__ void find_heads(const Flat (&held)[kItems]) const {
    const uint32_t lane = threadIdx.x % 32;
    for_each_round([&](int e) {
      if (lane == 31) words.last[entry_of(e)] = held[e];
    });
    __syncthreads();
    for_each_round([&](int e) {
      Flat before = __shfl_up_sync(~0u, held[e], 1);
      if (lane == 0 && slot_of(e) > 0) before = words.last[entry_of(e) - 1];
      const bool begins = slot_of(e) == 0 || held[e] != before;
      const uint32_t heads = __ballot_sync(~0u, begins && slot_of(e) < bucket.size);
      if (lane == 0) words.heads[entry_of(e)] = heads;
    });
    __syncthreads();
  }

  // Returns how many there are; the same for all threads.
  __device__ __forceinline__ uint32_t number_runs() const {
    const uint32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const uint32_t own = thread < kEntries && thread * 32 < bucket.size ? __popc(words.heads[thread]) : 0;
    const uint32_t inclusive = warp_inclusive_scan(own);
    if (lane == 31) notes.totals[warp] = inclusive;
    __syncthreads();
    const uint32_t of_warp = lane < kWarps ? notes.totals[lane] : 0;
    const uint32_t runs = __reduce_add_sync(~0u, of_warp);
    const uint32_t before = __reduce_add_sync(~0u, lane < warp ? of_warp : 0);
    if (thread < kEntries) words.before[thread] = before + inclusive - own;
    if (thread == 0 && runs <= kMostRuns) words.begins[runs] = bucket.size;
    __syncthreads();
    return runs;
  }

  __device__ __forceinline__ void note_runs(const Flat (&held)[kItems]) const {
    const uint32_t lane = threadIdx.x % 32;
    for_each_round([&](int e) {
      const uint32_t heads = words.heads[entry_of(e)];
      if ((heads >> lane & 1) == 0) return;
      const uint32_t run = words.before[entry_of(e)] + __popc(heads & ((1u << lane) - 1));
      words.begins[run] = slot_of(e);
      words.codes[run] = static_cast<Flat>(bucket.arguments.order.code(order.bits(static_cast<U>(held[e]))));
    });
    __syncthreads();
  }

  // Of the codes of a chunk, how many are below `code`, or (after_equal) equal to it.
  __device__ __forceinline__ static uint32_t codes_before(const Flat* chunk, Flat code, bool after_equal) {
    uint32_t before = 0;
#pragma unroll
    for (uint32_t step = kChunk / 2; step > 0; step /= 2) {
      const Flat other = chunk[before + step - 1];
      before += other < code || (after_equal && other == code) ? step : 0;
    }
    const Flat last = chunk[before];
    return before + (last < code || (after_equal && last == code) ? 1 : 0);
  }

  // A warp orders 32 runs, and adds up their lengths in this order.
  __device__ __forceinline__ void order_chunk(uint32_t first, uint32_t runs) const {
    const uint32_t lane = threadIdx.x % 32, run = first + lane;
    const Flat code = run < runs ? words.codes[run] : static_cast<Flat>(~Flat{0});
    const uint32_t length = run < runs ? words.begins[run + 1] - words.begins[run] : 0;
    uint32_t rank = 0;
#pragma unroll 8
    for (uint32_t k = 0; k < 32; ++k) {
      const Flat other = __shfl_sync(~0u, code, k);
      rank += other < code || (other == code && k < lane) ? 1 : 0;
    }
    words.sorted[first + rank] = code;
    words.lengths[first + rank] = length;
    if (run < runs) words.ways[run] = rank;
    __syncwarp();
    const uint32_t own = words.lengths[run], inclusive = warp_inclusive_scan(own);
    uint32_t* const sums = words.sums + first / kChunk * (kChunk + 1);
    sums[lane] = inclusive - own;
    if (lane == 31) sums[kChunk] = inclusive;
  }

  // Compares each run with each, kLanes at a time.
  __device__ __forceinline__ void rank_few_runs(uint32_t runs) const {
    const uint32_t part = threadIdx.x % kLanes;
#pragma unroll 1
    for (uint32_t first = 0; first < runs; first += kThreads / kLanes) {
      const uint32_t run = min(first + threadIdx.x / kLanes, runs - 1);
      const Flat own = words.codes[run];
      uint32_t place = 0;
#pragma unroll 2
      for (uint32_t other = part; other < runs; other += kLanes) {
        const Flat code = words.codes[other];
        const uint32_t length = words.begins[other + 1] - words.begins[other];
        place += code < own || (code == own && other < run) ? length : 0;
      }
#pragma unroll
      for (uint32_t distance = 1; distance < kLanes; distance *= 2) place += __shfl_xor_sync(~0u, place, distance);
      if (part == 0) words.ways[run] = place - words.begins[run];
    }
    __syncthreads();
  }

  __device__ __forceinline__ void rank_many_runs(uint32_t runs) const {
    const uint32_t chunks = (runs + kChunk - 1) / kChunk;
#pragma unroll 1
    for (uint32_t chunk = threadIdx.x / 32; chunk < chunks; chunk += kWarps) order_chunk(chunk * kChunk, runs);
    __syncthreads();
#pragma unroll 1
    for (uint32_t run = threadIdx.x; run < runs; run += kThreads) {
      const Flat code = words.codes[run];
      const uint32_t own = run / kChunk;
      uint32_t place = words.sums[own * (kChunk + 1) + words.ways[run]];
#pragma unroll 2
      for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
        const uint32_t before = codes_before(words.sorted + chunk * kChunk, code, chunk < own);
        if (chunk != own) place += words.sums[chunk * (kChunk + 1) + before];
      }
      words.ways[run] = place - words.begins[run];
    }
    __syncthreads();
  }

  // False, for all threads, when there are too many runs; nothing is written then. A barrier must stand before.
  template <class Output>
  __device__ __forceinline__ bool sort(const Flat (&held)[kItems], const uint32_t (&indices)[kItems], const Output& output) const {
    find_heads(held);
    const uint32_t runs = number_runs();
    if (runs > kMostRuns) return false;
    note_runs(held);
    if (runs <= kFewRuns) {
      rank_few_runs(runs);
    } else {
      rank_many_runs(runs);
    }
    const uint32_t up_to_own = ~0u >> (31 - threadIdx.x % 32);
    for_each_round([&](int e) {
      const uint32_t run = words.before[entry_of(e)] + __popc(words.heads[entry_of(e)] & up_to_own) - 1;
      // Else indices would be widened before the rounds.
      const uint32_t index = opaque(indices[e]);
      if (slot_of(e) < bucket.size) output.store(slot_of(e) + words.ways[run], order.bits(static_cast<U>(held[e])), index);
    });
    return true;
  }
};

}  // namespace gpusort
