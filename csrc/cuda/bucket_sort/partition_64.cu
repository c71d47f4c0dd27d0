// The partition of rows of 64-bit keys into buckets.
#include "partition_launch.cuh"

namespace gpusort {

template <>
cudaError_t launch_partition<uint64_t>(const PartitionArguments<uint64_t>& arguments, const BucketSortPlan& plan, cudaStream_t stream) {
  return launch_partition_of(arguments, plan, stream);
}

}  // namespace gpusort
