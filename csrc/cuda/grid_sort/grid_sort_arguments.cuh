// What a grid sort is told, and how it reads and writes keys of any width.
#pragma once

#include <cstdint>

#include "../../core/key_order.h"
#include "grid_words.cuh"

namespace gpusort {

template <class Word>
struct GridSortArguments {
  using Code = typename WordTraits<Word>::Code;

  const void* keys_in = nullptr;
  void* keys_out = nullptr;         // null: not wanted
  int64_t* indices_wide = nullptr;  // at most one of the two is wanted
  int32_t* indices_narrow = nullptr;
  GlobalWord<Word>* words = nullptr;      // [row][tile][tile_length], each tile sorted
  GlobalWord<Word>* samples = nullptr;    // [row][tile][kGridSamples]
  GlobalWord<Word>* splitters = nullptr;  // [row][bucket]: the first word of each bucket but the first
  KeyOrder<Code> order;                   // of keys shifted up to the width of a code
  int key_bytes = 0;
  int length = 0;
  int tiles = 0;  // of all rows
  int tiles_per_row = 0;
  int tile_length = 0;
  int gap = 0;
  int samples_per_row = 0;
  int bucket_capacity = 0;
  int piece_gap = 0;
  int piece_samples = 0;
};

// Keys shorter than a code are its upper bits: order, NaN and zeros included, is not changed by the zeros below.
template <class Code>
__device__ __forceinline__ int key_shift(int key_bytes) {
  return (static_cast<int>(sizeof(Code)) - key_bytes) * 8;
}

// Not yet shifted, so that several loads can be under way.
template <class Code>
__device__ __forceinline__ Code load_key(const void* keys, int key_bytes, int64_t place) {
  if constexpr (sizeof(Code) == 8) {
    return static_cast<const uint64_t*>(keys)[place];
  } else {
    if (key_bytes == 4) return static_cast<const uint32_t*>(keys)[place];
    if (key_bytes == 2) return static_cast<const uint16_t*>(keys)[place];
    return static_cast<const uint8_t*>(keys)[place];
  }
}

template <class Code>
__device__ __forceinline__ void store_key(void* keys, int key_bytes, int64_t place, Code key) {
  if constexpr (sizeof(Code) == 8) {
    static_cast<uint64_t*>(keys)[place] = key;
  } else {
    if (key_bytes == 4) {
      static_cast<uint32_t*>(keys)[place] = key;
    } else if (key_bytes == 2) {
      static_cast<uint16_t*>(keys)[place] = static_cast<uint16_t>(key >> 16);
    } else {
      static_cast<uint8_t*>(keys)[place] = static_cast<uint8_t>(key >> 24);
    }
  }
}

}  // namespace gpusort
