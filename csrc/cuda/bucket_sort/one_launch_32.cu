// The bucket sort with its partition in one launch, of 32-bit keys.
#include "one_launch_run.cuh"

namespace gpusort {

template <>
cudaError_t launch_one_launch_rows<uint32_t>(const SortProblem& problem, const OneLaunchPlan& plan, void* workspace, cudaStream_t stream) {
  return launch_one_launch_of<uint32_t>(problem, plan, workspace, stream);
}

}  // namespace gpusort
