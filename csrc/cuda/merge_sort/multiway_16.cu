// Instantiations of multiway_launch.cuh for 16-bit keys.
#include "multiway_launch.cuh"

namespace gpusort {

template cudaError_t launch_multiway_stage(const MultiwayArguments<uint16_t, uint32_t>&, const MultiwayStage&, cudaStream_t);
template cudaError_t launch_multiway_stage(const MultiwayArguments<uint16_t, uint64_t>&, const MultiwayStage&, cudaStream_t);

}  // namespace gpusort
