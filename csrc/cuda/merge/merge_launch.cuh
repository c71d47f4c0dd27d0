// Launches of the merge kernels for one key width. Instantiated once per width, in a file each, so that they compile side by side.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>

#include "../primitives/dependent_launch.cuh"
#include "../primitives/kernel_setup.h"
#include "merge_basic.cuh"
#include "merge_circular.cuh"
#include "merge_cuts_kernel.cuh"
#include "merge_sequential.cuh"
#include "merge_tiled.cuh"
#include "merge_tiled_keys.cuh"
#include "merge_window_cuts.cuh"
#include "merge_windowed_keys.cuh"

namespace gpusort {

// Grids are a little larger than any multiple that matters and kernels loop, so that work counts of 64 bits are fine.
inline unsigned grid_blocks(int64_t wanted) {
  return static_cast<unsigned>(wanted < (int64_t{1} << 30) ? wanted : int64_t{1} << 30);
}

template <auto kKernel, class U>
cudaError_t launch_pieces(const MergeArguments<U>& m, int threads, size_t shared_bytes, bool dependent, cudaStream_t stream) {
  if (shared_bytes > 48 * 1024) {
    const cudaError_t error = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (error != cudaSuccess) return error;
  }
  return launch_after_predecessor<kKernel>(m, {grid_blocks(m.rows * m.pieces_per_row), threads, static_cast<int>(shared_bytes), dependent},
                                           stream);
}

template <class U, int kThreads, int kItems>
cudaError_t launch_tiled(const MergeArguments<U>& m, bool dependent, cudaStream_t stream) {
  return launch_pieces<merge_tiled_kernel<U, kThreads, kItems>>(m, kThreads, TiledMerge<U, kThreads, kItems>::kSharedBytes, dependent,
                                                                stream);
}

template <class U, int kThreads, int kItems,
          int kBlocks = keys_blocks_per_multiprocessor(MergeTile{kThreads, kItems, 0}, static_cast<int>(sizeof(U)))>
cudaError_t launch_tiled_keys(const MergeArguments<U>& m, bool dependent, cudaStream_t stream) {
  constexpr size_t kSharedBytes = PlainTile<U, kThreads, kItems>::kBytes;
  if constexpr (finds_own_pieces(MergeTile{kThreads, kItems, 0}, sizeof(U))) {
    if (m.cuts != nullptr) {
      return launch_pieces<merge_tiled_keys_kernel<U, kThreads, kItems, kBlocks, true>>(m, kThreads, kSharedBytes, dependent, stream);
    }
  }
  return launch_pieces<merge_tiled_keys_kernel<U, kThreads, kItems, kBlocks, false>>(m, kThreads, kSharedBytes, dependent, stream);
}

// Of the windowed tiles, the one that the plan has chosen.
template <class U, int kSize = 0>
cudaError_t launch_windowed_keys(const MergeArguments<U>& m, const MergePlan& plan, cudaStream_t stream) {
  if constexpr (kSize == windowed_tiles(sizeof(U))) {
    return cudaErrorInvalidValue;
  } else {
    constexpr MergeTile kTile = windowed_tile(sizeof(U), kSize);
    if (plan.threads != kTile.threads || plan.outputs_per_thread != kTile.outputs_per_thread) {
      return launch_windowed_keys<U, kSize + 1>(m, plan, stream);
    }
    using Tile = WindowedTile<U, kTile.threads, kTile.outputs_per_thread>;
    constexpr auto kKernel = merge_windowed_keys_kernel<U, kTile.threads, kTile.outputs_per_thread>;
    const int bytes = Tile::bytes(m.reach);
    if (bytes > 40 * 1024) {  // together with what the kernel declares, more than is there unasked
      // The attribute is the kernel's and not the launch's: one value for all lengths, since other threads launch it too.
      static std::atomic<uint64_t> prepared{0};
      const cudaError_t error = allow_shared_memory(kKernel, Tile::bytes(Tile::kMostReach), prepared);
      if (error != cudaSuccess) return error;
    }
    const unsigned blocks = static_cast<unsigned>(m.rows * m.pieces_per_row);
    return launch_after_predecessor<kKernel>(m, {blocks, Tile::kAllThreads, bytes, plan.dependent_launch}, stream);
  }
}

template <class U, int kThreads, int kItems, int kRing>
cudaError_t launch_circular(const MergeArguments<U>& m, cudaStream_t stream) {
  using Shape = CircularMerge<U, kThreads, kItems, kRing>;
  return m.wants_positions()
             ? launch_pieces<merge_circular_kernel<U, kThreads, kItems, kRing, true>>(m, kThreads, Shape::shared_bytes(true), false, stream)
             : launch_pieces<merge_circular_kernel<U, kThreads, kItems, kRing, false>>(m, kThreads, Shape::shared_bytes(false), false,
                                                                                       stream);
}

template <class U>
cudaError_t launch_cuts(const MergeArguments<U>& m, bool dependent, cudaStream_t stream) {
  const auto blocks = [&](int group) { return grid_blocks(m.rows * ((m.pieces_per_row - m.own_pieces + group - 1) / group)); };
  if constexpr (sizeof(U) <= 2) {
    if (m.reach > 0)
      return launch_after_predecessor<merge_window_cuts_kernel<U>>(m, {blocks(kWindowCutGroup), kWindowCutThreads, 0, dependent}, stream);
    if (m.rows * m.pieces_per_row <= kFewCuts) {
      return launch_after_predecessor<merge_few_cuts_kernel<U>>(m, {blocks(kFewCutGroup), kCutThreads, 0, dependent}, stream);
    }
  }
  return launch_after_predecessor<merge_cuts_kernel<U>>(m, {blocks(kCutGroup), kCutThreads, 0, dependent}, stream);
}

template <class U>
cudaError_t launch_merge_of_width(const MergeProblem& problem, const MergePlan& plan, void* workspace, cudaStream_t stream) {
  constexpr int kBytes = sizeof(U);
  constexpr MergeTile kLarge = large_tile(kBytes), kSmall = small_tile(kBytes), kRing = ring_tile(kBytes);
  constexpr MergeTile kLargeKeys = large_keys_tile(kBytes), kMiddleKeys = middle_keys_tile(kBytes), kSmallKeys = small_keys_tile(kBytes);
  const MergeArguments<U> m = make_merge_arguments<U>(problem, plan, workspace);
  if (plan.cuts_in_workspace) {
    const cudaError_t error = launch_cuts(m, plan.dependent_launch, stream);
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

  const auto has = [&](const MergeTile& tile) {
    return plan.threads == tile.threads && plan.outputs_per_thread == tile.outputs_per_thread;
  };
  if (m.wants_positions()) {
    if (has(kLarge)) return launch_tiled<U, kLarge.threads, kLarge.outputs_per_thread>(m, plan.dependent_launch, stream);
    if (has(kSmall)) return launch_tiled<U, kSmall.threads, kSmall.outputs_per_thread>(m, plan.dependent_launch, stream);
  } else {
    const bool dependent = plan.dependent_launch;
    if (plan.reach > 0 && !plan.cuts_in_workspace) return launch_windowed_keys(m, plan, stream);
    if (has(kLargeKeys)) return launch_tiled_keys<U, kLargeKeys.threads, kLargeKeys.outputs_per_thread>(m, dependent, stream);
    if (has(kMiddleKeys)) return launch_tiled_keys<U, kMiddleKeys.threads, kMiddleKeys.outputs_per_thread>(m, dependent, stream);
    if (has(kSmallKeys)) return launch_tiled_keys<U, kSmallKeys.threads, kSmallKeys.outputs_per_thread>(m, dependent, stream);
  }
  return cudaErrorInvalidValue;  // a tile that plan_merge does not hand out
}

}  // namespace gpusort
