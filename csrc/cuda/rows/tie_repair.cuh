// Mends the output of a sort by words where keys that share their leading bits descend.
//
// Words of one row are sorted, so keys with equal leading bits are neighbours (a run), in the order of their indices. The output is wrong
// exactly where a run descends in the full code. One thread ranks a whole short run and rewrites its moved places; a longer run is left to
// the caller, who sorts the row exactly. Work: the square of the run's length, at most kLongestRun^2 comparisons.
#pragma once

#include <cstdint>

#include "../../plan/row_plan.h"
#include "row_access.cuh"

namespace gpusort {

constexpr int kLongestRun = 24;

// words: sorted words of the warp or block, the row's first at `first`; keys: the row's keys by index; the descent is between `position`
// and the next; offset: where the row starts in the arrays. False when the run is too long.
template <class U>
__device__ __noinline__ bool repair_run(const RowArguments<U>* arguments, int64_t offset, const uint32_t* words, int first, const U* keys,
                                        int position, int index_bits) {
  const uint32_t mask = (1u << index_bits) - 1;
  const int length = arguments->length;
  const KeyOrder<U> order = arguments->order;
  const auto word_at = [&](int place) { return words[padded_position(first + place)]; };
  const auto code_at = [&](int place) { return order.code(keys[word_at(place) & mask]); };

  const uint32_t leading = word_at(position) >> index_bits;
  int left = position, right = position + 1;
  while (left > 0 && position - left < kLongestRun && (word_at(left - 1) >> index_bits) == leading) --left;
  while (right + 1 < length && right - position < kLongestRun && (word_at(right + 1) >> index_bits) == leading) ++right;
  if (right - left + 1 > kLongestRun) return false;
  for (int place = left; place < position; ++place) {
    if (code_at(place) > code_at(place + 1)) return true;  // the thread of the run's first descent mends all of it
  }
  const RowOutput<U> output(*arguments, offset);
  for (int place = left; place <= right; ++place) {
    const uint32_t index = word_at(place) & mask;
    const U code = order.code(keys[index]);
    int rank = left;
    for (int other = left; other <= right; ++other) {
      const U other_code = code_at(other);
      rank += other_code < code || (other_code == code && other < place);
    }
    if (rank != place) output.store(rank, keys[index], index);
  }
  return true;
}

}  // namespace gpusort
