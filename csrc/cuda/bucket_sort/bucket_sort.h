// Long rows: one partition into buckets by sampled splitters, then every bucket sorted on chip. See bucket_sort.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/bucket_sort_plan.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

// Enqueues the whole sort on `stream`. `workspace` has plan.workspace_bytes, aligned to 256; its contents do not matter. plan.possible
// holds; the plan is of this problem and this device.
cudaError_t launch_bucket_sort(const SortProblem& problem, const BucketSortPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
