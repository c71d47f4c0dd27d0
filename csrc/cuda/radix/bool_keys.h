// Sorts bools without their indices: a stable partition of one long row into False and True, whose bytes may be any but 0.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/bool_keys_plan.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

// Needs plan.used.
cudaError_t launch_bool_keys(const SortProblem& problem, const BoolKeysPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
