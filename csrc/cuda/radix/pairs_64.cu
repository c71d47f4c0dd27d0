// Radix passes over 64-bit keys with their indices.
#include "pass_launch.cuh"

namespace gpusort {

template <>
cudaError_t launch_pass<uint64_t, true>(PassKind kind, TileClass tile_class, const PassArguments<uint64_t>& arguments, int grid,
                                        cudaStream_t stream) {
  return launch_pass_of<uint64_t, true>(kind, tile_class, arguments, grid, stream);
}

}  // namespace gpusort
