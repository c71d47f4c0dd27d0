// Picks the instantiations of the three kernels of the bucket sort for a capacity: the least that holds it.
#pragma once

#include <algorithm>
#include <atomic>

#include "../primitives/dependent_launch.cuh"
#include "../primitives/kernel_setup.h"
#include "bucket_exact.cuh"
#include "bucket_rest.cuh"
#include "bucket_rows.cuh"

namespace gpusort {

// Of the kernel for the rest: as large as an SM holds, so that a bucket that exceeds the capacity somewhat stays on chip.
constexpr int kRestItems = 16;
template <class U>
constexpr int kRestThreads = sizeof(U) == 8 ? 512 : 1024;

template <auto kKernel, class U>
cudaError_t launch_bucket_kernel(int64_t blocks, int threads, int shared_bytes, const BucketArguments<U>& arguments,
                                 const DeviceTraits& traits, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(kKernel, shared_bytes, prepared);
  if (error != cudaSuccess) return error;
  return launch_after_predecessor<kKernel>(arguments, {static_cast<unsigned>(blocks), threads, shared_bytes, traits.compute_major >= 9},
                                           stream);
}

template <class U>
cudaError_t launch_bucket_rest(const BucketArguments<U>& arguments, const DeviceTraits& traits, cudaStream_t stream) {
  using Rest = BucketRest<U, kRestThreads<U>, kRestItems>;
  return launch_bucket_kernel<bucket_rest_kernel<U, kRestThreads<U>, kRestItems>>(
      int64_t{Rest::kBlocksPerSm} * traits.sm_count, kRestThreads<U>, Rest::kSharedBytes, arguments, traits, stream);
}

template <class U, int kThreads, int kItems>
cudaError_t launch_bucket_exact(const BucketArguments<U>& arguments, const DeviceTraits& traits, cudaStream_t stream) {
  const int64_t room = int64_t{BucketExact<U, kThreads, kItems>::kBlocksPerSm} * traits.sm_count;
  const cudaError_t status = launch_bucket_kernel<bucket_exact_kernel<U, kThreads, kItems>>(
      std::min(arguments.rows * arguments.buckets_per_row, room), kThreads, bucket_shared_bytes(sizeof(U), kThreads, kItems), arguments,
      traits, stream);
  return status != cudaSuccess ? status : launch_bucket_rest(arguments, traits, stream);
}

template <class U, int kThreads, int kItems>
cudaError_t launch_bucket_shape(const BucketArguments<U>& arguments, const DeviceTraits& traits, cudaStream_t stream) {
  const cudaError_t status = launch_bucket_kernel<bucket_rows_kernel<U, kThreads, kItems>>(
      arguments.rows * arguments.buckets_per_row, kThreads, bucket_shared_bytes(sizeof(U), kThreads, kItems), arguments, traits, stream);
  return status != cudaSuccess ? status : launch_bucket_exact<U, kThreads, kItems>(arguments, traits, stream);
}

// Whether there is anything to do; an error where the arguments are wrong.
template <class U>
cudaError_t check_buckets(const BucketArguments<U>& arguments, bool* wanted) {
  const int64_t buckets = arguments.rows * arguments.buckets_per_row;
  *wanted = buckets > 0 && (arguments.keys_out || arguments.indices_wide || arguments.indices_narrow);
  if (!*wanted) return cudaSuccess;
  const bool spare = arguments.spare_keys || (arguments.indices_wide && sizeof(U) <= 4);
  return spare && buckets <= 2147483647 ? cudaSuccess : cudaErrorInvalidValue;
}

template <class U>
cudaError_t launch_bucket_rows(const BucketArguments<U>& arguments, const DeviceTraits& traits, cudaStream_t stream) {
  bool wanted = false;
  const cudaError_t status = check_buckets(arguments, &wanted);
  if (status != cudaSuccess || !wanted) return status;
  if (arguments.bucket_capacity <= 1024) return launch_bucket_shape<U, 64, 16>(arguments, traits, stream);
  if (arguments.bucket_capacity <= 2048) return launch_bucket_shape<U, 128, 16>(arguments, traits, stream);
  if (arguments.bucket_capacity <= 4096) return launch_bucket_shape<U, 256, 16>(arguments, traits, stream);
  if (arguments.bucket_capacity <= 8192) return launch_bucket_shape<U, 512, 16>(arguments, traits, stream);
  return cudaErrorInvalidValue;
}

// Pulled buckets: few are left, so that each of them is a chain of steps with an SM for itself, which twice the threads make shorter. H200,
// one bucket: 5 us less.
template <class U>
cudaError_t launch_listed_buckets(const BucketArguments<U>& arguments, const DeviceTraits& traits, cudaStream_t stream) {
  bool wanted = false;
  const cudaError_t status = check_buckets(arguments, &wanted);
  if (status != cudaSuccess || !wanted) return status;
  if (arguments.bucket_capacity <= 4096) return launch_bucket_exact<U, 512, 8>(arguments, traits, stream);
  if constexpr (sizeof(U) == 4) {
    if (arguments.bucket_capacity <= 8192) return launch_bucket_exact<U, 1024, 8>(arguments, traits, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace gpusort
