// R1: radix sort by single bits, three steps a pass: mask, exclusive scan, scatter.
//
// The split primitive of Blelloch ("Prefix sums and their applications", 1990); on GPUs Satish, Harris, Garland ("Designing efficient
// sorting algorithms for manycore GPUs", 2009). With Z[i] = how many of the keys before i have a zero in this bit,
//   a zero goes to Z[i], a one goes to zeros + (i - Z[i]),
// so zeros keep their order, ones keep theirs, and all zeros come first: a stable pass, and one pass per bit sorts.
// All rows share one scan over rows * length + 1 flags; inside a row, Z is the difference to the scan at the row's begin.
// Cost per pass and 32-bit key with index: 4 + 4 (mask) + 12 (scan) + 12 + 8 (scatter) = 40 bytes, the last 8 written to two streams.
// A 32-bit sort needs 32 passes: 1280 bytes a key, where the production sort moves about 70.
#include <cuda_runtime.h>

#include "../primitives/device_scan.cuh"
#include "radix_pass.cuh"
#include "radix_steps.h"

namespace gpusort {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ int64_t global_thread() {
  return int64_t{blockIdx.x} * kThreads + threadIdx.x;
}

// zero_flags has one item more than there are keys: after the scan it is the number of zeros in all.
template <class U, class Offset>
__global__ void __launch_bounds__(kThreads) mask_kernel(RadixPass<U> pass, Offset* zero_flags) {
  const int64_t keys = pass.rows * pass.length;
  const int64_t at = global_thread();
  if (at > keys) return;
  zero_flags[at] = at < keys && pass.digit(pass.load_key(at)) == 0 ? 1 : 0;
}

template <class U, class Offset>
__global__ void __launch_bounds__(kThreads) scatter_kernel(RadixPass<U> pass, const Offset* zeros_before) {
  const int64_t at = global_thread();
  if (at >= pass.rows * pass.length) return;
  const int64_t row_begin = pass.rows == 1 ? 0 : at / pass.length * pass.length;
  const int64_t position = at - row_begin;
  const Offset row_base = zeros_before[row_begin];
  const int64_t zeros = static_cast<int64_t>(zeros_before[row_begin + pass.length] - row_base);
  const int64_t zeros_here = static_cast<int64_t>(zeros_before[at] - row_base);
  const U key = pass.load_key(at);
  const int64_t target = row_begin + (pass.digit(key) == 0 ? zeros_here : zeros + (position - zeros_here));
  pass.store_key(key, target);
  if (pass.indices_out != nullptr) pass.store_index(pass.load_index(at, row_begin), target);
}

template <class U, class Offset>
cudaError_t sort_by_bits(const SortProblem& problem, const RadixStepsPlan& plan, void* workspace, cudaStream_t stream) {
  Offset* const flags = reinterpret_cast<Offset*>(static_cast<char*>(workspace) + plan.offsets);
  Offset* const totals = reinterpret_cast<Offset*>(static_cast<char*>(workspace) + plan.scan_totals);
  const int64_t keys = problem.numel();
  for (int number = 0; number < plan.passes; ++number) {
    const RadixPass<U> pass = make_radix_pass<U>(problem, plan, workspace, number);
    mask_kernel<U, Offset><<<static_cast<unsigned>(steps_ceil_div(keys + 1, kThreads)), kThreads, 0, stream>>>(pass, flags);
    if (cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
    if (cudaError_t error = launch_exclusive_scan(flags, keys + 1, totals, stream); error != cudaSuccess) return error;
    scatter_kernel<U, Offset><<<static_cast<unsigned>(steps_ceil_div(keys, kThreads)), kThreads, 0, stream>>>(pass, flags);
    if (cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

template <class U>
cudaError_t sort_width(const SortProblem& problem, const RadixStepsPlan& plan, void* workspace, cudaStream_t stream) {
  return plan.offset_bytes == 4 ? sort_by_bits<U, uint32_t>(problem, plan, workspace, stream)
                                : sort_by_bits<U, uint64_t>(problem, plan, workspace, stream);
}

}  // namespace

cudaError_t launch_radix_scan_scatter(const SortProblem& problem, const RadixStepsPlan& plan, void* workspace, cudaStream_t stream) {
  if (problem.numel() == 0) return cudaSuccess;
  switch (problem.key.bytes) {
    case 1: return sort_width<uint8_t>(problem, plan, workspace, stream);
    case 2: return sort_width<uint16_t>(problem, plan, workspace, stream);
    case 4: return sort_width<uint32_t>(problem, plan, workspace, stream);
    case 8: return sort_width<uint64_t>(problem, plan, workspace, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace gpusort
