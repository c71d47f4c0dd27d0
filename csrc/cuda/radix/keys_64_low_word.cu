// First and last radix pass over 64-bit keys alone by their low words.
#include "pass_launch.cuh"

namespace gpusort {

template <>
cudaError_t launch_low_word_pass<false>(PassKind kind, TileClass tile_class, const PassArguments<uint32_t>& arguments, int grid,
                                        cudaStream_t stream) {
  return launch_low_word_pass_of<false>(kind, tile_class, arguments, grid, stream);
}

}  // namespace gpusort
