// Plans a lexicographic sort: which words of the wide key (core/key_columns.h) are sorted by, in what order, and where things lie. Pure.
//
//   kOneWord    all columns together fit one word: one sort of it is exact
//   kChain      one stable sort per word, least significant first
//   kLeading    ranges of the columns are found on the device, which narrows the wide key. One sort by its leading word leaves runs of
//               equal words, which are mended by the words behind. Where a sample of the leading words says that too much will tie, or
//               too much turns out to, the chain does it all; else its kernels leave at once. Nothing is decided by the host.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../core/key_columns.h"
#include "radix_plan.h"
#include "sort_plan.h"

namespace gpusort {

// The indices that sort each of `rows` rows of `length` elements by all columns, stably. Element e of row r is element r * length + e of
// every column.
struct LexsortProblem {
  KeyColumns columns;
  int64_t rows = 1;
  int64_t length = 0;
  int64_t* indices_out = nullptr;  // positions within the row

  int64_t numel() const { return rows * length; }
};

enum class LexsortWay { kOneWord, kChain, kLeading };

// A sort of words with a plan made ahead. `problem` lacks its pointers.
struct WordSort {
  SortProblem problem;
  SortAlgorithm algorithm = SortAlgorithm::kRadix;
  RadixPlan radix;
  RowPlan row;
  GridSortPlan grid;
  int64_t workspace_bytes = 0;
};

// What the device finds out about the columns and the runs. The columns' entries follow it.
struct LexsortControl {
  uint32_t lead_called_off;   // not 0: too much would tie, there is no sort by the leading word
  uint32_t chain_called_off;  // not 0: the runs are mended, the chain is not needed
  uint32_t ranges_known;      // not 0: columns have the bits of their dtype
  uint32_t blocks_done;
  uint32_t long_runs;        // in the list
  uint32_t too_long;         // runs beyond kLongestMendedRun
  uint64_t long_run_places;  // elements of the runs in the list
  int64_t words;             // of the narrowed key
};

// Of one column. Cleared to 0, so the smallest code is kept as the largest complement.
struct ColumnEntry {
  uint64_t largest;
  uint64_t largest_complement;
  int64_t begin;          // bit of the narrowed key
  int64_t width;          // bits; 0: constant
  int64_t first_of_word;  // entry w: the first column with a part in word w (there are no more words than columns)

  GPUSORT_HD uint64_t smallest() const { return ~largest_complement; }
};

constexpr int kShortestListedRun = 33;               // shorter ones are mended where they are found
constexpr int64_t kLongestMendedRun = 4096;          // by one block
constexpr int64_t kMendedShare = 16;                 // of the elements may be in listed runs: 1 / 16
constexpr int64_t kMaxNarrowRow = int64_t{1} << 31;  // longer rows take the chain with 64-bit positions

struct LexsortPlan {
  LexsortWay way = LexsortWay::kOneWord;
  int64_t words = 1;          // of the key by dtype
  int order_bytes = 4;        // of positions between the sorts of a chain
  WordSort word_sort;         // of the chain; the only one of kOneWord, whose word may have 32 bits
  WordSort lead_sort;         // kLeading: by the leading word
  int64_t control_bytes = 0;  // cleared
  int sm_count = 1;

  // Offsets in the workspace.
  int64_t control_offset = 0;
  int64_t words_offset = 0;  // words to sort
  int64_t sorted_words_offset = 0;
  int64_t order_offset[2] = {0, 0};  // positions; the list of long runs lies in the first before the chain begins
  int64_t sort_offset = 0;           // the sorts' own workspace
  int64_t workspace_bytes = 0;
};

inline WordSort plan_word_sort(int64_t rows, int64_t length, int word_bytes, int index_bytes, const DeviceTraits& traits) {
  static char somewhere = 0;  // plans only ask whether results are wanted
  WordSort sort;
  sort.problem.key = {word_bytes, KeyKind::kUnsigned, 0};
  sort.problem.rows = rows;
  sort.problem.length = length;
  sort.problem.end_bit = word_bytes * 8;
  sort.problem.keys_in = sort.problem.keys_out = sort.problem.indices_out = &somewhere;
  sort.problem.index_bytes = index_bytes;
  sort.algorithm = choose_sort_algorithm(sort.problem, SortAlgorithm::kAuto, traits);
  if (sort.algorithm == SortAlgorithm::kGrid) {
    sort.grid = plan_grid_sort(sort.problem, traits);
    sort.workspace_bytes = sort.grid.workspace_bytes;
  } else if (sort.algorithm == SortAlgorithm::kRows) {
    sort.row = plan_row_sort(sort.problem, traits);
    sort.workspace_bytes = sort.row.workspace_bytes;
  } else {
    sort.algorithm = SortAlgorithm::kRadix;
    sort.radix = plan_radix_sort(sort.problem, traits);
    sort.workspace_bytes = sort.radix.workspace_bytes;
  }
  return sort;
}

inline LexsortPlan plan_lexsort(const LexsortProblem& problem, const DeviceTraits& traits) {
  LexsortPlan plan;
  const int64_t numel = problem.numel();
  plan.words = problem.columns.words();
  plan.sm_count = traits.sm_count;
  if (numel == 0) return plan;
  const bool narrow = problem.length <= kMaxNarrowRow;
  plan.order_bytes = narrow ? 4 : 8;
  const int word_bytes = problem.columns.bits() <= 32 ? 4 : 8;
  plan.word_sort = plan_word_sort(problem.rows, problem.length, word_bytes, plan.words == 1 ? 8 : plan.order_bytes, traits);
  if (plan.words > 1) {
    // Sorts on chip and over the grid can not be called off, and are short.
    plan.way = narrow && plan.word_sort.algorithm == SortAlgorithm::kRadix ? LexsortWay::kLeading : LexsortWay::kChain;
  }

  radix_plan_detail::Slicer slicer;
  int64_t sort_bytes = plan.word_sort.workspace_bytes;
  if (plan.way == LexsortWay::kLeading) {
    plan.control_bytes = static_cast<int64_t>(sizeof(LexsortControl) + problem.columns.count * sizeof(ColumnEntry));
    plan.control_offset = slicer.take(plan.control_bytes);
    plan.lead_sort = plan_word_sort(problem.rows, problem.length, 8, 8, traits);
    sort_bytes = std::max(sort_bytes, plan.lead_sort.workspace_bytes);
  }
  plan.words_offset = slicer.take(numel * word_bytes);
  plan.sorted_words_offset = slicer.take(numel * word_bytes);
  if (plan.words > 1) {
    for (int64_t& offset : plan.order_offset) offset = slicer.take(numel * plan.order_bytes);
  }
  plan.sort_offset = slicer.take(sort_bytes);
  plan.workspace_bytes = slicer.used;
  return plan;
}

}  // namespace gpusort
