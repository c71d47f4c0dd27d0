// See ambiguous_keys.h.
//
// The key is fetched from the input. Equal codes stand in the order of their indices, so these reads run through the input.
//
// Sorted keys that may be ambiguous are looked for in all of the output, except with 32-bit keys in few rows whose top digit was counted:
// only its bins of zero and of NaN are read there, which hold hardly any other float (denormals; infinity and the largest numbers). One NaN
// among 2^26 float32 costs 10 us, 130 where all are read (H200). Each key concerned is then read and written.
#include "ambiguous_keys.h"

#include <cuda_runtime.h>

#include "../primitives/dependent_launch.cuh"
#include "radix_control.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 512;

constexpr uint32_t kMaxRowsByBins = 8;  // their bins are cleared by one block

template <class Key>
__device__ __forceinline__ bool is_ambiguous(const KeyOrder<Key>& order, Key key) {
  const Key ordered = order.to_ordered(key);
  return (order.zero != 0 && ordered == order.zero) || ordered == order.clamp;
}

// Gives kAhead keys from position i on, `step` apart, the patterns of their keys if they are ambiguous. Loads do not wait for each other.
template <int kAhead, class Key>
__device__ __forceinline__ void mend_keys(const PassArguments<Key>& arguments, uint64_t i, uint64_t step) {
  const uint32_t* indices = static_cast<const uint32_t*>(arguments.indices_out);
  const uint64_t spacing = arguments.index_bytes / 4;
  Key keys[kAhead], original[kAhead];
  uint32_t index[kAhead];
#pragma unroll
  for (int k = 0; k < kAhead; ++k) original[k] = keys[k] = arguments.keys_out[i + k * step];
#pragma unroll
  for (int k = 0; k < kAhead; ++k) index[k] = is_ambiguous(arguments.order, keys[k]) ? indices[(i + k * step) * spacing] : 0;
#pragma unroll
  for (int k = 0; k < kAhead; ++k) {
    const uint64_t row_start = arguments.rows == 1 ? 0 : (i + k * step) / arguments.length * arguments.length;
    if (is_ambiguous(arguments.order, keys[k])) original[k] = arguments.keys_in[row_start + index[k]];
  }
#pragma unroll
  for (int k = 0; k < kAhead; ++k) {
    if (original[k] != keys[k]) arguments.keys_out[i + k * step] = original[k];
  }
}

// Positions [begin, end) of all rows. All threads of the grid call.
template <class Key>
__device__ __forceinline__ void mend_range(const PassArguments<Key>& arguments, uint64_t begin, uint64_t end) {
  constexpr int kAhead = 2;
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * kThreads;
  uint64_t i = begin + static_cast<uint64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (; i + (kAhead - 1) * step < end; i += kAhead * step) mend_keys<kAhead>(arguments, i, step);
  for (; i < end; i += step) mend_keys<1>(arguments, i, step);
}

// The same where most keys are ambiguous: a warp reads the first and the last key of each 128, and all only where these differ. Zeros of
// both signs as half of 2^26 float32: 40 us less than by mend_range (H200).
template <class Key>
__device__ __forceinline__ void mend_bin(const PassArguments<Key>& arguments, uint64_t row_start, uint64_t begin, uint64_t end) {
  constexpr int kRounds = 4;
  const uint32_t* indices = static_cast<const uint32_t*>(arguments.indices_out);
  const uint64_t spacing = arguments.index_bytes / 4;
  const uint32_t lane = threadIdx.x & 31;
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * (kThreads * kRounds);
  const uint64_t own = (static_cast<uint64_t>(blockIdx.x) * kThreads + threadIdx.x - lane) * kRounds;
  for (uint64_t first = begin + own; first < end; first += step) {
    const uint64_t last = min(first + 32 * kRounds, end) - 1;
    const Key key = arguments.keys_out[first];
    const bool same = key == arguments.keys_out[last];
    __syncwarp();  // before some lane mends one of them
    if (!same) {
      uint64_t i = first + lane;
      for (; i + 32 <= last; i += 64) mend_keys<2>(arguments, i, 32);
      if (i <= last) mend_keys<1>(arguments, i, 0);
    } else if (is_ambiguous(arguments.order, key)) {
      const uint64_t i = first + lane;
      uint32_t index[kRounds];
      Key original[kRounds];
#pragma unroll
      for (int k = 0; k < kRounds; ++k) index[k] = i + k * 32 <= last ? indices[(i + k * 32) * spacing] : 0;
#pragma unroll
      for (int k = 0; k < kRounds; ++k) original[k] = i + k * 32 <= last ? arguments.keys_in[row_start + index[k]] : key;
#pragma unroll
      for (int k = 0; k < kRounds; ++k) {
        if (original[k] != key) arguments.keys_out[i + k * 32] = original[k];
      }
    }
  }
}

