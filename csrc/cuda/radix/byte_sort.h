// Stable sort of one long row of 8-bit keys with their indices: one partition into 256 bins. Count, scan, scatter.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/radix_plan.h"

namespace gpusort {

// Needs plan.byte_sort.used, and indices aligned to 16 bytes.
cudaError_t launch_byte_sort(const SortProblem& problem, const RadixPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
