// A tile of byte digits that one block ranks and partitions in shared memory.
//
//   count     each warp counts the digits of its part of the tile in a histogram of its own
//   place     histograms become places in the staged tile
//   rank      each warp takes its digits in memory order, 32 at a time, and moves the places on
//
// The staged tile has a region for each bin that has any items. Regions are laid out so that an item's place and its position in the output
// are equal modulo 4: a thread that writes four neighbours writes whole 32-byte sectors of int64 indices. A region begins with 1 to 4 pads
// of value 0 and ends, at a multiple of 4, with up to 3 pads of value kEndPad. What is staged are positions in the tile plus one, 16 bits
// each, which must rise in each region.
//
// Ranks of lanes with one digit come from returning shared atomics, whose order within a warp the hardware does not promise; so what is
// staged is verified when it is written. Where digits are frequent in a warp's part they are taken by ballot, and runs by their heads,
// since atomics on one address are served one lane at a time.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../../plan/byte_sort_plan.h"
#include "../primitives/shared_memory.cuh"
#include "shared_bytes.cuh"
#include "tile_ranks.cuh"

namespace gpusort {

constexpr int kByteWarps = kByteSortThreads / 32;
constexpr uint32_t kByteHistograms = kByteWarps * 1024;  // bytes

// The inclusive sum over threads 0..255, in two halves with a barrier of the whole block between them.
__device__ __forceinline__ uint32_t sum_in_warp(uint32_t value, uint32_t sums) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, value, distance);
    if (lane >= distance) value += other;
  }
  if (lane == 31) store_shared(sums + threadIdx.x / 32 * 4, value);
  return value;
}
__device__ __forceinline__ uint32_t sum_over_warps(uint32_t value, uint32_t sums) {
#pragma unroll
  for (uint32_t warp = 0; warp < 8; ++warp) {
    const uint32_t other = load_shared(sums + warp * 4);
    if (warp < threadIdx.x / 32) value += other;
  }
  return value;
}

// The digits of one warp: 32 * rounds bytes, in memory order. `histogram`: its 256 counters.
struct WarpDigits {
  uint32_t digits;  // shared address
  uint32_t histogram;
  uint32_t rounds;  // a multiple of 4
  uint32_t lane;
  uint32_t begin, end;  // the items that are there: the others are not looked at

  __device__ __forceinline__ bool whole() const { return end - begin == rounds * 32; }

  static constexpr uint32_t kManyEqual = 10;  // of 32 lanes

  __device__ __forceinline__ uint32_t counter(uint32_t digit) const { return histogram + digit * 4; }

