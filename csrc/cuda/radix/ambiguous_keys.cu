// See ambiguous_keys.h.
//
// The key is fetched from the input. Equal codes stand in the order of their indices, so these reads run through the input. Cost when there
// is something to do: one read of the sorted keys, and a read and a write of those concerned.
#include "ambiguous_keys.h"

#include <cuda_runtime.h>

#include "../primitives/dependent_launch.cuh"
#include "radix_control.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 512;

// Gives keys_out[i] the pattern of its key if it is ambiguous.
template <class Key>
__device__ __forceinline__ void mend_key(const PassArguments<Key>& arguments, uint64_t i) {
  const KeyOrder<Key>& order = arguments.order;
  const Key ordered = order.to_ordered(arguments.keys_out[i]);
  const bool is_zero = order.zero != 0 && ordered == order.zero;
  if (!is_zero && ordered != order.clamp) return;
  const uint64_t row_start = i / arguments.length * arguments.length;
  const uint32_t index = static_cast<const uint32_t*>(arguments.indices_out)[arguments.index_bytes == 8 ? 2 * i : i];
  arguments.keys_out[i] = arguments.keys_in[row_start + index];
}

template <class Key>
__global__ void __launch_bounds__(kThreads) ambiguous_keys_kernel(const __grid_constant__ PassArguments<Key> arguments) {
  start_after_predecessor();
  __shared__ bool last;
  RadixControl* control = arguments.control;
  const int spacing = arguments.spacing;
  const bool mend = arguments.codes_meet && *control_word(control, offsetof(RadixControl, other_patterns), spacing) != 0;
  const uint64_t total = static_cast<uint64_t>(arguments.rows) * arguments.length;
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * kThreads;
  const uint64_t first = static_cast<uint64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (mend) {
    for (uint64_t i = first; i < total; i += step) mend_key(arguments, i);
  }
  if (arguments.borrowed_begin >= total) return;
  uint32_t* upper_halves = reinterpret_cast<uint32_t*>(control);
  for (uint64_t i = kControlWords + first; i < total - arguments.borrowed_begin; i += step) upper_halves[2 * i] = 0;
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(control_word(control, offsetof(RadixControl, finished_blocks), spacing), 1u) + 1 == gridDim.x;
  __syncthreads();
  if (last && threadIdx.x < kControlWords) upper_halves[2 * threadIdx.x] = 0;
}

}  // namespace

template <class Key>
cudaError_t launch_ambiguous_keys(const PassArguments<Key>& arguments, int grid, cudaStream_t stream) {
  const LaunchShape shape = {static_cast<unsigned>(grid), kThreads, 0, arguments.dependent_launch()};
  return launch_after_predecessor<ambiguous_keys_kernel<Key>>(arguments, shape, stream);
}

template cudaError_t launch_ambiguous_keys(const PassArguments<uint8_t>&, int, cudaStream_t);
template cudaError_t launch_ambiguous_keys(const PassArguments<uint16_t>&, int, cudaStream_t);
template cudaError_t launch_ambiguous_keys(const PassArguments<uint32_t>&, int, cudaStream_t);
template cudaError_t launch_ambiguous_keys(const PassArguments<uint64_t>&, int, cudaStream_t);

}  // namespace gpusort
