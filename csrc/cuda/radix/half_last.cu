// The last pass of the sort of 16-bit keys with indices (half_sort.h).
#include "half_pass.cuh"

namespace gpusort {
namespace {

template <int kThreads>
using LastTile = HalfTile<HalfStep::kHigh, kThreads, half_last_shape(kThreads).items>;

template <int kThreads>
__global__ void __launch_bounds__(kThreads, 1) half_last_kernel(const __grid_constant__ HalfArguments arguments) {
  start_after_predecessor();
  extern __shared__ __align__(1024) uint8_t staging[];
  if (half_mode(arguments) != HalfMode::kTwoPasses) return;
  HalfPass<LastTile<kThreads>> pass(arguments, shared_address(staging));
  pass.begin();
  pass.run();
}

}  // namespace

template <int kThreads>
cudaError_t launch_threads(const HalfArguments& arguments, int grid, cudaStream_t stream) {
  return launch_half_pass<half_last_kernel<kThreads>>(arguments, grid, kThreads, LastTile<kThreads>::kSharedBytes, stream);
}

cudaError_t launch_half_last(const HalfArguments& arguments, int threads, int grid, cudaStream_t stream) {
  return threads == 1024 ? launch_threads<1024>(arguments, grid, stream) : launch_threads<512>(arguments, grid, stream);
}

}  // namespace gpusort
