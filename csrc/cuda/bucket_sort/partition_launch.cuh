// Launches the kernels that cut rows into buckets: splitters, counts, positions, partition.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>

#include "../primitives/dependent_launch.cuh"
#include "../primitives/kernel_setup.h"
#include "choose_splitters.cuh"
#include "count_buckets.cuh"
#include "partition.cuh"

namespace gpusort {

template <auto kKernel, class U>
cudaError_t launch_partition_kernel(int64_t blocks, int threads, int shared_bytes, const PartitionArguments<U>& arguments,
                                    const BucketSortPlan& plan, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  if (shared_bytes > 48 * 1024) {
    // Always the device's whole allowance: another thread may be between this call and its own launch.
    const cudaError_t error = allow_shared_memory(kKernel, plan.shared_limit, prepared);
    if (error != cudaSuccess) return error;
  }
  const bool dependent = plan.device.compute_major >= 9;
  return launch_after_predecessor<kKernel>(arguments, {static_cast<unsigned>(blocks), threads, shared_bytes, dependent}, stream);
}

template <class U, int kItems>
cudaError_t launch_partition_items(const PartitionArguments<U>& arguments, const BucketSortPlan& plan, cudaStream_t stream) {
  const int64_t rows = arguments.rows, tiles = rows * arguments.tiles_per_row, slices = rows * ((arguments.buckets + 31) / 32);
  const int sample_bytes = plan.samples_per_row * static_cast<int>(sizeof(BucketCode<U>));
  const int rank_bytes = plan.sample_blocks > 1 ? (plan.samples_per_row / plan.sample_blocks + 1) * 4 : 0;
  cudaError_t error = launch_partition_kernel<choose_splitters_kernel<U>>(rows * plan.sample_blocks, kSplitterThreads,
                                                                          sample_bytes + rank_bytes, arguments, plan, stream);
  if (error != cudaSuccess) return error;
  error = launch_partition_kernel<count_buckets_kernel<U>>(tiles, kPartitionThreads, 0, arguments, plan, stream);
  if (error != cudaSuccess) return error;
  error = launch_partition_kernel<scan_counts_kernel<U>>(slices, kScanThreads, 0, arguments, plan, stream);
  if (error != cudaSuccess) return error;
  const auto partition = arguments.indices_to != nullptr ? launch_partition_kernel<partition_kernel<U, true, kItems>, U>
                                                         : launch_partition_kernel<partition_kernel<U, false, kItems>, U>;
  return partition(tiles, kPartitionThreads, plan.partition_shared_bytes, arguments, plan, stream);
}

template <class U>
cudaError_t launch_partition_of(const PartitionArguments<U>& arguments, const BucketSortPlan& plan, cudaStream_t stream) {
  constexpr int kShort = bucket_sort_shapes::items_of_tile(sizeof(U), true), kLong = bucket_sort_shapes::items_of_tile(sizeof(U), false);
  if (plan.items == kShort) return launch_partition_items<U, kShort>(arguments, plan, stream);
  if (plan.items == kLong) return launch_partition_items<U, kLong>(arguments, plan, stream);
  return cudaErrorInvalidValue;
}

}  // namespace gpusort
