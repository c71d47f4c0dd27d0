// Bitonic sort of distinct words, one row, all threads: a network whose compare-exchanges do not depend on the data.
//
// To merge sorted runs of `run` pairwise, compare place i with its mirror image i ^ (2 run - 1), then with i ^ distance for distance =
// run / 2, run / 4, ..., 1. The lower place always keeps the smaller word, so words missing at the end act as if they were larger than
// all others, and any size works. Invariant: after the step of distance 1, runs of 2 run are sorted. Cost: (log2 n)(log2 n + 1) / 2 steps
// over the words. Source: Batcher, "Sorting networks and their applications" (1968).
#pragma once

#include <cstdint>

#include "../core/sorting_network.h"
#include "parallel.h"
#include "sort_method.h"

namespace gpusort::cpu {

// One step: every place with its partner. No two pairs share a place, so threads may take them in any order.
template <class Word>
void exchange_with(Word* words, int64_t size, int64_t partner_mask, const Parallel& parallel) {
  const int64_t slices = slices_for(size, parallel.threads());
  parallel.for_each(slices, [&](int64_t s) {
    const Slice slice = slice_of(size, slices, s);
    for (int64_t i = slice.begin; i < slice.end; ++i) {
      const int64_t partner = i ^ partner_mask;
      if (partner > i && partner < size) compare_exchange(words[i], words[partner]);
    }
  });
}

// In place; returns `words`.
template <class Word>
Word* bitonic_sort_words(Word* words, int64_t size, const Parallel& parallel) {
  for (int64_t run = 1; run < size; run *= 2) {
    exchange_with(words, size, 2 * run - 1, parallel);
    for (int64_t distance = run / 2; distance > 0; distance /= 2) exchange_with(words, size, distance, parallel);
  }
  return words;
}

}  // namespace gpusort::cpu
