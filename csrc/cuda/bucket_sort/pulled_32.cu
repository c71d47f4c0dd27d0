// The bucket sort whose buckets pull their keys from ordered tiles, of 32-bit keys.
#include "pulled_run.cuh"

namespace gpusort {

template <>
cudaError_t launch_pulled_rows<uint32_t>(const SortProblem& problem, const PulledBucketsPlan& plan, void* workspace, cudaStream_t stream) {
  return launch_pulled_of<uint32_t>(problem, plan, workspace, stream);
}

}  // namespace gpusort
