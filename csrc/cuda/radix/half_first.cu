// The first pass of the sort of 16-bit keys with indices (half_sort.h).
#include "half_pass.cuh"

namespace gpusort {
namespace {

// Of the whole row, which is sorted already: the keys copied, the indices 0, 1, 2, ...
__device__ __forceinline__ void copy_row(const HalfArguments& arguments) {
  const uint32_t threads = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x;
  auto aligned = [](const void* pointer) { return (reinterpret_cast<uintptr_t>(pointer) & 15) == 0; };
  if (arguments.keys_out != nullptr) {
    constexpr uint32_t kPerVector = 8;
    uint32_t copied = 0;
    if (aligned(arguments.keys_in) && aligned(arguments.keys_out)) {
      copied = arguments.length / kPerVector * kPerVector;
#pragma unroll 4
      for (uint32_t i = thread; i < copied / kPerVector; i += threads)
        reinterpret_cast<uint4*>(arguments.keys_out)[i] = __ldcs(reinterpret_cast<const uint4*>(arguments.keys_in) + i);
    }
    for (uint64_t i = copied + uint64_t{thread}; i < arguments.length; i += threads) arguments.keys_out[i] = arguments.keys_in[i];
  }
  if (arguments.index_bytes == 8) {
    int64_t* indices = static_cast<int64_t*>(arguments.indices_out);
#pragma unroll 4
    for (uint32_t pair = thread; pair < arguments.length / 2; pair += threads)
      reinterpret_cast<uint4*>(indices)[pair] = make_uint4(pair * 2, 0, pair * 2 + 1, 0);
    if (thread == 0 && arguments.length % 2 != 0) indices[arguments.length - 1] = arguments.length - 1;
  } else {
    for (uint64_t i = thread; i < arguments.length; i += threads) static_cast<uint32_t*>(arguments.indices_out)[i] = i;
  }
}

constexpr int kThreads = half_shape(HalfStep::kLow).threads;
static_assert(kThreads == half_shape(HalfStep::kPatterns).threads, "of one kernel");

template <bool kKeepsRanks>
__global__ void __launch_bounds__(kThreads, 1) half_first_kernel(const __grid_constant__ HalfArguments arguments) {
  start_after_predecessor();
  extern __shared__ __align__(1024) uint8_t staging[];
  switch (half_mode(arguments)) {
    case HalfMode::kCalledOff: return;
    case HalfMode::kCopy: copy_row(arguments); return;
    case HalfMode::kFewPatterns: HalfPass<HalfTileOf<HalfStep::kPatterns>>(arguments, shared_address(staging)).run(); return;
    case HalfMode::kTwoPasses: HalfPass<HalfTileOf<HalfStep::kLow, kKeepsRanks>>(arguments, shared_address(staging)).run(); return;
  }
}

}  // namespace

cudaError_t launch_half_first(const HalfArguments& arguments, bool keeps_ranks, int grid, cudaStream_t stream) {
  constexpr int kLowBytes = HalfTileOf<HalfStep::kLow>::kSharedBytes, kPatternBytes = HalfTileOf<HalfStep::kPatterns>::kSharedBytes;
  constexpr int kSharedBytes = kLowBytes > kPatternBytes ? kLowBytes : kPatternBytes;
  return keeps_ranks ? launch_half_pass<half_first_kernel<true>>(arguments, grid, kThreads, kSharedBytes, stream)
                     : launch_half_pass<half_first_kernel<false>>(arguments, grid, kThreads, kSharedBytes, stream);
}

}  // namespace gpusort
