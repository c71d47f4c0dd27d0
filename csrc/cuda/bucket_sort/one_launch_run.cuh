// Launches the partition in one cooperative launch, then the kernels that sort the buckets.
#pragma once

#include <atomic>

#include "../primitives/dependent_launch.cuh"
#include "../primitives/kernel_setup.h"
#include "one_launch.cuh"

namespace gpusort {

template <auto kKernel, class U>
cudaError_t launch_one_launch_kernel(const OneLaunchArguments<U>& arguments, const OneLaunchPlan& plan, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(kKernel, plan.shared_limit, prepared);
  if (error != cudaSuccess) return error;
  const unsigned blocks = arguments.partition.rows * arguments.partition.tiles_per_row;
  return launch_after_predecessor<kKernel>(arguments, {blocks, kPartitionThreads, plan.shared_bytes, plan.device.compute_major >= 9, true},
                                           stream);
}

template <class U, int kItems>
cudaError_t launch_one_launch_items(const OneLaunchArguments<U>& arguments, const OneLaunchPlan& plan, cudaStream_t stream) {
  const cudaError_t error = launch_one_launch_kernel<one_launch_kernel<U, kItems>>(arguments, plan, stream);
  if (error != cudaSuccess) return error;
  return launch_bucket_rows(arguments.buckets, plan.device, stream);
}

template <class U>
cudaError_t launch_one_launch_of(const SortProblem& problem, const OneLaunchPlan& plan, void* workspace, cudaStream_t stream) {
  using namespace one_launch_shapes;
  const OneLaunchArguments<U> arguments = make_one_launch_arguments<U>(problem, plan, workspace);
  if (plan.items == kShortItems) return launch_one_launch_items<U, kShortItems>(arguments, plan, stream);
  if constexpr (sizeof(U) == 4) {
    if (plan.items == kLongItems) return launch_one_launch_items<U, kLongItems>(arguments, plan, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace gpusort
