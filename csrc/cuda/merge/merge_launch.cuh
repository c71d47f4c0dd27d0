// Launches of the merge kernels for one key width. Instantiated once per width, in a file each, so that they compile side by side.
#pragma once

#include <cuda_runtime_api.h>

#include "merge_basic.cuh"
#include "merge_circular.cuh"
#include "merge_sequential.cuh"
#include "merge_tiled.cuh"
#include "merge_tiled_keys.cuh"

namespace gpusort {

// Grids are a little larger than any multiple that matters and kernels loop, so that work counts of 64 bits are fine.
inline unsigned grid_blocks(int64_t wanted) {
  return static_cast<unsigned>(wanted < (int64_t{1} << 30) ? wanted : int64_t{1} << 30);
}

template <class U, class Kernel>
cudaError_t launch_with_shared(Kernel kernel, const MergeArguments<U>& m, int threads, size_t shared_bytes, cudaStream_t stream) {
  if (shared_bytes > 48 * 1024) {
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (error != cudaSuccess) return error;
  }
  kernel<<<grid_blocks(m.rows * m.pieces_per_row), threads, shared_bytes, stream>>>(m);
  return cudaGetLastError();
}

template <class U, int kThreads, int kItems>
cudaError_t launch_tiled(const MergeArguments<U>& m, cudaStream_t stream) {
  if (m.wants_positions()) {
    return launch_with_shared(merge_tiled_kernel<U, kThreads, kItems>, m, kThreads, TiledMerge<U, kThreads, kItems>::kSharedBytes, stream);
  }
  constexpr int kBlocks = 1024 / kThreads;
  return launch_with_shared(merge_tiled_keys_kernel<U, kThreads, kItems, kBlocks>, m, kThreads, PlainTile<U, kThreads, kItems>::kBytes,
                            stream);
}

template <class U, int kThreads, int kItems, int kRing>
cudaError_t launch_circular(const MergeArguments<U>& m, cudaStream_t stream) {
  using Shape = CircularMerge<U, kThreads, kItems, kRing>;
  return m.wants_positions()
             ? launch_with_shared(merge_circular_kernel<U, kThreads, kItems, kRing, true>, m, kThreads, Shape::shared_bytes(true), stream)
             : launch_with_shared(merge_circular_kernel<U, kThreads, kItems, kRing, false>, m, kThreads, Shape::shared_bytes(false),
                                  stream);
}

template <class U>
cudaError_t launch_cuts(const MergeArguments<U>& m, cudaStream_t stream) {
  const cudaError_t error = cudaMemsetAsync(m.contradictory, 0, sizeof(uint32_t), stream);
  if (error != cudaSuccess) return error;
  const int64_t cuts = m.rows * (m.pieces_per_row - 1);
  merge_cuts_kernel<U><<<grid_blocks((cuts + kCutThreads - 2) / (kCutThreads - 1)), kCutThreads, 0, stream>>>(m);
  return cudaGetLastError();
}

template <class U>
cudaError_t launch_merge_of_width(const MergeProblem& problem, const MergePlan& plan, void* workspace, cudaStream_t stream) {
  constexpr MergeTile kLarge = large_tile(sizeof(U)), kSmall = small_tile(sizeof(U)), kRing = ring_tile(sizeof(U));
  const MergeArguments<U> m = make_merge_arguments<U>(problem, plan, workspace);
  if (plan.cuts_in_workspace) {
    const cudaError_t error = launch_cuts(m, stream);
    if (error != cudaSuccess) return error;
  }
  if (plan.kernel == MergeKernel::kSequential) {
    merge_sequential_kernel<U><<<grid_blocks((m.rows + plan.threads - 1) / plan.threads), plan.threads, 0, stream>>>(m);
    return cudaGetLastError();
  }
  if (plan.kernel == MergeKernel::kBasic) {
    merge_basic_kernel<U><<<grid_blocks((m.rows * m.pieces_per_row + plan.threads - 1) / plan.threads), plan.threads, 0, stream>>>(m);
    return cudaGetLastError();
  }
  if (plan.kernel == MergeKernel::kCircular) return launch_circular<U, kRing.threads, kRing.outputs_per_thread, kRing.ring>(m, stream);

  if (plan.threads == kLarge.threads && plan.outputs_per_thread == kLarge.outputs_per_thread) {
    return launch_tiled<U, kLarge.threads, kLarge.outputs_per_thread>(m, stream);
  }
  if (plan.threads == kSmall.threads && plan.outputs_per_thread == kSmall.outputs_per_thread) {
    return launch_tiled<U, kSmall.threads, kSmall.outputs_per_thread>(m, stream);
  }
  return cudaErrorInvalidValue;  // a tile that plan_merge does not hand out
}

}  // namespace gpusort
