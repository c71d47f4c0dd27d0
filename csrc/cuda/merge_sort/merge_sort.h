// Stable comparison merge sort of rows of any length: runs sorted on chip, then multiway merges.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/merge_sort_plan.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

// Enqueues the whole sort on `stream`. `workspace` holds plan.workspace_bytes bytes (may be 0), 256-byte aligned, contents arbitrary.
// problem.whole_key() holds. cudaErrorInvalidValue when the plan says that it is not possible.
cudaError_t launch_merge_sort(const SortProblem& problem, const MergeSortPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
