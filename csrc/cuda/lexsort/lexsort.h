// Lexicographic sort by several key columns (lexsort.cu).
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/lexsort_plan.h"

namespace gpusort {

// `workspace` has plan.workspace_bytes, aligned to 256; its contents do not matter. The plan is of this problem and this device.
cudaError_t launch_lexsort(const LexsortProblem& problem, const LexsortPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
