// Entry of the bucket sort with its partition in one launch: by key width.
#include "one_launch.h"

#include "one_launch_arguments.h"

namespace gpusort {

cudaError_t launch_one_launch_sort(const SortProblem& problem, const OneLaunchPlan& plan, void* workspace, cudaStream_t stream) {
  if (problem.numel() == 0) return cudaSuccess;
  if (!plan.possible) return cudaErrorInvalidValue;
  return problem.key.bytes == 8 ? launch_one_launch_rows<uint64_t>(problem, plan, workspace, stream)
                                : launch_one_launch_rows<uint32_t>(problem, plan, workspace, stream);
}

}  // namespace gpusort
