// How the CPU sorts a given shape: a pure function of the shape, the request and the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpusort::cpu {

enum class SortMethod { kAuto, kRadix, kMerge, kBitonic, kSample };

struct SortPlan {
  SortMethod method = SortMethod::kRadix;  // any but kAuto
  int64_t row_tasks = 1;                   // rows are dealt out in this many tasks; a single one means all threads work in each row
  bool wide_index = false;                 // positions need more than 32 bits
};

// A radix pass costs 256 bins whatever the length, a merge sort log2(length) steps per element: they meet near 100 elements
// (EPYC, float32 and int64, one thread: 12 ns per element each).
constexpr int64_t kShortRow = 100;

// Elements that make another thread worth waking inside one row. A radix sort meets its threads a dozen times: 5 us each when the cores are
// free, a scheduler's time slice when they are not (EPYC, torch's OpenMP pool), against 10 ns per element.
constexpr int64_t kElementsPerThread = 1 << 17;

inline int64_t slices_for(int64_t elements, int threads) {
  return std::min<int64_t>(threads, 1 + elements / kElementsPerThread);
}

inline SortPlan make_sort_plan(int64_t rows, int64_t length, int threads, SortMethod request) {
  SortPlan plan;
  plan.method = request != SortMethod::kAuto ? request : length <= kShortRow ? SortMethod::kMerge : SortMethod::kRadix;
  plan.wide_index = length > (int64_t{1} << 32);
  // Enough work per task to pay for waking a thread, a few tasks per thread to even out, and no task below one row.
  const int64_t worth = std::max<int64_t>(1, rows * length / (1 << 12));
  if (rows >= threads) plan.row_tasks = std::min({rows, worth, int64_t{threads} * 4});
  return plan;
}

// Leading bits of the varying part of the codes that are sorted by digits before what still ties is mended: wide enough that few of
// `length` spread-out codes share them, and the fewer digits the better.
inline int leading_bits(int64_t length, int word_bits) {
  int bits = 16;
  while (bits < word_bits && length >> (bits - 6) > 0) bits += 8;
  return std::min(bits, word_bits);
}

}  // namespace gpusort::cpu
