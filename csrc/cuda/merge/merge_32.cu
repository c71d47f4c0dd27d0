// Merges of 32-bit keys.
#include "merge_launch.cuh"

namespace gpusort {

template cudaError_t launch_merge_of_width<uint32_t>(const MergeProblem&, const MergePlan&, void*, cudaStream_t);

}  // namespace gpusort
