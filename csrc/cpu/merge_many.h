// Merging many sorted runs on the CPU. See merge_many.cpp for the method.
#pragma once

#include "../plan/merge_many_plan.h"
#include "parallel.h"

namespace gpusort::cpu {

// Stable, ties taken from the earlier run. problem.offsets rise from 0 to problem.length. Complex keys are of 8 or 16 bytes, in NumPy's
// order. Runs that are not sorted give some permutation of the input. Throws std::bad_alloc.
void merge_many(const MergeManyProblem& problem, bool complex, const Parallel& parallel);

}  // namespace gpusort::cpu
