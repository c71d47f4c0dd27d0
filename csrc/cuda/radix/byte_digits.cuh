// The byte digits of a tile in registers: those of each warp, counted and ranked.
//
//   count   in a histogram of the warp's own
//   rank    in memory order, 32 at a time: the counters are places by then, and move on. A lane loads words, so the digits of 32 neighbours
//           come from 8 lanes by shuffles
//
// Ranks of lanes with one digit come from returning shared atomics, whose order within a warp the hardware does not promise; so what is
// staged is verified when it is written (byte_sort.cu). Where digits are frequent in a warp's part they are taken by ballot, and runs by
// their heads, since atomics on one address are served one lane at a time.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../../plan/byte_sort_plan.h"
#include "../primitives/shared_memory.cuh"
#include "shared_bytes.cuh"
#include "tile_ranks.cuh"

namespace gpusort {

// Keys [begin, end) from `keys` on, which is aligned to 16 bytes.
struct KeyRange {
  const uint8_t* keys;
  uint32_t begin, end;
  uint32_t first;  // the position of number 0 among all keys, modulo 2^32

  __device__ __forceinline__ bool empty() const { return end <= begin; }
  // Are the keys of the 16-byte vector from number `at` on all there?
  __device__ __forceinline__ bool inside(uint32_t at) const { return at >= begin && at + 16 <= end; }
};

// `items` keys from number `first` on, counted from the 16-byte boundary at or before the first key. There are none before that.
__device__ __forceinline__ KeyRange range_of(const uint8_t* keys, uint32_t length, int64_t first, uint32_t items) {
  const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(keys) & 15);
  const int64_t all = length + static_cast<int64_t>(misaligned);
  KeyRange range;
  range.keys = keys - misaligned + first;
  range.begin = first < misaligned ? static_cast<uint32_t>(misaligned - first) : 0;
  range.end = first < all ? static_cast<uint32_t>(min(static_cast<int64_t>(items), all - first)) : 0;
  range.first = static_cast<uint32_t>(first) - misaligned;
  return range;
}

// Byte i of `four`, i being known when the kernel is compiled.
__device__ __forceinline__ uint32_t byte_of(uint32_t four, int i) {
  return __byte_perm(four, 0, 0x4440 + i);
}

// The digits of one warp: 32 * rounds bytes, in memory order. Word k of a lane: bytes 4 * lane to 4 * lane + 3 of the 128 from 128 * k on.
template <int kWords>
struct WarpDigits {
  static constexpr uint32_t kManyEqual = 10;  // of 32 lanes: two digits are frequent

  const uint8_t* keys;  // of the warp
  uint32_t histogram;   // its 256 counters
  uint32_t rounds;      // a multiple of 4
  uint32_t lane;
  uint32_t begin, end;  // the items that are there: the others are not looked at
  uint32_t words[kWords];

  __device__ __forceinline__ void set_range(const KeyRange& range, uint32_t rounds_of_tile) {
    const uint32_t items = rounds_of_tile * 32, before = threadIdx.x / 32 * items;
    keys = range.keys + before;
    rounds = rounds_of_tile;
    begin = min(max(range.begin, before) - before, items);
    end = max(begin, max(min(range.end, before + items), before) - before);
  }

  __device__ __forceinline__ bool whole() const { return end - begin == rounds * 32; }
  __device__ __forceinline__ uint32_t counter(uint32_t digit) const { return histogram + digit * 4; }
  __device__ __forceinline__ uint32_t word_at(uint32_t k) const { return __ldg(reinterpret_cast<const uint32_t*>(keys) + k * 32 + lane); }

  template <class Unify>
  __device__ __forceinline__ uint32_t key_at(uint32_t item, bool other_patterns, Unify unify) const {
    const uint32_t key = keys[item];
    return other_patterns ? unify(key) & 0xff : key;
  }

