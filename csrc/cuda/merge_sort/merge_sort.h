// Stable comparison merge sort of rows of any length: runs sorted on chip, then multiway merges.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/merge_sort_plan.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

// Enqueues the whole sort on `stream`. `workspace` holds plan.workspace_bytes bytes (may be 0), 256-byte aligned, contents arbitrary.
// problem.whole_key() holds. The plan was made for this problem, results included: they may serve as a buffer, so it does not fit the same
// keys with fewer results. cudaErrorInvalidValue when it is seen not to fit, or says that it is not possible.
cudaError_t launch_merge_sort(const SortProblem& problem, const MergeSortPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
