// Sorts keys that a block holds in registers, in any order, by distribution as bucket_sort/bucket_rows.cuh but for the end:
//
//   count    an atomic addition counts a key's bin and numbers the key in it
//   scan     exclusive sums of the counts are where the bins begin
//   scatter  each (key, index) goes to its bin's begin + its number
//   windows  bin_windows.cuh puts the records of each bin in order
//   write    neighbours by neighbours
#pragma once

#include <cstdint>

#include "../bucket_sort/bucket_rows.cuh"
#include "bin_windows.cuh"
#include "mapped_arguments.h"

namespace gpusort {

constexpr uint32_t kMostMappedInBin = (1u << (32 - mapped_shapes::kIndexBits)) - 1;

// As NumberMap, of codes.
template <class Number>
struct CodeNumberMap {
  const Number& number;
  const uint32_t bins;
  float first, scale;
  bool possible;  // neither a NaN nor an infinity is among them

  __device__ __forceinline__ CodeNumberMap(const Number& number_of_code, uint32_t low, uint32_t high, uint32_t all)
      : number(number_of_code), bins(all), first(number(low)) {
    const float range = number(high) - first;
    scale = static_cast<float>(all) / range * (1.0f - 0x1p-20f);
    possible = range > 0 && range < 1e38f && scale < 1e38f;
  }

  __device__ __forceinline__ uint32_t bin(uint32_t code) const {
    return min(static_cast<uint32_t>((number(code) - first) * scale), bins - 1);
  }
};

template <int kThreads, int kItems>
struct MappedRows : BucketRows<uint32_t, kThreads, kItems> {
  using Rows = BucketRows<uint32_t, kThreads, kItems>;
  using Rows::bucket;
  using Rows::counters;
  using Rows::for_each_item;
  using Rows::order;
  using Rows::size;
  using Rows::thread;
  static constexpr int kVectors = 3;  // of four counters, to a thread; odd, so that those of neighbours are in different banks
  static constexpr uint32_t kBins = kVectors * 4 * kThreads;
  static constexpr int kRecordsOffset = (16 + kBins * 4 + 63) / 64 * 64;  // in the storage, which begins at a multiple of 64 bytes
  static constexpr int kStorageBytes = kRecordsOffset + (kThreads * kItems + kWindowPads) * 8;

  const BinWindows windows;

  __device__ __forceinline__ MappedRows(const BucketSpan<uint32_t>& span, uint32_t storage, BucketNotes<uint32_t>& notes)
      : Rows(span, storage, notes), windows{storage + kRecordsOffset} {}

  __device__ __forceinline__ static void clear_counters(uint32_t storage) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) clear_shared_16_bytes(storage + 16 + (v * kThreads + threadIdx.x) * 16);
  }

  // Counts become begins. Returns the most in a bin.
  __device__ __forceinline__ uint32_t scan() const {
    __syncthreads();
    const uint32_t own = counters + thread * (kVectors * 16), lane = thread % 32, warp = thread / 32;
    uint4 counts[kVectors];
    uint32_t sum = 0, most = 0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) load_shared(own + v * 16, counts[v]);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      sum += counts[v].x + counts[v].y + counts[v].z + counts[v].w;
      most = max(max(most, max(counts[v].x, counts[v].y)), max(counts[v].z, counts[v].w));
    }
    const uint32_t inclusive = warp_inclusive_scan(sum);
    most = __reduce_max_sync(~0u, most);
    if (lane == 31) {
      Rows::notes.totals[warp] = inclusive;
      Rows::notes.highest[warp] = most;
    }
    __syncthreads();
    uint32_t begin = inclusive - sum + __reduce_add_sync(~0u, lane < warp ? Rows::notes.totals[lane] : 0);
    most = __reduce_max_sync(~0u, Rows::notes.highest[lane % Rows::kWarps]);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const uint32_t second = begin + counts[v].x, third = second + counts[v].y, fourth = third + counts[v].z;
      store_shared(own + v * 16, make_uint4(begin, second, third, fourth));
      begin = fourth + counts[v].w;
    }
    __syncthreads();
    return most;
  }

  // `taken`: indices, and numbers in the bins besides when it returns.
  template <class Map, class Output>
  __device__ __forceinline__ bool distribute(const uint32_t (&held)[kItems], uint32_t (&taken)[kItems], const Map& map,
                                             Output output) const {
    for_each_item([&](int e) { taken[e] |= fetch_add_shared(counters + map.bin(held[e]) * 4, 1) << mapped_shapes::kIndexBits; });
    const uint32_t most = scan();
    if (most > kMostMappedInBin) return false;
    if (thread < kWindowPads) store_shared(windows.address(size + thread), make_uint2(kPadIndex, ~0u));
    for_each_item([&](int e) {
      const uint32_t begin = load_shared(counters + map.bin(held[e]) * 4);
      store_shared(windows.address(begin + (taken[e] >> mapped_shapes::kIndexBits)), make_uint2(taken[e] & kIndexMask, held[e]));
    });
    __syncthreads();
    windows.template sort<kThreads>(size, most);
    const auto to = output();
    const uint32_t own = windows.address(thread);
    for_each_item([&](int e) {
      uint2 record;
      load_shared(own + e * (kThreads * 8), record);
      to.store(e * kThreads + thread, order.bits(record.y), record.x);
    });
    return true;
  }

  // As BucketRows::sort(). False: not sorted, and nothing is written. The counters must be clear.
  template <class Output>
  __device__ __forceinline__ bool sort_keys(uint32_t (&held)[kItems], uint32_t (&taken)[kItems], Output output) const {
    uint32_t low = ~0u, high = 0;
    for_each_item([&](int e) {
      held[e] = order.flat(held[e]);
      low = min(low, held[e]);
      high = max(high, held[e]);
    });
    Rows::reduce_range(low, high);
    if (high - low < size / kMostPerValue || low == high) return false;
    if (order.right_between(low, high) && !Rows::many_magnitudes(low, high)) {
      return distribute(held, taken, FlatMap<uint32_t>(low, high, kBins), output);
    }
    const NumberMap<uint32_t> map(bucket.arguments, order, low, high, kBins);
    return bucket.arguments.is_float && map.possible && !order.may_hold_nan(low, high) && !Rows::holds_negative_zero(held) &&
           distribute(held, taken, map, output);
  }

  // The same where codes are held: never out of order. number(code): what it stands for, rising; floats of many magnitudes are cut by it.
  template <class Number, class Output>
  __device__ __forceinline__ bool sort_codes(const uint32_t (&held)[kItems], uint32_t (&taken)[kItems], const Number& number,
                                             Output output) const {
    uint32_t low = ~0u, high = 0;
    for_each_item([&](int e) {
      low = min(low, held[e]);
      high = max(high, held[e]);
    });
    Rows::reduce_range(low, high);
    if (high - low < size / kMostPerValue || low == high) return false;
    const CodeNumberMap<Number> map(number, low, high, kBins);
    if (Rows::many_magnitudes(low, high) && map.possible) return distribute(held, taken, map, output);
    return distribute(held, taken, FlatMap<uint32_t>(low, high, kBins), output);
  }
};

}  // namespace gpusort
