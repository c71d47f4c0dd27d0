// Instantiations of wide_launch.cuh for 16-bit keys.
#include "wide_launch.cuh"

namespace gpusort {

template cudaError_t launch_wide_stage(const WideMergeArguments<uint16_t>&, const WideMergeStage&, char*, char*, cudaStream_t);

}  // namespace gpusort
