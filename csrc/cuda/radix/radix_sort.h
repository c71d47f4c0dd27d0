// Large sorts: least-significant-digit radix sort, batched over rows. See radix_sort.cu for the algorithm.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/radix_plan.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

// Enqueues the whole sort on `stream`. `workspace` holds plan.workspace_bytes bytes, 256-byte aligned, contents arbitrary.
cudaError_t launch_radix_sort(const SortProblem& problem, const RadixPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
