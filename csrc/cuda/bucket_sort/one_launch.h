// The bucket sort of rows that fit the chip together, with its partition in one launch (one_launch.cuh has the algorithm).
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/one_launch_plan.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

// `workspace` has plan.workspace_bytes, aligned to 256; its contents do not matter. The plan is of this problem and this device.
cudaError_t launch_one_launch_sort(const SortProblem& problem, const OneLaunchPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
