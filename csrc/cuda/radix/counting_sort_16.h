// Sorts 16-bit keys without their indices by counting: one read of the keys counts all 65536 patterns, one write puts each down as often as
// it was counted. Serves whole keys; every row is sorted by launches of its own, so rows must be long (counting_plan.h says how long).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "../../plan/counting_plan.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

// Needs plan.used.
cudaError_t launch_counting_sort_16(const SortProblem& problem, const CountingPlan& plan, int sm_count, void* workspace,
                                    cudaStream_t stream);

}  // namespace gpusort
