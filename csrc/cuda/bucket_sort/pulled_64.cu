// The bucket sort whose buckets pull their keys from ordered tiles, of 64-bit keys.
#include "pulled_run.cuh"

namespace gpusort {

template <>
cudaError_t launch_pulled_rows<uint64_t>(const SortProblem& problem, const PulledBucketsPlan& plan, void* workspace, cudaStream_t stream) {
  return launch_pulled_of<uint64_t>(problem, plan, workspace, stream);
}

}  // namespace gpusort
