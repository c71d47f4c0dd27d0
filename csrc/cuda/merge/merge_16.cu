// Merges of 16-bit keys.
#include "merge_launch.cuh"

namespace gpusort {

template cudaError_t launch_merge_of_width<uint16_t>(const MergeProblem&, const MergePlan&, void*, cudaStream_t);

}  // namespace gpusort
