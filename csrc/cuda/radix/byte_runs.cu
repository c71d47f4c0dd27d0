// See byte_runs.h.
//
// The bins of a row, summed up, say where each code's run ends. A thread writes 16 bytes at a time, nearly always of one run: it finds the
// run of its first byte by bisection of the 256 ends, and walks on where a run ends inside. Cost: one write of the keys.
#include "byte_runs.h"

#include <cuda_runtime.h>

#include "staged_record.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 256;
constexpr uint32_t kChunk = 16384;  // bytes of a row that a block writes at a time
static_assert(kThreads == kRadixBins, "one thread per bin");

// ends[b] = position after the run of code b in the row.
__device__ __forceinline__ void sum_bins(const uint32_t* bins, uint32_t* ends) {
  __shared__ uint32_t sums[kThreads / 32];
  const uint32_t thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
  uint32_t sum = bins[thread];
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += other;
  }
  __syncthreads();  // nobody reads the ends of the row before
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  for (uint32_t w = 0; w < warp; ++w) sum += sums[w];
  ends[thread] = sum;
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) byte_runs_kernel(const __grid_constant__ PassArguments<uint8_t> arguments) {
  __shared__ uint32_t ends[kRadixBins];
  __shared__ uint8_t bytes[kRadixBins];  // of the codes
  bytes[threadIdx.x] = bits_of_code(arguments.order, static_cast<uint8_t>(threadIdx.x));
  const uint32_t length = arguments.length;
  const uint64_t chunks_per_row = (static_cast<uint64_t>(length) + 15) / kChunk + 1;  // the row's first vector may begin before the row
  const uint64_t chunks = chunks_per_row * arguments.rows;
  uint64_t current = ~uint64_t{0};
  for (uint64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    const uint64_t row = chunk / chunks_per_row;
    if (row != current) sum_bins(arguments.bins + row * kRadixBins, ends);
    current = row;
    uint8_t* keys = arguments.keys_out + row * length;
    const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(keys) & 15);
    const int64_t chunk_first = static_cast<int64_t>((chunk - row * chunks_per_row) * kChunk) - misaligned;
#pragma unroll 1
    for (uint32_t vector = threadIdx.x; vector < kChunk / 16; vector += kThreads) {
      const int64_t first = chunk_first + vector * 16;
      if (first >= length) break;
      const uint32_t begin = static_cast<uint32_t>(max(first, int64_t{0}));
      const uint32_t end = static_cast<uint32_t>(min(first + 16, static_cast<int64_t>(length)));
      uint32_t code = 0;  // the first whose run ends after `begin`
#pragma unroll
      for (uint32_t step = kRadixBins / 2; step > 0; step /= 2) {
        if (ends[code + step - 1] <= begin) code += step;
      }
      if (end - begin == 16 && ends[code] >= end) {
        const uint32_t four = bytes[code] * 0x01010101u;
        *reinterpret_cast<uint4*>(keys + begin) = make_uint4(four, four, four, four);
        continue;
      }
#pragma unroll 1
      for (uint32_t i = begin; i < end; ++i) {
        while (ends[code] <= i) ++code;
        keys[i] = bytes[code];
      }
    }
  }
}

}  // namespace

cudaError_t launch_byte_runs(const PassArguments<uint8_t>& arguments, int blocks, cudaStream_t stream) {
  byte_runs_kernel<<<blocks, kThreads, 0, stream>>>(arguments);
  return cudaGetLastError();
}

}  // namespace gpusort
