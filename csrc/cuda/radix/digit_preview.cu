// See digit_preview.h.
#include "digit_preview.h"

#include <cuda_runtime.h>

#include <atomic>

#include "../primitives/kernel_setup.h"
#include "digit_counter.cuh"
#include "low_byte_counter.cuh"
#include "radix_control.cuh"

namespace gpusort {
namespace {

// What 1024 keys, the keys after them, and each other promise. All threads call; all blocks get the same answer.
template <class Key>
__device__ __forceinline__ Preview look_at_keys(const HistogramArguments<Key>& arguments) {
  const uint64_t stride = arguments.length / kHistogramThreads;
  const uint64_t position = threadIdx.x * stride;
  const Key reference = arguments.keys[0], key = arguments.keys[position], next = arguments.keys[position + 1];
  const Key far = arguments.keys[min(position + stride, arguments.length - 1)];
  const auto code = arguments.codec.code(next);
  const bool unsorted = arguments.codec.code(key) > code || code > arguments.codec.code(far);
  if (__syncthreads_or(unsorted) == 0) return Preview::kSorted;
  if (arguments.low_bytes.bytes != nullptr) {
    const Key live = (key ^ reference) | (next ^ reference) | (far ^ reference);
    if (__syncthreads_or(live >> 8 != 0) == 0) return Preview::kLowBytes;
  }
  if constexpr (sizeof(Key) == 8) {
    const bool differ = ((key ^ reference) | (next ^ reference)) >> 32 != 0;
    if (!arguments.codes_meet && __syncthreads_or(differ) == 0) return Preview::kLowWords;
  }
  return Preview::kNothing;
}

template <class Key>
constexpr int kCounterBytes = sizeof(Key) == 8 ? CounterLayout<Key, 4>::kWords * 4 : kLowByteCounterBytes;

template <class Key, class Count>
__global__ __launch_bounds__(kHistogramThreads, 1) void digit_preview_kernel(const __grid_constant__ HistogramArguments<Key> arguments) {
  extern __shared__ __align__(16) uint32_t counters[];
  __shared__ uint32_t report_words[4];
  if (arguments.control->called_off != 0) return;
  const Preview preview = look_at_keys(arguments);
  if (blockIdx.x == 0 && threadIdx.x == 0) arguments.control->preview = static_cast<uint32_t>(preview);
  if (preview == Preview::kNothing) return;
  if (threadIdx.x < 4) report_words[threadIdx.x] = 0;
  if (preview == Preview::kSorted) {
    __syncthreads();
    count_digits<Key, Count, true, false, 0>(arguments, counters, report_words);
    return;
  }
  if (preview == Preview::kLowBytes) {
    LowByteCounter<Key, kHistogramThreads>(arguments, counters).run();
    return;
  }
  if constexpr (sizeof(Key) == 8) {
    const uint4 nothing = make_uint4(0, 0, 0, 0);
    for (int i = threadIdx.x; i < CounterLayout<Key, 4>::kWords / 4; i += kHistogramThreads)
      reinterpret_cast<uint4*>(counters)[i] = nothing;
    const uint64_t clear_stride = static_cast<uint64_t>(gridDim.x) * kHistogramThreads;
    uint64_t i = static_cast<uint64_t>(blockIdx.x) * kHistogramThreads + threadIdx.x;
    for (; i < arguments.look_back_bytes / 16; i += clear_stride) static_cast<uint4*>(arguments.look_back)[i] = nothing;
    __syncthreads();
    count_digits<Key, Count, true, false, 4>(arguments, counters, report_words);
  }
}

template <class Key, class Count>
cudaError_t launch(const HistogramArguments<Key>& arguments, int grid, cudaStream_t stream) {
  const int shared_bytes = sizeof(Key) == 8 || arguments.low_bytes.bytes != nullptr ? kCounterBytes<Key> : 0;
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(digit_preview_kernel<Key, Count>, kCounterBytes<Key>, prepared);
  if (error != cudaSuccess) return error;
  digit_preview_kernel<Key, Count><<<grid, kHistogramThreads, shared_bytes, stream>>>(arguments);
  return cudaGetLastError();
}

}  // namespace

template <class Key>
cudaError_t launch_digit_preview(const HistogramArguments<Key>& arguments, bool wide, int grid, cudaStream_t stream) {
  return wide ? launch<Key, unsigned long long>(arguments, grid, stream) : launch<Key, uint32_t>(arguments, grid, stream);
}

template cudaError_t launch_digit_preview(const HistogramArguments<uint32_t>&, bool, int, cudaStream_t);
template cudaError_t launch_digit_preview(const HistogramArguments<uint64_t>&, bool, int, cudaStream_t);

}  // namespace gpusort
