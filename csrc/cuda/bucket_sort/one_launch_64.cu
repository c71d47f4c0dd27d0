// The bucket sort with its partition in one launch, of 64-bit keys.
#include "one_launch_run.cuh"

namespace gpusort {

template <>
cudaError_t launch_one_launch_rows<uint64_t>(const SortProblem& problem, const OneLaunchPlan& plan, void* workspace, cudaStream_t stream) {
  return launch_one_launch_of<uint64_t>(problem, plan, workspace, stream);
}

}  // namespace gpusort
