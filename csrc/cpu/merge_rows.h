// Merging sorted rows on the CPU. See merge_rows.cpp for the method.
#pragma once

#include <cstdint>

#include "../plan/sort_problem.h"
#include "parallel.h"

namespace gpusort::cpu {

// Stable, ties taken from a. Besides the widths of MergeProblem, key.bytes may be 16 (unsigned, as WideCode), and keys_out may be null.
// Unsorted inputs give some permutation of their elements.
void merge_rows(const MergeProblem& problem, const Parallel& parallel);

// counts_out[t] = how many of the first ranks[t] outputs of the merge of a and b (one row) come from a. 0 <= ranks[t] <= a_length +
// b_length.
void co_rank_many(const MergeProblem& problem, const int64_t* ranks, int64_t rank_count, int64_t* counts_out, const Parallel& parallel);

}  // namespace gpusort::cpu