  // Every lane counts a part of its own, so that runs do not meet in one counter. Two digits that are frequent in a sample are counted in
  // registers.
  __device__ __forceinline__ void count() const {
    if (!whole()) {
#pragma unroll 1
      for (uint32_t item = begin + lane; item < end; item += 32) add_shared(counter(load_shared_8(digits + item)), 1);
      return;
    }
    const uint32_t own = digits + lane * rounds;
    const uint32_t sample = load_shared_8(own);
    uint32_t left = ~0u, first = 0, second = 0, of_first = 0, of_second = 0;
#pragma unroll
    for (int attempt = 0; attempt < 4; ++attempt) {
      const uint32_t digit = __shfl_sync(~0u, sample, left == 0 ? 0 : __ffs(left) - 1);
      const uint32_t same = __ballot_sync(~0u, digit == sample) & left;
      left &= ~same;
      if (__popc(same) > of_first) {
        second = first, of_second = of_first;
        first = digit, of_first = __popc(same);
      } else if (__popc(same) > of_second) {
        second = digit, of_second = __popc(same);
      }
    }
    if (of_first + of_second < kManyEqual) {
#pragma unroll 2
      for (uint32_t i = 0; i < rounds; i += 4) {
        const uint32_t four = load_shared(own + i);
        add_shared(histogram + (four << 2 & 0x3fc), 1);
        add_shared(histogram + (four >> 6 & 0x3fc), 1);
        add_shared(histogram + (four >> 14 & 0x3fc), 1);
        add_shared(histogram + (four >> 22 & 0x3fc), 1);
      }
      return;
    }
    uint32_t firsts = 0, seconds = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < rounds; i += 4) {
      const uint32_t four = load_shared(own + i);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const uint32_t digit = four >> 8 * k & 0xff;
        if (digit == first)
          ++firsts;
        else if (digit == second)
          ++seconds;
        else
          add_shared(counter(digit), 1);
      }
    }
    firsts = __reduce_add_sync(~0u, firsts);
    seconds = __reduce_add_sync(~0u, seconds);
    if (lane == 0 && firsts != 0) add_shared(counter(first), firsts);
    if (lane == 1 && seconds != 0) add_shared(counter(second), seconds);
  }

  // Which way of ranking: from the warp's counts, which are in the histogram when this is called.
  struct Frequent {
    uint32_t first, second;  // the most frequent digits
    uint32_t of_first, of_second;
  };
  __device__ __forceinline__ Frequent frequent() const {
    uint4 low, high;
    load_shared(histogram + lane * 32, low);
    load_shared(histogram + lane * 32 + 16, high);
    const uint32_t counts[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    uint32_t most = 0, next = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const uint32_t count = counts[k] << 8 | (lane * 8 + k);
      next = max(next, min(most, count));
      most = max(most, count);
    }
    const uint32_t top = __reduce_max_sync(~0u, most);
    const uint32_t after = __reduce_max_sync(~0u, most == top ? next : most);
    return Frequent{top & 0xff, after & 0xff, top >> 8, after >> 8};
  }

  // Calls stage(place, item) for every item; `item` counts from the warp's first. The counters of the histogram are places now, in steps of
  // kUnit.
  template <uint32_t kUnit, int kPermutePeriod, class Stage>
  __device__ __forceinline__ void rank(const Frequent& frequent, Stage stage) const {
    if (!whole()) {
#pragma unroll 1
      for (uint32_t first = begin; first < end; first += 32) {
        __syncwarp();
        const uint32_t item = first + lane;
        if (item < end) stage(fetch_add_shared(counter(load_shared_8(digits + item)), kUnit), item);
      }
      return;
    }
    const uint32_t own = digits + lane;
    const uint32_t below = lanes_below();
    if (frequent.of_first == rounds * 32) {  // one digit
      const uint32_t place = load_shared(counter(frequent.first)) + lane * kUnit;
#pragma unroll 4
      for (uint32_t i = 0; i < rounds; ++i) stage(place + i * (32 * kUnit), lane + i * 32);
      return;
    }
    const uint32_t early = load_shared_8(own), late = load_shared_8(own + rounds / 2 * 32);
    const uint32_t heads = __popc(__ballot_sync(~0u, __shfl_up_sync(~0u, early, 1) != early)) +
                           __popc(__ballot_sync(~0u, __shfl_up_sync(~0u, late, 1) != late));
    if (heads <= 16) {
#pragma unroll 1
      for (uint32_t i = 0; i < rounds; i += 4) {
        uint32_t at[4], place[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) at[k] = counter(load_shared_8(own + (i + k) * 32));
        rank_runs<4, kUnit>(at, place, lane);
#pragma unroll
        for (int k = 0; k < 4; ++k) stage(place[k], lane + (i + k) * 32);
      }
    } else if (frequent.of_first + frequent.of_second >= rounds * 10) {
      uint32_t next_first = load_shared(counter(frequent.first)), next_second = load_shared(counter(frequent.second));
#pragma unroll 1
      for (uint32_t i = 0; i < rounds; i += 4) {
        uint32_t digit[4], place[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) digit[k] = load_shared_8(own + (i + k) * 32);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const bool is_first = digit[k] == frequent.first, is_second = digit[k] == frequent.second;
          const uint32_t firsts = __ballot_sync(~0u, is_first), seconds = __ballot_sync(~0u, is_second);
          place[k] = is_first ? next_first + __popc(firsts & below) * kUnit : next_second + __popc(seconds & below) * kUnit;
          if (!is_first && !is_second) place[k] = fetch_add_shared(counter(digit[k]), kUnit);
          next_first += __popc(firsts) * kUnit;
          next_second += __popc(seconds) * kUnit;
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) stage(place[k], lane + (i + k) * 32);
      }
    } else {
#pragma unroll 1
      for (uint32_t i = 0; i < rounds; i += 4) {
        uint32_t at[4], place[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) at[k] = counter(load_shared_8(own + (i + k) * 32));
        rank_by_atomics<4, kUnit, kPermutePeriod>(at, place);
#pragma unroll
        for (int k = 0; k < 4; ++k) stage(place[k], lane + (i + k) * 32);
      }
    }
  }
};

