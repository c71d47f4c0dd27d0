// Instantiations of the bucket sort for 16-bit keys.
#include "bucket_rows_launch.cuh"

namespace gpusort {

template cudaError_t launch_bucket_rows<uint16_t>(const BucketArguments<uint16_t>&, const DeviceTraits&, cudaStream_t);

}  // namespace gpusort
