// Sorting rows on the CPU. See sort_rows.cpp for the method.
#pragma once

#include "../plan/sort_problem.h"
#include "parallel.h"
#include "sort_method.h"

namespace gpusort::cpu {

// Stable. Inputs and outputs do not overlap. Throws std::bad_alloc, and frees everything, when scratch memory is not to be had.
void sort_rows(const SortProblem& problem, SortMethod request, const Parallel& parallel);

// The same by a plan of the caller's own.
void sort_rows_by_plan(const SortProblem& problem, const SortPlan& plan, const Parallel& parallel);

}  // namespace gpusort::cpu
