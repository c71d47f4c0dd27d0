// A tile's elements as words of 32 bits, so that a merge moves one word an element and not a code and an index.
//
//   word = leading bits of (code - lowest code of the tile) | slot in the tile
//
// A tile is a narrow slice of what is sorted, so 19 bits often hold all of its codes' differences, and then the words order as the
// elements do: slots rise with (run, place in the run). Otherwise elements that agree in the leading bits lie in slot order after the
// merge and are put in the order of their codes by exchanging neighbours, which keeps equal ones as they are. There are few of them unless
// a tile's codes cluster; after kMendRounds that are not enough the tile is merged again by whole codes (multiway_tile.cuh).
// The idea is that of the row sorts (rows/block_rows.cuh).
#pragma once

#include "multiway_cuts.cuh"

namespace gpusort {

constexpr uint32_t kNoWord = ~0u;  // above every word: no tile has so many slots
constexpr int kMendRounds = 12;

// How a tile's codes become words.
template <class U>
struct WordMap {
  U lowest;
  int shift;

  __device__ __forceinline__ uint32_t word(U code, int slot) const {
    return static_cast<uint32_t>(static_cast<U>(code - lowest) >> shift) << kSlotBits | static_cast<uint32_t>(slot);
  }
  __device__ __forceinline__ U code(uint32_t word) const { return static_cast<U>(lowest + static_cast<U>(word >> kSlotBits)); }  // shift 0
};

__device__ __forceinline__ int slot_of(uint32_t word) {
  return static_cast<int>(word & ((1u << kSlotBits) - 1));
}

// By every warp: the extremes of sorted pieces are at their ends. A lane brings the first and the last code of its piece, if there is one.
template <class U>
__device__ __forceinline__ WordMap<U> make_word_map(bool has_piece, U first, U last) {
  using Wide = std::conditional_t<sizeof(U) == 8, unsigned long long, uint32_t>;
  Wide lowest = has_piece ? first : static_cast<Wide>(~Wide{0}), highest = has_piece ? last : 0;
  if constexpr (sizeof(U) == 8) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      lowest = min(lowest, __shfl_xor_sync(kAllLanes, lowest, distance));
      highest = max(highest, __shfl_xor_sync(kAllLanes, highest, distance));
    }
  } else {
    lowest = __reduce_min_sync(kAllLanes, lowest);
    highest = __reduce_max_sync(kAllLanes, highest);
  }
  int bits;
  if constexpr (sizeof(U) == 8) {
    bits = 64 - __clzll(static_cast<long long>(highest - lowest));
  } else {
    bits = 32 - __clz(static_cast<int>(highest - lowest));
  }
  return {static_cast<U>(lowest), max(0, bits - (32 - kSlotBits))};
}

// kItems words of the merge of words[a, a_end) and words[b, b_end), from these places on. Behind its end: kNoWord.
template <int kItems>
__device__ __forceinline__ void merge_words(const uint32_t* words, int a, int a_end, int b, int b_end, uint32_t (&merged)[kItems]) {
  uint32_t a_word = kNoWord, b_word = kNoWord;
  if (a < a_end) a_word = words[a];
  if (b < b_end) b_word = words[b];
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    const bool take_b = b_word < a_word;
    merged[item] = take_b ? b_word : a_word;
    const int next = (take_b ? b : a) + 1;
    uint32_t word = kNoWord;
    if (next < (take_b ? b_end : a_end)) word = words[next];
    a = take_b ? a : next;
    b = take_b ? next : b;
    a_word = take_b ? a_word : word;
    b_word = take_b ? word : b_word;
  }
}

// By all threads of a block, each of which has kItems places of the merged words from `first` on: puts neighbours that agree in their
// leading bits in the order of their codes. False if that takes too long; the words are then still all there.
template <int kItems, class U>
__device__ __forceinline__ bool mend_words(uint32_t* words, const U* codes, int first, int count) {
  uint32_t ties = 0;  // bit e: places first + e and first + e + 1 agree
  if (first < count) {
    uint32_t word = words[first];
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      if (first + e + 1 >= count) break;
      const uint32_t next = words[first + e + 1];
      if ((word ^ next) >> kSlotBits == 0) ties |= 1u << e;
      word = next;
    }
  }
  if (!__syncthreads_or(ties != 0)) return true;
  for (int round = 0; round < kMendRounds; ++round) {
    bool exchanged = false;
    for (int parity = 0; parity < 2; ++parity) {
      uint32_t left = ties & (((first + parity) & 1) != 0 ? 0xaaaaaaaau : 0x55555555u);
      while (left != 0) {
        const int place = first + __ffs(static_cast<int>(left)) - 1;
        left &= left - 1;
        const uint32_t word = words[place], next = words[place + 1];
        if (codes[slot_of(next)] >= codes[slot_of(word)]) continue;
        words[place] = next;
        words[place + 1] = word;
        exchanged = true;
      }
      __syncthreads();
    }
    if (!__syncthreads_or(exchanged)) return true;
  }
  return false;
}

}  // namespace gpusort
