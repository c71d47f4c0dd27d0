// Sorts long rows of 32-bit keys with 64-bit indices by two partitions and buckets on chip, or else by the radix sort.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/mapped_buckets_plan.h"

namespace gpusort {

// All buffers belong to the caller; `workspace` has at least plan.workspace_bytes bytes.
cudaError_t launch_mapped_buckets(const SortProblem& problem, const MappedBucketsPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
