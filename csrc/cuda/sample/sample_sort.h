// Sample sort on one GPU: distribution by splitters, then sorting on chip. See sample_sort.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/sort_problem.h"
#include "../../plan/steps_plan.h"

namespace gpusort {

// Enqueues the whole sort on `stream`. `workspace` holds plan.workspace_bytes bytes (may be 0), 256-byte aligned, contents arbitrary.
// problem.whole_key() holds.
cudaError_t launch_sample_sort(const SortProblem& problem, const SamplePlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
