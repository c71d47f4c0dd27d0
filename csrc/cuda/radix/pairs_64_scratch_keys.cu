// The last radix pass over 64-bit keys whose indices alone are wanted: keys that are sorted already are not copied.
#include "pass_launch.cuh"

namespace gpusort {

cudaError_t launch_last_pass_with_scratch_keys(TileClass tile_class, const PassArguments<uint64_t>& arguments, int grid,
                                               cudaStream_t stream) {
  return tile_class == TileClass::kMedium ? launch_policy<ScratchKeysPolicy<TileClass::kMedium>>(arguments, grid, stream)
                                          : launch_policy<ScratchKeysPolicy<TileClass::kLarge>>(arguments, grid, stream);
}

}  // namespace gpusort
