// Bitonic sort: a network whose comparisons do not depend on the data. See bitonic_sort.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/sort_problem.h"
#include "../../plan/steps_plan.h"

namespace gpusort {

// Enqueues the whole sort on `stream`. `workspace` holds plan.workspace_bytes bytes (may be 0), 256-byte aligned, contents arbitrary.
// problem.whole_key() holds.
cudaError_t launch_bitonic_sort(const SortProblem& problem, const BitonicPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