  // Volatile: the loads are to be under way while the tile before is written.
  __device__ __forceinline__ void load() {
    if (!whole()) return;
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      if (k * 4 < rounds) asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(words[k]) : "l"(keys + k * 128 + lane * 4));
    }
  }

  __device__ __forceinline__ void count_four(uint32_t four) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) add_shared(counter(byte_of(four, i)), 1);
  }

  // `unify` is applied to four keys at a time if `other_patterns`, here and in rank().
  template <class Unify>
  __device__ __forceinline__ void count(bool other_patterns, Unify unify) {
    clear_shared_16_bytes(histogram + lane * 16);
    clear_shared_16_bytes(histogram + lane * 16 + 512);
    __syncwarp();
    if (!whole()) {
#pragma unroll 1
      for (uint32_t item = begin + lane; item < end; item += 32) add_shared(counter(key_at(item, other_patterns, unify)), 1);
    } else {
      if (other_patterns) {
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
          if (k * 4 < rounds) words[k] = unify(words[k]);
        }
      }
#pragma unroll
      for (int k = 0; k < kWords; ++k) {
        if (k * 4 >= rounds) break;
        count_four(words[k]);
      }
    }
    __syncwarp();
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

  // Item 32 * i + lane of the 128 whose words are `word`.
  __device__ __forceinline__ uint32_t digit_of(uint32_t word, int i) const {
    return __byte_perm(__shfl_sync(~0u, word, i * 8 + lane / 4), 0, 0x4440 | lane % 4);
  }

  // Calls stage(place, item) for every item; `item` counts from the warp's first. The counters of the histogram are places now, in steps of
  // kUnit.
  template <uint32_t kUnit, int kPermutePeriod, class Unify, class Stage>
  __device__ __forceinline__ void rank(const Frequent& frequent, bool other_patterns, Unify unify, Stage stage) const {
    if (!whole()) {
#pragma unroll 1
      for (uint32_t first = begin; first < end; first += 32) {
        __syncwarp();
        const uint32_t item = first + lane;
        if (item < end) stage(fetch_add_shared(counter(key_at(item, other_patterns, unify)), kUnit), item);
      }
      return;
    }
    if (frequent.of_first == rounds * 32) {  // one digit
      const uint32_t place = load_shared(counter(frequent.first)) + lane * kUnit;
#pragma unroll 4
      for (uint32_t i = 0; i < rounds; ++i) stage(place + i * (32 * kUnit), lane + i * 32);
      return;
    }
    // In all ways but the last one words are loaded again, so that the loop need not be unrolled. place(digits, places) is called for four
    // items of every lane.
    auto rank_words = [&](auto place) {
      uint32_t ahead[2] = {word_at(0), word_at(rounds > 4 ? 1 : 0)};
#pragma unroll 1
      for (uint32_t k = 0; k * 4 < rounds; ++k) {
        const uint32_t word = other_patterns ? unify(ahead[0]) : ahead[0];
        ahead[0] = ahead[1];
        if (k * 4 + 8 < rounds) ahead[1] = word_at(k + 2);
        uint32_t digit[4], at[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) digit[i] = digit_of(word, i);
        place(digit, at);
#pragma unroll
        for (int i = 0; i < 4; ++i) stage(at[i], lane + (k * 4 + i) * 32);
      }
    };
    auto heads_of = [&](uint32_t word) {
      const uint32_t digit = digit_of(other_patterns ? unify(word) : word, 0);
      return __popc(__ballot_sync(~0u, __shfl_up_sync(~0u, digit, 1) != digit));
    };
    if (heads_of(word_at(0)) + heads_of(word_at(rounds / 8)) <= 16) {
      rank_words([&](const uint32_t(&digit)[4], uint32_t(&place)[4]) {
        uint32_t counters[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) counters[i] = counter(digit[i]);
        rank_runs<4, kUnit>(counters, place, lane);
      });
    } else if (frequent.of_first + frequent.of_second >= rounds * kManyEqual) {
      const uint32_t below = lanes_below();
      uint32_t next_first = load_shared(counter(frequent.first)), next_second = load_shared(counter(frequent.second));
      __syncwarp();
      rank_words([&](const uint32_t(&digit)[4], uint32_t(&place)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const bool is_first = digit[i] == frequent.first, is_second = digit[i] == frequent.second;
          const uint32_t firsts = __ballot_sync(~0u, is_first), seconds = __ballot_sync(~0u, is_second);
          place[i] = is_first ? next_first + __popc(firsts & below) * kUnit : next_second + __popc(seconds & below) * kUnit;
          if (!is_first && !is_second) place[i] = fetch_add_shared(counter(digit[i]), kUnit);
          next_first += __popc(firsts) * kUnit;
          next_second += __popc(seconds) * kUnit;
        }
      });
    } else {
      // The atomics of a word are under way while the word before is staged.
      uint32_t before[4];
#pragma unroll
      for (int k = 0; k < kWords; ++k) {
        if (k * 4 >= rounds) break;
        uint32_t at[4], place[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) at[i] = counter(digit_of(words[k], i));
        rank_by_atomics<4, kUnit, kPermutePeriod>(at, place);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (k > 0) stage(before[i], lane + ((k - 1) * 4 + i) * 32);
          before[i] = place[i];
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) stage(before[i], lane + (rounds - 4 + i) * 32);
    }
  }
};

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
    const uint32_t own = shared_address(counters + lane);
#pragma unroll
    for (int i = 0; i < 4; ++i) add_shared(own + byte_of(four, i) * 128, 1);
  }
  // Of digit threadIdx.x / 2, for 512 threads.
  __device__ __forceinline__ uint32_t sum() const {
    uint32_t sum = 0;
#pragma unroll
    for (uint32_t k = 0; k < 16; ++k) sum += counters[threadIdx.x * 16 + ((k + lane / 2) & 15)];  // 32 banks to a warp
    return sum + __shfl_xor_sync(~0u, sum, 1);
  }
};

}  // namespace gpusort
