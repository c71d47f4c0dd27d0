// The histogram read of the radix sort.
//
// A block takes a contiguous range of chunks, a chunk being a part of one row, and adds its counters to the row's bins in global memory
// when the row changes: rows share no counter, however many there are.
//
// How: digit_counter.cuh. Of long rows of 32- and 64-bit keys a first look may have spared this one all or half of its work:
// digit_preview.h. Where 64-bit keys will be sorted by digits of the high word alone (leading_digits.h), the others are not counted.
//
// The same read finds the bits in which the keys of a row differ from its first key (a digit with none is constant), and whether some key
// is smaller than its predecessor; a warp stops looking for that once it has found one.
#include <cuda_runtime.h>

#include <atomic>

#include "../primitives/kernel_setup.h"
#include "digit_counter.cuh"
#include "digit_histogram.h"
#include "digit_preview.h"
#include "radix_control.cuh"
#include "table_scan.cuh"

namespace gpusort {
namespace {

template <class Key, class Count>
__global__ __launch_bounds__(kHistogramThreads, 1) void digit_histogram_kernel(const __grid_constant__ HistogramArguments<Key> arguments) {
  extern __shared__ __align__(16) uint32_t counters[];
  __shared__ uint32_t report_words[4];
  if (arguments.control->called_off != 0) return;
  int first_bin = 0;
  bool high_word_alone = false;
  if constexpr (sizeof(Key) >= 4) {
    if (arguments.previewed) {
      const int counted = counted_by_preview(*arguments.control);
      if (counted < 0) {
        const LowByteTables& tables = arguments.low_bytes;
        static_assert(kTableScanBlocks == 256 / kScannedCodes, "the plan asks for as many blocks");
        if (blockIdx.x < kTableScanBlocks && sorted_by_low_bytes(arguments.control, 1))
          scan_tables<kHistogramThreads>(tables.group_tables, tables.groups, tables.bins, blockIdx.x);
        return;
      }
      first_bin = counted * kRadixBins;
    }
  }
  if constexpr (sizeof(Key) == 8) high_word_alone = high_word_counted_alone(arguments.control->sorted_from);
  const uint4 nothing = make_uint4(0, 0, 0, 0);
  for (int i = threadIdx.x; i < CounterLayout<Key>::kWords / 4; i += kHistogramThreads) reinterpret_cast<uint4*>(counters)[i] = nothing;
  if (threadIdx.x < 4) report_words[threadIdx.x] = 0;
  const uint64_t clear_stride = static_cast<uint64_t>(gridDim.x) * kHistogramThreads;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * kHistogramThreads + threadIdx.x; i < arguments.look_back_bytes / 16;
       i += clear_stride) {
    static_cast<uint4*>(arguments.look_back)[i] = nothing;
  }
  __syncthreads();
  if constexpr (sizeof(Key) == 8) {
    if (high_word_alone) {
      if (arguments.codes_meet)
        count_digits<Key, Count, true, true, 4, 4>(arguments, counters, report_words);
      else
        count_digits<Key, Count, true, false, 4, 4>(arguments, counters, report_words);
      return;
    }
  }
  if (arguments.window_bits < static_cast<int>(sizeof(Key) * 8)) {
    count_digits<Key, Count, false, true>(arguments, counters, report_words);
  } else if (arguments.codes_meet) {
    count_digits<Key, Count, true, true>(arguments, counters, report_words, first_bin);
  } else {
    count_digits<Key, Count, true, false>(arguments, counters, report_words, first_bin);
  }
}

template <class Key, class Count>
cudaError_t launch(const HistogramArguments<Key>& arguments, int grid, cudaStream_t stream) {
  constexpr int kSharedBytes = CounterLayout<Key>::kWords * 4;
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(digit_histogram_kernel<Key, Count>, kSharedBytes, prepared);
  if (error != cudaSuccess) return error;
  digit_histogram_kernel<Key, Count><<<grid, kHistogramThreads, kSharedBytes, stream>>>(arguments);
  return cudaGetLastError();
}

}  // namespace

template <class Key>
cudaError_t launch_digit_histogram(const HistogramArguments<Key>& arguments, bool wide, int grid, cudaStream_t stream) {
  if constexpr (sizeof(Key) >= 4) {
    if (arguments.previewed) {
      const cudaError_t error = launch_digit_preview(arguments, wide, grid, stream);
      if (error != cudaSuccess) return error;
    }
  }
  return wide ? launch<Key, unsigned long long>(arguments, grid, stream) : launch<Key, uint32_t>(arguments, grid, stream);
}

template cudaError_t launch_digit_histogram(const HistogramArguments<uint8_t>&, bool, int, cudaStream_t);
template cudaError_t launch_digit_histogram(const HistogramArguments<uint16_t>&, bool, int, cudaStream_t);
template cudaError_t launch_digit_histogram(const HistogramArguments<uint32_t>&, bool, int, cudaStream_t);
template cudaError_t launch_digit_histogram(const HistogramArguments<uint64_t>&, bool, int, cudaStream_t);

}  // namespace gpusort