// Where the codes of a top digit stand in a sorted row.
struct BinRange {
  uint32_t begin, items;
};

// Mends the ranges of zero and of NaN in a row, by the bins of the top digit; the whole row where it was not counted. All threads call.
template <class Key>
__device__ __forceinline__ void mend_row_by_bins(const PassArguments<Key>& arguments, uint32_t row) {
  __shared__ BinRange ranges[2];
  __shared__ uint32_t counted;
  const KeyOrder<Key>& order = arguments.order;
  const uint32_t shift = (arguments.passes - 1) * kRadixBits;
  const uint32_t zero_bin = order.code_of_ordered(order.zero) >> shift, nan_bin = order.code_of_ordered(order.clamp) >> shift;
  __syncthreads();
  if (threadIdx.x == 0) {
    ranges[0] = ranges[1] = BinRange{0, 0};
    counted = 0;
  }
  __syncthreads();
  if (threadIdx.x < kRadixBins) {
    const uint32_t bin = threadIdx.x;
    const uint32_t items = arguments.bins[((row * arguments.passes + arguments.passes - 1) * kRadixBins + bin) * arguments.spacing];
    atomicAdd(&counted, items);
    if (bin < zero_bin) atomicAdd(&ranges[0].begin, items);
    if (bin < nan_bin) atomicAdd(&ranges[1].begin, items);
    if (bin == zero_bin) ranges[0].items = items;
    if (bin == nan_bin) ranges[1].items = items;
  }
  __syncthreads();
  const uint64_t row_start = static_cast<uint64_t>(row) * arguments.length;
  if (counted != arguments.length) {
    mend_range(arguments, row_start, row_start + arguments.length);
  } else {
#pragma unroll 1
    for (const BinRange& range : ranges) {
      const uint64_t begin = row_start + range.begin, end = begin + range.items;
      // Small bins are read with more loads under way: 12 us less of 2^24 random bits.
      if (range.items > arguments.length / 8)
        mend_bin(arguments, row_start, begin, end);
      else
        mend_range(arguments, begin, end);
    }
  }
}

template <class Key>
__global__ void __launch_bounds__(kThreads, 4) ambiguous_keys_kernel(const __grid_constant__ PassArguments<Key> arguments) {
  start_after_predecessor();
  __shared__ bool last;
  RadixControl* control = arguments.control;
  const int spacing = arguments.spacing;
  if (*control_word(control, offsetof(RadixControl, called_off), spacing) != 0) return;
  const bool mend = arguments.codes_meet && *control_word(control, offsetof(RadixControl, other_patterns), spacing) != 0;
  const uint64_t total = static_cast<uint64_t>(arguments.rows) * arguments.length;
  uint32_t kept = kControlWords;  // until all blocks have read them
  if (mend) {
    if (sizeof(Key) == 4 && arguments.rows <= kMaxRowsByBins && !arguments.partial_window()) {
      for (uint32_t row = 0; row < arguments.rows; ++row) mend_row_by_bins(arguments, row);
      kept += arguments.rows * arguments.passes * kRadixBins;
    } else {
      mend_range(arguments, 0, total);
    }
  }
  if (arguments.borrowed_begin >= total) return;
  uint32_t* upper_halves = reinterpret_cast<uint32_t*>(control);
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * kThreads;
  for (uint64_t i = kept + static_cast<uint64_t>(blockIdx.x) * kThreads + threadIdx.x; i < total - arguments.borrowed_begin; i += step) {
    upper_halves[2 * i] = 0;
  }
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(control_word(control, offsetof(RadixControl, finished_blocks), spacing), 1u) + 1 == gridDim.x;
  __syncthreads();
  if (!last) return;
  for (uint32_t i = threadIdx.x; i < kept; i += kThreads) upper_halves[2 * i] = 0;
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
