// The first pass of the sort of 16-bit keys with indices (half_sort.h). While the histogram ends, its blocks load and count a tile of the
// partition by the low byte, which is what most rows take.
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

// Ranks leave few registers: with a look-back of 8 words, 2^26 keys take 450 us on an H200 instead of 290.
template <bool kKeepsRanks, int kWidth = kKeepsRanks ? 4 : 8>
__global__ void __launch_bounds__(kThreads, 1) half_first_kernel(const __grid_constant__ HalfArguments arguments) {
  extern __shared__ __align__(1024) uint8_t staging[];
  HalfPass<HalfTileOf<HalfStep::kLow, kKeepsRanks>, kWidth> low(arguments, shared_address(staging));
  low.begin();  // keys were there before the histogram began, and tickets clear before it let this kernel start
  start_after_predecessor();
  switch (half_mode(arguments)) {
    case HalfMode::kCalledOff: return;
    case HalfMode::kCopy: copy_row(arguments); return;
    case HalfMode::kFewPatterns: {
      HalfPass<HalfTileOf<HalfStep::kPatterns>, kWidth> patterns(arguments, shared_address(staging));
      __syncthreads();  // all have read the words of low.begin()
      patterns.begin();
      patterns.run();
      return;
    }
    case HalfMode::kTwoPasses: low.run(); return;
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
