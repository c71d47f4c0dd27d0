// The grid sort of 32-bit keys by partition.
#include "grid_partition_kernel.cuh"
#include "grid_sort_launch.cuh"

namespace gpusort {
namespace {

template <int kThreads, int kItems>
cudaError_t launch_shape(const GridPartitionArguments& arguments, const GridSortPlan& plan, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t status = allow_shared_memory(grid_partition_kernel<kThreads, kItems>, plan.shared_limit, prepared);
  if (status != cudaSuccess) return status;
  return launch_after_predecessor<grid_partition_kernel<kThreads, kItems>>(
      arguments, {static_cast<unsigned>(plan.blocks), plan.threads, plan.shared_bytes, true, true}, stream);
}

}  // namespace

cudaError_t launch_grid_partition(const SortProblem& problem, const GridSortPlan& plan, void* workspace, cudaStream_t stream) {
  GridPartitionArguments arguments;
  fill_grid_sort_arguments<uint64_t>(problem, plan, workspace, arguments);
  char* bytes = static_cast<char*>(workspace);
  arguments.table = reinterpret_cast<uint32_t*>(lent_memory(problem, plan, workspace) + plan.table_offset);
  arguments.overflow = reinterpret_cast<uint32_t*>(bytes + plan.overflow_offset);
  arguments.sample_step = plan.sample_step;
  if (plan.threads == 512 && plan.items == 1) return launch_shape<512, 1>(arguments, plan, stream);
  if (plan.threads == 512 && plan.items == 2) return launch_shape<512, 2>(arguments, plan, stream);
  if (plan.threads == 512 && plan.items == 4) return launch_shape<512, 4>(arguments, plan, stream);
  return cudaErrorInvalidValue;
}

}  // namespace gpusort
