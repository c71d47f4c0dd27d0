// Launches the bucket sort whose buckets pull their keys from ordered tiles: splitters, tiles, buckets, and the kernels for what is left.
#pragma once

#include <atomic>

#include "../primitives/dependent_launch.cuh"
#include "../primitives/kernel_setup.h"
#include "many_samples.cuh"
#include "order_tiles.cuh"
#include "pulled_rows.cuh"

namespace gpusort {

template <auto kKernel, class Arguments>
cudaError_t launch_pulled_kernel(int64_t blocks, int threads, int shared_bytes, int shared_limit, const Arguments& arguments,
                                 const DeviceTraits& traits, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(kKernel, shared_limit, prepared);
  if (error != cudaSuccess) return error;
  return launch_after_predecessor<kKernel>(arguments, {static_cast<unsigned>(blocks), threads, shared_bytes, traits.compute_major >= 9},
                                           stream);
}

template <class U>
cudaError_t launch_splitters(const PulledArguments<U>& arguments, const PulledBucketsPlan& plan, cudaStream_t stream) {
  const int64_t rows = arguments.partition.rows;
  const int sample_bytes = plan.samples_per_row * static_cast<int>(sizeof(BucketCode<U>));
  constexpr int kMostFewBytes = 2 * kMostBucketSamples * static_cast<int>(sizeof(BucketCode<U>));
  if (plan.samples_per_row <= kMostBucketSamples) {
    const int rank_bytes = plan.sample_blocks > 1 ? (plan.samples_per_row / plan.sample_blocks + 1) * 4 : 0;
    return launch_pulled_kernel<choose_splitters_kernel<U>>(rows * plan.sample_blocks, kSplitterThreads, sample_bytes + rank_bytes,
                                                            kMostFewBytes, arguments.partition, plan.device, stream);
  }
  const cudaError_t error = launch_pulled_kernel<sort_sample_runs_kernel<U>>(rows * (plan.samples_per_row / kSampleRun), kRunThreads, 0, 0,
                                                                             arguments, plan.device, stream);
  if (error != cudaSuccess) return error;
  return launch_pulled_kernel<rank_sample_runs_kernel<U>>(rows * plan.sample_blocks, kRankThreads, sample_bytes, plan.sample_shared_limit,
                                                          arguments, plan.device, stream);
}

template <class U, int kThreads, int kItems>
cudaError_t launch_pulled_shape(const PulledArguments<U>& arguments, const PulledBucketsPlan& plan, cudaStream_t stream) {
  const BucketArguments<U>& buckets = arguments.buckets;
  constexpr int kBytes = bucket_shared_bytes(sizeof(U), kThreads, kItems);
  const int64_t blocks = buckets.rows * buckets.buckets_per_row;
  const cudaError_t error = plan.indexed() ? launch_pulled_kernel<pulled_rows_kernel<U, kThreads, kItems, true>>(
                                                 blocks, kThreads, kBytes, kBytes, arguments, plan.device, stream)
                                           : launch_pulled_kernel<pulled_rows_kernel<U, kThreads, kItems, false>>(
                                                 blocks, kThreads, kBytes, kBytes, arguments, plan.device, stream);
  return error != cudaSuccess ? error : launch_listed_buckets(buckets, plan.device, stream);
}

template <class U>
cudaError_t launch_pulled_of(const SortProblem& problem, const PulledBucketsPlan& plan, void* workspace, cudaStream_t stream) {
  constexpr int kItems = pulled_shapes::items_of(sizeof(U));
  const PulledArguments<U> arguments = make_pulled_arguments<U>(problem, plan, workspace);
  cudaError_t error = launch_splitters(arguments, plan, stream);
  if (error != cudaSuccess) return error;
  const int64_t tiles = problem.rows * plan.tiles_per_row;
  error = launch_pulled_kernel<order_tiles_kernel<U, kItems>>(tiles, kPartitionThreads, plan.tile_shared_bytes, plan.shared_limit,
                                                              arguments, plan.device, stream);
  if (error != cudaSuccess) return error;
  if (plan.bucket_capacity == 4096) return launch_pulled_shape<U, 256, 16>(arguments, plan, stream);
  if constexpr (sizeof(U) == 4) {
    if (plan.bucket_capacity == 8192) return launch_pulled_shape<U, 512, 16>(arguments, plan, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace gpusort
