// Picks the instantiations of the two kernels of the bucket sort for a capacity (kBucketShapes in plan/bucket_shape.h).
#pragma once

#include "bucket_rest.cuh"
#include "bucket_rows.cuh"

namespace gpusort {

template <class U, int kThreads, int kItems>
cudaError_t launch_bucket_shape(const BucketArguments<U>& arguments, const DeviceTraits& traits, cudaStream_t stream) {
  const auto rows = bucket_rows_kernel<U, kThreads, kItems>;
  constexpr int kRestThreads = kThreads < kRestDigits ? kRestDigits : kThreads;
  const auto rest = bucket_rest_kernel<U, kRestThreads, kItems>;
  constexpr int kRowsBytes = bucket_shared_bytes(sizeof(U), kThreads, kItems);
  constexpr int kRestBytes = BucketRest<U, kRestThreads, kItems>::kSharedBytes;
  cudaError_t status = cudaFuncSetAttribute(rows, cudaFuncAttributeMaxDynamicSharedMemorySize, kRowsBytes);
  if (status != cudaSuccess) return status;
  status = cudaFuncSetAttribute(rest, cudaFuncAttributeMaxDynamicSharedMemorySize, kRestBytes);
  if (status != cudaSuccess) return status;
  rows<<<static_cast<unsigned>(arguments.rows * arguments.buckets_per_row), kThreads, kRowsBytes, stream>>>(arguments);
  status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  rest<<<traits.sm_count*(1024 / kRestThreads), kRestThreads, kRestBytes, stream>>>(arguments);
  return cudaGetLastError();
}

template <class U>
cudaError_t launch_bucket_rows(const BucketArguments<U>& arguments, const DeviceTraits& traits, cudaStream_t stream) {
  const int64_t buckets = arguments.rows * arguments.buckets_per_row;
  if (buckets <= 0 || (!arguments.keys_out && !arguments.indices_wide && !arguments.indices_narrow)) return cudaSuccess;
  if (buckets > 2147483647) return cudaErrorInvalidValue;
  const bool spare = arguments.spare_keys || (arguments.indices_wide && sizeof(U) <= 4);
  if (!spare) return cudaErrorInvalidValue;
  if (arguments.bucket_capacity <= 1024) return launch_bucket_shape<U, 128, 8>(arguments, traits, stream);
  if (arguments.bucket_capacity <= 2048) return launch_bucket_shape<U, 256, 8>(arguments, traits, stream);
  if (arguments.bucket_capacity <= 4096) return launch_bucket_shape<U, 512, 8>(arguments, traits, stream);
  if (arguments.bucket_capacity <= 8192) return launch_bucket_shape<U, 512, 16>(arguments, traits, stream);
  return cudaErrorInvalidValue;
}

}  // namespace gpusort
