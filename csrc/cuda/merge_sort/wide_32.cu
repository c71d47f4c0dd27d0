// Instantiations of wide_launch.cuh for 32-bit keys.
#include "wide_launch.cuh"

namespace gpusort {

template cudaError_t launch_wide_stage(const WideMergeArguments<uint32_t>&, const WideMergeStage&, char*, char*, cudaStream_t);

}  // namespace gpusort
