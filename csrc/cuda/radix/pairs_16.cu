// Radix passes over 16-bit keys with their indices.
#include "pass_launch.cuh"

namespace gpusort {

template <>
cudaError_t launch_pass<uint16_t, true>(PassKind kind, TileClass tile_class, const PassArguments<uint16_t>& arguments, int grid,
                                        cudaStream_t stream) {
  return launch_pass_of<uint16_t, true>(kind, tile_class, arguments, grid, stream);
}

}  // namespace gpusort
