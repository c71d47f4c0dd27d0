// Fills the arguments and launches the instantiation of a plan's shape, cooperatively: the driver sees to it that all blocks are resident.
#pragma once

#include <atomic>

#include "../primitives/dependent_launch.cuh"
#include "../primitives/kernel_setup.h"
#include "grid_sort.h"
#include "grid_sort_kernel.cuh"

namespace gpusort {

template <class Word, int kThreads, int kItems, GridWords kWords>
cudaError_t launch_grid_sort_shape(GridSortArguments<Word> arguments, const GridSortPlan& plan, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  const auto kernel = grid_sort_kernel<Word, kThreads, kItems, kWords>;
  const cudaError_t status = allow_shared_memory(kernel, plan.shared_limit, prepared);
  if (status != cudaSuccess) return status;
  return launch_after_predecessor<grid_sort_kernel<Word, kThreads, kItems, kWords>>(
      arguments, {static_cast<unsigned>(plan.blocks), plan.threads, plan.shared_bytes, true, true}, stream);
}

// What holds the samples and the table: see GridSortPlan::in_results.
inline char* lent_memory(const SortProblem& problem, const GridSortPlan& plan, void* workspace) {
  if (!plan.in_results) return static_cast<char*>(workspace);
  const auto results = reinterpret_cast<uintptr_t>(problem.indices_out != nullptr ? problem.indices_out : problem.keys_out);
  return reinterpret_cast<char*>((results + kGridLentAlignment - 1) / kGridLentAlignment * kGridLentAlignment);
}

template <class Word>
void fill_grid_sort_arguments(const SortProblem& problem, const GridSortPlan& plan, void* workspace, GridSortArguments<Word>& arguments) {
  using Code = typename WordTraits<Word>::Code;
  char* bytes = static_cast<char*>(workspace);
  arguments.keys_in = problem.keys_in;
  arguments.keys_out = problem.keys_out;
  if (problem.index_bytes == 8) {
    arguments.indices_wide = static_cast<int64_t*>(problem.indices_out);
  } else {
    arguments.indices_narrow = static_cast<int32_t*>(problem.indices_out);
  }
  arguments.words = reinterpret_cast<GlobalWord<Word>*>(bytes);
  arguments.samples = reinterpret_cast<GlobalWord<Word>*>(lent_memory(problem, plan, workspace) + plan.samples_offset);
  arguments.splitters = reinterpret_cast<GlobalWord<Word>*>(bytes + plan.splitters_offset);
  const int shift = static_cast<int>(sizeof(Code) - problem.key.bytes) * 8;
  arguments.order = make_key_order<Code>(problem.key.kind, problem.descending, static_cast<Code>(problem.key.infinity << shift));
  arguments.key_bytes = problem.key.bytes;
  arguments.length = static_cast<int>(problem.length);
  arguments.tiles = static_cast<int>(problem.rows * plan.tiles_per_row);
  arguments.tiles_per_row = plan.tiles_per_row;
  arguments.tile_length = plan.tile_length;
  arguments.gap = plan.gap;
  arguments.samples_per_row = plan.samples_per_row;
  arguments.bucket_capacity = plan.bucket_capacity;
  arguments.piece_gap = plan.piece_gap;
  arguments.piece_samples = plan.piece_samples;
}

template <class Word>
cudaError_t launch_grid_sort_words(const SortProblem& problem, const GridSortPlan& plan, void* workspace, cudaStream_t stream) {
  using Code = typename WordTraits<Word>::Code;
  GridSortArguments<Word> arguments;
  fill_grid_sort_arguments(problem, plan, workspace, arguments);
  constexpr GridWords kShort = sizeof(Code) == 8 ? GridWords::kPacked : GridWords::kExact;
  if (plan.words == kShort) {
    if (plan.threads == 256 && plan.items == 1) return launch_grid_sort_shape<Word, 256, 1, kShort>(arguments, plan, stream);
    if (plan.threads == 256 && plan.items == 2) return launch_grid_sort_shape<Word, 256, 2, kShort>(arguments, plan, stream);
    if (plan.threads == 512 && plan.items == 2) return launch_grid_sort_shape<Word, 512, 2, kShort>(arguments, plan, stream);
    if (plan.threads == 512 && plan.items == 4) return launch_grid_sort_shape<Word, 512, 4, kShort>(arguments, plan, stream);
  } else if (plan.words == GridWords::kPacked && plan.threads == 512 && plan.items == 4) {
    return launch_grid_sort_shape<Word, 512, 4, GridWords::kPacked>(arguments, plan, stream);
  } else if (plan.words == GridWords::kPackedBuckets && plan.threads == 512 && plan.items == 2) {
    if constexpr (sizeof(Code) == 4) return launch_grid_sort_shape<Word, 512, 2, GridWords::kPackedBuckets>(arguments, plan, stream);
  }
  return cudaErrorInvalidValue;
}

// grid_sort_narrow.cu, grid_sort_wide.cu, grid_partition.cu: keys to 32 bits, 64-bit keys, 32-bit keys by partition.
cudaError_t launch_narrow_grid_sort(const SortProblem& problem, const GridSortPlan& plan, void* workspace, cudaStream_t stream);
cudaError_t launch_wide_grid_sort(const SortProblem& problem, const GridSortPlan& plan, void* workspace, cudaStream_t stream);
cudaError_t launch_grid_partition(const SortProblem& problem, const GridSortPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
