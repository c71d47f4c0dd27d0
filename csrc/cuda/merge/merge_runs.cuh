// Tiles of narrow keys, which form runs of equal ones when there are many.
//
// A tile whose parts do not overlap needs no merge (part_in_front): it is copied. In others, a thread's outputs are mostly a part of a
// behind a part of b, or the other way round, which it copies as words of two keys (merge_tile_of_runs, 16 bits); merging them one by one
// is a chain of as many dependent steps. Either way elements are copied, never made up, so that unsorted inputs stay a permutation.
#pragma once

#include "merge_plain.cuh"

namespace gpusort {

// In tiles for long merges of 16-bit keys, in which runs are longer than a thread's outputs.
template <class U, int kItems>
constexpr bool kCopiesRuns = sizeof(U) == 2 && kItems > 48;

// A tile in which all of one part comes before all of the other needs no merge, and narrow keys, which form long runs of equal ones, make
// most tiles so. Positive if all of a comes first, negative if all of b does, else 0; the same for all threads.
template <class U>
__device__ int part_in_front(const void* shared, const PlainWindow& window) {
  if (window.order == TileOrder::kSpecial) return 0;
  const U* const a = static_cast<const U*>(shared) + window.a_begin;
  const U* const b = static_cast<const U*>(shared) + window.b_begin;
  if (window.a_length == 0 || window.b_length == 0) return 1;
  const bool falling = window.order == TileOrder::kFalling;
  const U a_last = a[window.a_length - 1], a_first = a[0], b_last = b[window.b_length - 1], b_first = b[0];
  if (falling ? a_last >= b_first : a_last <= b_first) return 1;
  return (falling ? b_last > a_first : b_last < a_first) ? -1 : 0;
}

// The word of keys at any place of shared memory.
template <class U>
__device__ KeyWord<U> load_unaligned(const U* elements) {
  KeyWord<U> word;
  if constexpr (sizeof(U) < 4) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(elements);
    const uint32_t* const from = reinterpret_cast<const uint32_t*>(address & ~uintptr_t{3});
    const uint32_t shift = static_cast<uint32_t>(address % 4 * 8);
    uint32_t low = from[0];
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const uint32_t high = from[p + 1];
      word.part[p] = __funnelshift_r(low, high, shift);
      low = high;
    }
  } else {
#pragma unroll
    for (int e = 0; e < KeyWord<U>::kCount; ++e) word.key[e] = elements[e];
  }
  return word;
}

// Writes such a tile to global memory.
template <int kThreads, class U>
__device__ void store_in_sequence(const void* shared, const MergeKeys<U>& keys, const PlainWindow& window, bool a_first, U* destination) {
  constexpr int kWord = KeyWord<U>::kCount;
  const U* const a = static_cast<const U*>(shared) + window.a_begin;
  const U* const b = static_cast<const U*>(shared) + window.b_begin;
  const bool encoded = window.order == TileOrder::kEncoded;
  const int first_length = a_first ? window.a_length : window.b_length;
  const U* const first = a_first ? a : b;
  const U* const second = (a_first ? b : a) - first_length;
  const int words = reinterpret_cast<uintptr_t>(destination) % 16 == 0 ? window.outputs() / kWord : 0;
#pragma unroll 2
  for (int word = threadIdx.x; word < words; word += kThreads) {
    const int place = word * kWord;
    KeyWord<U> keys_out;
    if (place + kWord <= first_length || place >= first_length) {
      keys_out = load_unaligned((place < first_length ? first : second) + place);
    } else {
#pragma unroll
      for (int e = 0; e < kWord; ++e) keys_out.key[e] = (place + e < first_length ? first : second)[place + e];
    }
    if (encoded) keys_out.decode(keys);
    reinterpret_cast<uint4*>(destination)[word] = keys_out.vector;
  }
#pragma unroll 1
  for (int place = words * kWord + threadIdx.x; place < window.outputs(); place += kThreads) {
    const U key = (place < first_length ? first : second)[place];
    destination[place] = encoded ? keys.decode(key) : key;
  }
}

// The outputs of a thread that are two parts of shared memory, at the addresses `first` and `second`; first_length >= 1.
template <int kItems>
__device__ void copy_two_parts(uint32_t first, int first_length, uint32_t second, ThreadKeys<uint16_t, kItems>& outputs) {
  static_assert(kItems % 2 == 0, "whole words");
  const bool splits_word = first_length % 2 != 0;
  const int turn = first_length / 2;  // the word with the second part's first key
  const uint32_t rest = second - first_length * 2;
  const uint32_t last = splits_word ? load_shared_key<uint16_t>(first + (first_length - 1) * 2) : 0;
  uint32_t base = first & ~3u, shift = (first & 2) * 8;  // a word of outputs lies across two words of shared memory, or in one
  uint32_t low = load_shared(base);
#pragma unroll
  for (int word = 0; word < kItems / 2; ++word) {
    if (word == turn) {
      base = rest & ~3u;
      shift = (rest & 2) * 8;
      low = load_shared(base + word * 4);
    }
    const uint32_t high = load_shared(base + word * 4 + 4);
    const uint32_t keys = __funnelshift_r(low, high, shift);
    outputs.words[word] = word == turn && splits_word ? (keys & 0xffff0000u) | last : keys;
    low = high;
  }
}

// merge_plain_tile, but warps copy their outputs if all their threads can. Leaves in `begins` where the first thread of each warp begins.
template <int kThreads, int kItems>
__device__ HeadsOfA merge_tile_of_runs(const void* shared, const PlainWindow& window, uint16_t sentinel,
                                       ThreadKeys<uint16_t, kItems>& outputs, uint32_t* begins) {
  constexpr int kBytes = 2;
  const uint32_t head = find_plain_head<kThreads, kItems, uint16_t>(shared, window);
  if (threadIdx.x % 32 == 0) begins[threadIdx.x / 32] = head;
  __syncthreads();
  const PlainAddresses<uint16_t> at(shared, window, kItems);
  const uint32_t next = next_head<kThreads>(head, at.a + window.a_length * kBytes, begins);
  const int rank = static_cast<int>(threadIdx.x) * kItems;
  const uint32_t b_head = at.a + at.b + rank * kBytes - head;
  const int from_a = static_cast<int>(next - head) / kBytes, from_b = kItems - from_a;
  bool a_first = from_a > 0, copies = rank + kItems <= window.outputs() && from_a >= 0 && from_b >= 0;  // not if inputs are not sorted
  if (copies && from_a > 0 && from_b > 0) {
    const bool falling = window.order == TileOrder::kFalling;
    const uint32_t a_begin = load_shared_key<uint16_t>(head), a_last = load_shared_key<uint16_t>(next - kBytes);
    const uint32_t b_begin = load_shared_key<uint16_t>(b_head), b_last = load_shared_key<uint16_t>(b_head + (from_b - 1) * kBytes);
    a_first = falling ? a_last >= b_begin : a_last <= b_begin;
    copies = a_first || (falling ? b_last > a_begin : b_last < a_begin);
  }
  if (!__all_sync(~0u, copies)) return {head, merge_plain_from(head, shared, window, sentinel, outputs)};
  copy_two_parts<kItems>(a_first ? head : b_head, a_first ? from_a : from_b, a_first ? b_head : head, outputs);
  return {head, next};
}

}  // namespace gpusort
