// The bucket sort whose buckets pull their keys from ordered tiles. See order_tiles.cuh and pulled_rows.cuh for the algorithm.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/pulled_buckets_plan.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

// Enqueues the whole sort on `stream`. `workspace` holds plan.workspace_bytes bytes, 256-byte aligned, contents arbitrary.
cudaError_t launch_pulled_bucket_sort(const SortProblem& problem, const PulledBucketsPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
