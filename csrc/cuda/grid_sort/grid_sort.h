// The one-launch grid sort of long rows: sample sort over all SMs with two barriers (grid_sort_kernel.cuh has the algorithm).
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/grid_sort_plan.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

// `workspace` has plan.workspace_bytes, aligned to 16; its contents do not matter. The plan is of this problem and this device.
cudaError_t launch_grid_sort(const SortProblem& problem, const GridSortPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
