// Merging sorted inputs, row by row. See merge_<kernel>.cuh for the four forms.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/merge_plan.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

// Enqueues the merge on `stream`. `workspace` holds plan.workspace_bytes bytes (may be 0), 256-byte aligned, contents arbitrary.
cudaError_t launch_merge(const MergeProblem& problem, const MergePlan& plan, void* workspace, cudaStream_t stream);

// counts_out[t] = how many of the first ranks[t] outputs of the merge of a and b (one row) come from a; ranks are clamped to
// [0, a_length + b_length].
cudaError_t launch_co_rank(const MergeProblem& problem, const int64_t* ranks, int64_t rank_count, int64_t* counts_out, cudaStream_t stream);

}  // namespace gpusort
