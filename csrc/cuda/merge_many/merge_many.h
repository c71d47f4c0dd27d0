// Merging many sorted runs of one array into one.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/merge_many_plan.h"

namespace gpusort {

// Enqueues the merge on `stream`. `workspace` holds plan.workspace_bytes bytes, 256-byte aligned, contents arbitrary. Runs that are not
// sorted give some permutation of the input.
cudaError_t launch_merge_many(const MergeManyProblem& problem, const MergeManyPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