// Keys [begin, end) from `keys` on, which is aligned to 16 bytes.
struct KeyRange {
  const uint8_t* keys;
  uint32_t begin, end;
  uint32_t first;  // the position of number 0 among all keys, modulo 2^32

  __device__ __forceinline__ bool empty() const { return end <= begin; }
  // Are the keys of the 16-byte vector from number `at` on all there?
  __device__ __forceinline__ bool inside(uint32_t at) const { return at >= begin && at + 16 <= end; }

  __device__ __forceinline__ WarpDigits digits_of_warp(uint32_t digits, uint32_t shared, uint32_t rounds) const {
    const uint32_t warp = threadIdx.x / 32, items = rounds * 32, before = warp * items;
    const uint32_t from = min(max(begin, before) - before, items), to = max(min(end, before + items), before) - before;
    return WarpDigits{digits + before, shared + warp * 1024, rounds, threadIdx.x % 32, from, max(from, to)};
  }
};

// `items` keys from number `first` on, counted from the 16-byte boundary at or before the first key.
__device__ __forceinline__ KeyRange range_of(const uint8_t* keys, uint32_t length, uint64_t first, uint32_t items) {
  const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(keys) & 15);
  const uint64_t all = length + static_cast<uint64_t>(misaligned);
  KeyRange range;
  range.keys = keys - misaligned + first;
  range.begin = first == 0 ? misaligned : 0;
  range.end = first < all ? static_cast<uint32_t>(min(static_cast<uint64_t>(items), all - first)) : 0;
  range.first = static_cast<uint32_t>(first) - misaligned;
  return range;
}

// Starts to copy bytes to shared memory; wait_for_copies() and a barrier of the block end it.
__device__ __forceinline__ void start_loads(const KeyRange& range, uint32_t digits) {
#pragma unroll 4
  for (uint32_t at = threadIdx.x * 16; at < range.end; at += kByteSortThreads * 16) {
    if (range.inside(at)) {
      copy_to_shared(digits + at, range.keys + at);
    } else {
#pragma unroll 1
      for (uint32_t i = max(at, range.begin); i < min(at + 16, range.end); ++i) store_shared_8(digits + i, range.keys[i]);
    }
  }
}

// The next tile; one thread calls.
__device__ __forceinline__ void prefetch(const KeyRange& range) {
  const uint32_t bytes = range.end & ~15u;
  if (bytes != 0) prefetch_to_l2(range.keys, bytes);
}

// Counters of byte digits with a bank for every lane, so that the atomics of a warp never meet.
struct LaneCounters {
  uint32_t* counters;  // [256][32]
  uint32_t lane = threadIdx.x % 32;

  template <int kThreads>
  __device__ __forceinline__ void clear() const {
#pragma unroll
    for (int k = 0; k < 256 * 32 / 4 / kThreads; ++k)
      reinterpret_cast<uint4*>(counters)[k * kThreads + threadIdx.x] = make_uint4(0, 0, 0, 0);
  }
  __device__ __forceinline__ void add(uint32_t digit) const {
    atomicAdd(&counters[digit * 32 | lane], 1u);
  }
  __device__ __forceinline__ void add_four(uint32_t four) const {
    atomicAdd(&counters[(four << 5 & 0x1fe0) | lane], 1u);
    atomicAdd(&counters[(four >> 3 & 0x1fe0) | lane], 1u);
    atomicAdd(&counters[(four >> 11 & 0x1fe0) | lane], 1u);
    atomicAdd(&counters[(four >> 19 & 0x1fe0) | lane], 1u);
  }
  // Of digit threadIdx.x / 2, for 512 threads.
  __device__ __forceinline__ uint32_t sum() const {
    uint32_t sum = 0;
#pragma unroll
    for (uint32_t k = 0; k < 16; ++k) sum += counters[threadIdx.x * 16 + ((k + lane / 2) & 15)];  // 32 banks to a warp
    return sum + __shfl_xor_sync(~0u, sum, 1);
  }
};

