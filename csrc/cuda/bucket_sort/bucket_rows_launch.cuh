// Picks the instantiations of the two kernels of the bucket sort for a capacity (kBucketShapes in plan/bucket_shape.h).
#pragma once

#include "bucket_rest.cuh"
#include "bucket_rows.cuh"

namespace gpusort {

constexpr int kRestThreads = 1024, kRestItems = 8;  // a tile is no shorter than the largest capacity

template <class U>
cudaError_t launch_bucket_rest(const BucketArguments<U>& arguments, const DeviceTraits& traits, cudaStream_t stream) {
  const auto kernel = bucket_rest_kernel<U, kRestThreads, kRestItems>;
  constexpr int kBytes = BucketRest<U, kRestThreads, kRestItems>::kSharedBytes;
  const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (status != cudaSuccess) return status;
  kernel<<<traits.sm_count, kRestThreads, kBytes, stream>>>(arguments);
  return cudaGetLastError();
}

template <class U, int kThreads, int kItems>
cudaError_t launch_bucket_shape(const BucketArguments<U>& arguments, const DeviceTraits& traits, cudaStream_t stream) {
  static_assert(kThreads * kItems <= kRestThreads * kRestItems, "");
  const auto kernel = bucket_rows_kernel<U, kThreads, kItems>;
  constexpr int kBytes = bucket_shared_bytes(sizeof(U), kThreads, kItems);
  cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (status != cudaSuccess) return status;
  kernel<<<static_cast<unsigned>(arguments.rows * arguments.buckets_per_row), kThreads, kBytes, stream>>>(arguments);
  status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  return launch_bucket_rest(arguments, traits, stream);
}

template <class U>
cudaError_t launch_bucket_rows(const BucketArguments<U>& arguments, const DeviceTraits& traits, cudaStream_t stream) {
  const int64_t buckets = arguments.rows * arguments.buckets_per_row;
  if (buckets <= 0 || (!arguments.keys_out && !arguments.indices_wide && !arguments.indices_narrow)) return cudaSuccess;
  if (buckets > 2147483647) return cudaErrorInvalidValue;
  const bool spare = arguments.spare_keys || (arguments.indices_wide && sizeof(U) <= 4);
  if (!spare) return cudaErrorInvalidValue;
  if (arguments.bucket_capacity <= 1024) return launch_bucket_shape<U, 64, 16>(arguments, traits, stream);
  if (arguments.bucket_capacity <= 2048) return launch_bucket_shape<U, 128, 16>(arguments, traits, stream);
  if (arguments.bucket_capacity <= 4096) return launch_bucket_shape<U, 256, 16>(arguments, traits, stream);
  if (arguments.bucket_capacity <= 8192) return launch_bucket_shape<U, 512, 16>(arguments, traits, stream);
  return cudaErrorInvalidValue;
}

}  // namespace gpusort
