// Instantiations of the bucket sort for 64-bit keys.
#include "bucket_rows_launch.cuh"

namespace gpusort {

template cudaError_t launch_bucket_rows<uint64_t>(const BucketArguments<uint64_t>&, const DeviceTraits&, cudaStream_t);
template cudaError_t launch_listed_buckets<uint64_t>(const BucketArguments<uint64_t>&, const DeviceTraits&, cudaStream_t);

}  // namespace gpusort
