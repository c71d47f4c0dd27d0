// The partition of rows of 32-bit keys into buckets.
#include "partition_launch.cuh"

namespace gpusort {

template <>
cudaError_t launch_partition<uint32_t>(const PartitionArguments<uint32_t>& arguments, const BucketSortPlan& plan, cudaStream_t stream) {
  return launch_partition_of(arguments, plan, stream);
}

}  // namespace gpusort
