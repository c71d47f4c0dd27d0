// See close_windows.h; how: window_closer.cuh.
#include "close_windows.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>

#include "../primitives/dependent_launch.cuh"
#include "../primitives/kernel_setup.h"
#include "window_closer.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 512;
constexpr int kRows = 8;  // of 32 records for each warp of a window
constexpr int kBlocksPerSm = 2;

template <class Index>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm) close_windows_kernel(const __grid_constant__ PassArguments<uint64_t> arguments) {
  start_after_predecessor();
  extern __shared__ __align__(16) uint8_t window[];
  using Closer = WindowCloser<Index, kThreads, kRows>;
  const uint32_t lowest = lowest_sorted_bit(arguments);
  if (lowest == 0) return;
  if (static_cast<SmallGroups>(word_of(arguments, offsetof(RadixControl, small_groups))) != SmallGroups::kByWindows) return;
  const uint32_t low_live = word_of(arguments, offsetof(RadixControl, live_bits));
  const uint64_t live = static_cast<uint64_t>(word_of(arguments, offsetof(RadixControl, live_bits) + 4)) << 32 | low_live;
  const uint32_t dead_bits = min(__clzll(static_cast<int64_t>(live & ((uint64_t{1} << lowest) - 1))), 63);
  const Closer closer{arguments, *reinterpret_cast<typename Closer::Shared*>(window), lowest, dead_bits, most_group_notes(arguments)};
  const uint32_t windows = (arguments.length - 1) / Closer::kWindow + 1;
#pragma unroll 1
  for (uint32_t number = blockIdx.x; number < windows; number += gridDim.x) closer.close_window(number * Closer::kWindow);
}

template <class Index>
cudaError_t launch(const PassArguments<uint64_t>& arguments, int sm_blocks, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(close_windows_kernel<Index>, sizeof(GroupWindow<kThreads, kRows>), prepared);
  if (error != cudaSuccess) return error;
  const uint32_t windows = (arguments.length - 1) / WindowCloser<Index, kThreads, kRows>::kWindow + 1;
  const uint32_t blocks = std::min(windows, static_cast<uint32_t>(sm_blocks * kBlocksPerSm));
  const LaunchShape shape = {blocks, kThreads, static_cast<int>(sizeof(GroupWindow<kThreads, kRows>)), arguments.dependent_launch()};
  return launch_after_predecessor<close_windows_kernel<Index>>(arguments, shape, stream);
}

}  // namespace

cudaError_t launch_close_windows(const PassArguments<uint64_t>& arguments, int sm_blocks, cudaStream_t stream) {
  if (arguments.indices_out == nullptr) return launch<NoIndex>(arguments, sm_blocks, stream);
  if (arguments.index_bytes == 4) return launch<uint32_t>(arguments, sm_blocks, stream);
  return launch<int64_t>(arguments, sm_blocks, stream);
}

}  // namespace gpusort
