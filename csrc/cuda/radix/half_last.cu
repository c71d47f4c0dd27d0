// The last pass of the sort of 16-bit keys with indices (half_sort.h).
#include "half_pass.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = half_shape(HalfStep::kHigh).threads;

__global__ void __launch_bounds__(kThreads, 1) half_last_kernel(const __grid_constant__ HalfArguments arguments) {
  start_after_predecessor();
  extern __shared__ __align__(1024) uint8_t staging[];
  if (half_mode(arguments) != HalfMode::kTwoPasses) return;
  HalfPass<HalfTileOf<HalfStep::kHigh>>(arguments, shared_address(staging)).run();
}

}  // namespace

cudaError_t launch_half_last(const HalfArguments& arguments, int grid, cudaStream_t stream) {
  return launch_half_pass<half_last_kernel>(arguments, grid, kThreads, HalfTileOf<HalfStep::kHigh>::kSharedBytes, stream);
}

}  // namespace gpusort
