// A run of keys in global memory, and the element behind it, as the 16-byte words that hold them, whatever their alignment.
//
// Words are read whole except those that reach over an end of the input or of the row (at most the first and the last of a run): nothing
// outside the input is touched, and behind a row's last element a sentinel takes the place of the next row's first.
#pragma once

#include "merge_block.cuh"

namespace gpusort {

template <class U>
struct KeySpan {
  static constexpr int kWord = KeyWord<U>::kCount;

  const uint4* words;
  int offset;                  // elements of the first word in front of the run
  int count;                   // words
  int whole_begin, whole_end;  // words to be read whole
  const U *valid, *valid_end;  // elements that may be read; behind them are sentinels

  __device__ KeySpan(const U* begin, int length, bool ends_row, const U* input, const U* input_end)
      : valid(input), valid_end(ends_row ? begin + length : input_end) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(begin);
    words = reinterpret_cast<const uint4*>(address & ~uintptr_t{15});
    offset = static_cast<int>(address % 16 / sizeof(U));
    count = static_cast<int>(static_cast<unsigned>(offset + length + kWord) / kWord);
    whole_begin = reinterpret_cast<const U*>(words) < valid ? 1 : 0;
    whole_end = reinterpret_cast<const U*>(words + count) > valid_end ? count - 1 : count;
  }

  __device__ bool all_whole() const { return whole_begin == 0 && whole_end == count; }
  __device__ bool is_whole(int word) const { return word >= whole_begin && word < whole_end; }
  __device__ bool is_valid(int word, int element) const {
    const U* address = reinterpret_cast<const U*>(words + word) + element;
    return address >= valid && address < valid_end;
  }

  // A word that is not whole, with arbitrary keys where none may be read.
  __device__ KeyWord<U> load_ragged(int word) const {
    KeyWord<U> loaded;
#pragma unroll
    for (int e = 0; e < kWord; ++e) loaded.key[e] = is_valid(word, e) ? reinterpret_cast<const U*>(words + word)[e] : U{0};
    return loaded;
  }

  // The same with `sentinel` there, read past the L1 (read_key).
  __device__ KeyWord<U> load_or(int word, U sentinel) const {
    KeyWord<U> loaded;
#pragma unroll
    for (int e = 0; e < kWord; ++e)
      loaded.key[e] = is_valid(word, e) ? read_key<true>(reinterpret_cast<const U*>(words + word) + e) : sentinel;
    return loaded;
  }

  // Encodes what load_ragged gave, with sentinels where no key may be read. True if it holds special keys.
  __device__ bool encode_ragged(int word, KeyWord<U>& loaded, const MergeKeys<U>& keys) const {
    bool special = false;
#pragma unroll
    for (int e = 0; e < kWord; ++e) {
      const U key = keys.encode(loaded.key[e]);
      special = special || (is_valid(word, e) && keys.is_special(key));
      loaded.key[e] = is_valid(word, e) ? key : MergeKeys<U>::kSentinel;
    }
    return special;
  }
};

}  // namespace gpusort
