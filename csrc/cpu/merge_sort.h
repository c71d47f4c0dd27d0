// Stable merge sort of words that hold a code above a position, one row, all threads.
//
// A position makes every word distinct, so the plain order of the words is the stable order of the codes and any correct sort of them is
// stable. Each thread sorts a slice (insertion sort of short runs, then bottom-up merges); then pairs of slices are merged, every merge
// being cut by co-rank into as many pieces as there are threads. Invariant: after stage s, runs of 2^s slices are sorted. Cost: log2(size /
// kRun) reads and writes of the words. Source: Knuth, TAOCP volume 3, section 5.2.4; Green et al., "Merge Path" (2012).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "../core/co_rank.h"
#include "../core/serial_merge.h"
#include "parallel.h"
#include "sort_method.h"

namespace gpusort::cpu {

constexpr int64_t kRun = 16;  // insertion sort below this many words

template <class Word>
void insertion_sort_words(Word* words, int64_t size) {
  for (int64_t i = 1; i < size; ++i) {
    const Word word = words[i];
    int64_t place = i;
    for (; place > 0 && word < words[place - 1]; --place) words[place] = words[place - 1];
    words[place] = word;
  }
}

// Merges two adjacent sorted runs, a before b, into `out`.
template <class Word>
void merge_words(const Word* a, int64_t a_length, const Word* b, int64_t b_length, Word* out) {
  // While both have words, a step is a comparison and three conditional moves: no branch depends on the data.
  const Word* const a_end = a + a_length;
  const Word* const b_end = b + b_length;
  while (a != a_end && b != b_end) {
    const Word a_head = *a, b_head = *b;
    const bool from_b = b_head < a_head;
    *out++ = from_b ? b_head : a_head;
    b += from_b;
    a += !from_b;
  }
  out = std::copy(a, a_end, out);
  std::copy(b, b_end, out);
}

// One thread. The result lies where the returned pointer says, `words` or `scratch`.
template <class Word>
Word* merge_sort_slice(Word* words, Word* scratch, int64_t size) {
  for (int64_t begin = 0; begin < size; begin += kRun) insertion_sort_words(words + begin, std::min(kRun, size - begin));
  for (int64_t run = kRun; run < size; run *= 2) {
    for (int64_t begin = 0; begin < size; begin += 2 * run) {
      const int64_t a_length = std::min(run, size - begin);
      const int64_t b_length = std::min(run, size - begin - a_length);
      merge_words(words + begin, a_length, words + begin + a_length, b_length, scratch + begin);
    }
    std::swap(words, scratch);
  }
  return words;
}

template <class Word>
Word* merge_sort_words(Word* words, Word* scratch, int64_t size, const Parallel& parallel) {
  int64_t slices = 1;  // a power of two, at least as many as threads, unless slices would get short
  while (slices < parallel.threads() && size / (2 * slices) >= kElementsPerThread / 2) slices *= 2;
  if (slices == 1) return merge_sort_slice(words, scratch, size);

  parallel.for_each(slices, [&](int64_t s) {
    const Slice slice = slice_of(size, slices, s);
    Word* sorted = merge_sort_slice(words + slice.begin, scratch + slice.begin, slice.size());
    if (sorted != words + slice.begin) std::copy(sorted, sorted + slice.size(), words + slice.begin);
  });
  const auto less = [](Word x, Word y) { return x < y; };
  for (int64_t run = 1; run < slices; run *= 2) {  // in slices
    const int64_t merges = slices / (2 * run), pieces = 2 * run;
    parallel.for_each(merges * pieces, [&](int64_t task) {
      const int64_t first = task / pieces * 2 * run;
      const int64_t begin = slice_of(size, slices, first).begin, middle = slice_of(size, slices, first + run).begin;
      const int64_t end = slice_of(size, slices, first + 2 * run - 1).end;
      const Slice output = slice_of(end - begin, pieces, task % pieces);
      const Word *a = words + begin, *b = words + middle;
      const int64_t a_begin = co_rank(output.begin, a, middle - begin, b, end - middle, less);
      const int64_t a_end = co_rank(output.end, a, middle - begin, b, end - middle, less);
      const int64_t b_begin = output.begin - a_begin, b_end = output.end - a_end;
      merge_words(a + a_begin, a_end - a_begin, b + b_begin, b_end - b_begin, scratch + begin + output.begin);
    });
    std::swap(words, scratch);
  }
  return words;
}

}  // namespace gpusort::cpu