// The staged tile of a block.
struct StagedBins {
  // Shared memory: histograms of the warps | offsets by digit | ends of the bins by code | words below.
  static constexpr uint32_t kOffsets = kByteHistograms;
  static constexpr uint32_t kEnds = kOffsets + 1024;
  static constexpr uint32_t kSums = kEnds + 1024;  // 8 words
  static constexpr uint32_t kQuads = kSums + 32;   // of the staged tile
  static constexpr uint32_t kFree = kSums + 64;
  static_assert(kFree == kByteSortScratchBytes, "the plan and the kernel agree");
  static constexpr uint32_t kUnit = 2;  // bytes of a staged position
  static constexpr uint32_t kEndPad = 0xffff;

  const uint32_t shared;
  const uint32_t thread = threadIdx.x;
  uint32_t bin_begin;   // thread c: of bin c in the output
  uint32_t tile_begin;  // thread c: where in the output the tile's first item of bin c goes

  // Where each bin begins and ends in the output. Two barriers.
  __device__ __forceinline__ void find_bins(const uint32_t* bins) {
    uint32_t count = 0, end = 0;
    if (thread < 256) {
      count = bins[thread];
      end = sum_in_warp(count, shared + kSums);
    }
    __syncthreads();
    if (thread < 256) {
      end = sum_over_warps(end, shared + kSums);
      store_shared(shared + kEnds + thread * 4, end);
    }
    bin_begin = end - count;
    __syncthreads();
  }

  // The histograms become places in the staged tile, in bytes; pads and offsets are set. Threads c < 256 are given the digit of
  // bin c. All threads call.
  __device__ __forceinline__ void place_bins(uint32_t staged, uint32_t digit) const {
    const uint32_t column = shared + digit * 4, begin = tile_begin;
    uint32_t count = 0, padded = 0, region = 0;
    if (thread < 256) {
#pragma unroll
      for (int warp = 0; warp < kByteWarps; ++warp) count += load_shared(column + warp * 1024);
      if (count != 0) padded = ((begin - 1) % 4 + 1 + count + 3) / 4 * 4;
      region = sum_in_warp(padded, shared + kSums);
    }
    __syncthreads();
    if (thread < 256) {
      region = sum_over_warps(region, shared + kSums);
      if (thread == 255) store_shared(shared + kQuads, region / 4);
      region -= padded;
      const uint32_t head = (begin - 1) % 4 + 1;
      if (count != 0) {
        for (uint32_t i = region; i < region + head; ++i) store_shared_16(staged + i * kUnit, 0);
        for (uint32_t i = region + head + count; i < region + padded; ++i) store_shared_16(staged + i * kUnit, kEndPad);
        store_shared(shared + kOffsets + digit * 4, begin - (region + head));
      }
      uint32_t next = (region + head) * kUnit;
#pragma unroll
      for (int warp = 0; warp < kByteWarps; ++warp) {
        const uint32_t own = load_shared(column + warp * 1024);
        store_shared(column + warp * 1024, next);
        next += own * kUnit;
      }
    }
    __syncthreads();
  }

  // Exchanges neighbours until the staged tile rises in each region. Never seen to be needed outside tests. All threads call.
  __device__ __forceinline__ void mend(uint32_t staged) const {
    const uint32_t entries = load_shared(shared + kQuads) * 4;
    bool exchanged;
    do {
      exchanged = false;
#pragma unroll 1
      for (uint32_t parity = 0; parity < 2; ++parity) {
#pragma unroll 1
        for (uint32_t i = 2 * thread + parity; i + 1 < entries; i += 2 * kByteSortThreads) {
          const uint32_t a = load_shared_16(staged + i * kUnit), b = load_shared_16(staged + i * kUnit + kUnit);
          if (a <= b || ((i + 1) % 4 == 0 && b == 0)) continue;  // in order, or the next region
          exchanged = true;
          store_shared_16(staged + i * kUnit, b);
          store_shared_16(staged + i * kUnit + kUnit, a);
        }
        __syncthreads();
      }
    } while (__syncthreads_or(exchanged));
  }
};

}  // namespace gpusort
