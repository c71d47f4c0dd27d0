// Short rows: every row is read once, sorted on chip, written once. See row_sort.cu for which kernel takes which length.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/row_plan.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

// Enqueues the whole sort on `stream`. `workspace` holds plan.workspace_bytes bytes (may be 0), 256-byte aligned, contents arbitrary.
// problem.whole_key() holds and problem.length <= plan's maximum for the key width.
cudaError_t launch_row_sort(const SortProblem& problem, const RowPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
