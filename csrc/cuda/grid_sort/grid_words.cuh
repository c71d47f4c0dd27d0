// What the grid sort orders: words (code, index), no two of a row equal, so that sorting them is a stable sort of the keys.
//
//   uint64_t  keys to 32 bits: code in the upper half, index in the lower
//   WideWord  64-bit keys: code and index apart; 16 bytes in global memory, 12 in shared
//
// Blocks sort them as they are (exact_words.cuh) or by short stand-ins (packed_words.cuh).
#pragma once

#include <cstdint>

#include "../../plan/grid_sort_plan.h"

namespace gpusort {

struct WideWord {
  uint64_t code;
  uint32_t index;
};

// Without branches: several comparisons are to be under way at once.
__device__ __forceinline__ bool operator<(const WideWord& a, const WideWord& b) {
  return (a.code < b.code) | ((a.code == b.code) & (a.index < b.index));
}

template <class Word>
struct WordTraits;

template <>
struct WordTraits<uint64_t> {
  using Code = uint32_t;
  static constexpr bool kWide = false;
  static __device__ __forceinline__ uint64_t make(uint32_t code, uint32_t index) { return static_cast<uint64_t>(code) << 32 | index; }
  static __device__ __forceinline__ uint32_t code(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
  static __device__ __forceinline__ uint32_t index(uint64_t word) { return static_cast<uint32_t>(word); }
};

template <>
struct WordTraits<WideWord> {
  using Code = uint64_t;
  static constexpr bool kWide = true;
  static __device__ __forceinline__ WideWord make(uint64_t code, uint32_t index) { return {code, index}; }
  static __device__ __forceinline__ uint64_t code(const WideWord& word) { return word.code; }
  static __device__ __forceinline__ uint32_t index(const WideWord& word) { return word.index; }
};

constexpr uint32_t kNoIndex = ~0u;

// Comes after all words of keys.
template <class Word>
__device__ __forceinline__ Word last_word() {
  return WordTraits<Word>::make(static_cast<typename WordTraits<Word>::Code>(~uint64_t{0}), kNoIndex);
}

// A word's place in the workspace, which blocks share through L2: loads and stores pass by L1.
template <class Word>
struct GlobalWord;

template <>
struct alignas(8) GlobalWord<uint64_t> {
  unsigned long long bits;

  __device__ __forceinline__ void store(uint64_t word) { __stcg(&bits, static_cast<unsigned long long>(word)); }
  __device__ __forceinline__ uint64_t load() const { return __ldcg(&bits); }
};

template <>
struct alignas(16) GlobalWord<WideWord> {
  ulonglong2 bits;

  __device__ __forceinline__ void store(const WideWord& word) { __stcg(&bits, make_ulonglong2(word.code, word.index)); }
  __device__ __forceinline__ WideWord load() const {
    const ulonglong2 both = __ldcg(&bits);
    return {both.x, static_cast<uint32_t>(both.y)};
  }
};

// An array of words in shared memory, padded (plan/grid_sort_plan.h), for bisections at a stride.
template <class Word>
struct SharedWords;

template <>
struct SharedWords<uint64_t> {
  uint64_t* words;

  __device__ __forceinline__ SharedWords(char* storage, int) : words(reinterpret_cast<uint64_t*>(storage)) {}
  __device__ __forceinline__ uint64_t get(int place) const { return words[grid_code_place(place)]; }
  __device__ __forceinline__ void set(int place, uint64_t word) const { words[grid_code_place(place)] = word; }
  template <int kItems>
  __device__ __forceinline__ void store_run(int first, const uint64_t (&run)[kItems]) const {
#pragma unroll
    for (int e = 0; e < kItems; ++e) set(first + e, run[e]);
  }
};

template <>
struct SharedWords<WideWord> {
  uint64_t* codes;
  uint32_t* indices;

  __device__ __forceinline__ SharedWords(char* storage, int places)
      : codes(reinterpret_cast<uint64_t*>(storage)), indices(reinterpret_cast<uint32_t*>(storage + grid_shared_codes_bytes(places))) {}
  __device__ __forceinline__ WideWord get(int place) const { return {codes[grid_code_place(place)], indices[grid_index_place(place)]}; }
  __device__ __forceinline__ uint64_t code(int place) const { return codes[grid_code_place(place)]; }
  __device__ __forceinline__ void set(int place, const WideWord& word) const {
    codes[grid_code_place(place)] = word.code;
    indices[grid_index_place(place)] = word.index;
  }
};

// An array of words in shared memory that is read and written in stripes or at random.
template <class Word>
struct HeldWords;

template <>
struct HeldWords<uint64_t> {
  uint64_t* words;

  __device__ __forceinline__ HeldWords(char* storage, int) : words(reinterpret_cast<uint64_t*>(storage)) {}
  __device__ __forceinline__ uint64_t get(int place) const { return words[place]; }
  __device__ __forceinline__ void set(int place, uint64_t word) const { words[place] = word; }
  // What orders the words, up to their places.
  __device__ __forceinline__ const uint64_t* keys() const { return words; }
};

template <>
struct HeldWords<WideWord> {
  uint64_t* codes;
  uint32_t* indices;

  __device__ __forceinline__ HeldWords(char* storage, int places)
      : codes(reinterpret_cast<uint64_t*>(storage)), indices(reinterpret_cast<uint32_t*>(storage + grid_held_bytes(false, places))) {}
  __device__ __forceinline__ WideWord get(int place) const { return {codes[place], indices[place]}; }
  __device__ __forceinline__ void set(int place, const WideWord& word) const {
    codes[place] = word.code;
    indices[place] = word.index;
  }
  __device__ __forceinline__ const uint64_t* keys() const { return codes; }
};

}  // namespace gpusort
