// Instantiations of the bucket sort for 32-bit keys.
#include "bucket_rows_launch.cuh"

namespace gpusort {

template cudaError_t launch_bucket_rows<uint32_t>(const BucketArguments<uint32_t>&, const DeviceTraits&, cudaStream_t);
template cudaError_t launch_listed_buckets<uint32_t>(const BucketArguments<uint32_t>&, const DeviceTraits&, cudaStream_t);

}  // namespace gpusort
