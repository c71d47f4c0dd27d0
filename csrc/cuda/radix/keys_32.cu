// Radix passes over 32-bit keys alone.
#include "pass_launch.cuh"

namespace gpusort {

template <>
cudaError_t launch_pass<uint32_t, false>(PassKind kind, TileClass tile_class, const PassArguments<uint32_t>& arguments, int grid,
                                         cudaStream_t stream) {
  return launch_pass_of<uint32_t, false>(kind, tile_class, arguments, grid, stream);
}

}  // namespace gpusort
