// Merges of 8-bit keys.
#include "merge_launch.cuh"

namespace gpusort {

template cudaError_t launch_merge_of_width<uint8_t>(const MergeProblem&, const MergePlan&, void*, cudaStream_t);

}  // namespace gpusort
