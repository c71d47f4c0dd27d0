// The partition of rows of 16-bit keys into buckets.
#include "partition_launch.cuh"

namespace gpusort {

template <>
cudaError_t launch_partition<uint16_t>(const PartitionArguments<uint16_t>& arguments, const BucketSortPlan& plan, cudaStream_t stream) {
  return launch_partition_of(arguments, plan, stream);
}

}  // namespace gpusort
