// Radix passes over 8-bit keys with their indices.
#include "pass_launch.cuh"

namespace gpusort {

template <>
cudaError_t launch_pass<uint8_t, true>(PassKind kind, TileClass tile_class, const PassArguments<uint8_t>& arguments, int grid,
                                       cudaStream_t stream) {
  return launch_pass_of<uint8_t, true>(kind, tile_class, arguments, grid, stream);
}

}  // namespace gpusort
