// Launches the kernels that cut rows into buckets: splitters, counts, positions, partition.
#pragma once

#include <cuda_runtime_api.h>

#include "choose_splitters.cuh"
#include "count_buckets.cuh"
#include "partition.cuh"

namespace gpusort {

template <class Kernel, class U>
cudaError_t launch_partition_kernel(Kernel kernel, int64_t blocks, int threads, int shared_bytes, const PartitionArguments<U>& arguments,
                                    const BucketSortPlan& plan, cudaStream_t stream) {
  if (shared_bytes > 48 * 1024) {
    // Always the device's whole allowance: another thread may be between this call and its own launch.
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan.shared_limit);
    if (error != cudaSuccess) return error;
  }
  kernel<<<static_cast<unsigned>(blocks), threads, shared_bytes, stream>>>(arguments);
  return cudaGetLastError();
}

template <class U, int kItems>
cudaError_t launch_partition_items(const PartitionArguments<U>& arguments, const BucketSortPlan& plan, cudaStream_t stream) {
  const int64_t rows = arguments.rows, tiles = rows * arguments.tiles_per_row;
  const int sample_bytes = plan.samples_per_row * static_cast<int>(sizeof(BucketCode<U>));
  const int rank_bytes = plan.sample_blocks > 1 ? (plan.samples_per_row / plan.sample_blocks + 1) * 4 : 0;
  cudaError_t error = launch_partition_kernel(choose_splitters_kernel<U>, rows * plan.sample_blocks, kSplitterThreads,
                                              sample_bytes + rank_bytes, arguments, plan, stream);
  if (error != cudaSuccess) return error;
  error = launch_partition_kernel(count_buckets_kernel<U>, tiles, kPartitionThreads, 0, arguments, plan, stream);
  if (error != cudaSuccess) return error;
  error = launch_partition_kernel(scan_counts_kernel<U>, rows * ((arguments.buckets + 31) / 32), kScanThreads, 0, arguments, plan, stream);
  if (error != cudaSuccess) return error;
  const auto partition = arguments.indices_to != nullptr ? partition_kernel<U, true, kItems> : partition_kernel<U, false, kItems>;
  return launch_partition_kernel(partition, tiles, kPartitionThreads, plan.partition_shared_bytes, arguments, plan, stream);
}

template <class U>
cudaError_t launch_partition_of(const PartitionArguments<U>& arguments, const BucketSortPlan& plan, cudaStream_t stream) {
  constexpr int kShort = bucket_sort_shapes::items_of_tile(sizeof(U), true), kLong = bucket_sort_shapes::items_of_tile(sizeof(U), false);
  if (plan.items == kShort) return launch_partition_items<U, kShort>(arguments, plan, stream);
  if (plan.items == kLong) return launch_partition_items<U, kLong>(arguments, plan, stream);
  return cudaErrorInvalidValue;
}

}  // namespace gpusort
