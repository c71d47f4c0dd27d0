// Launches one wide merge stage for one key width; instantiated in wide_<bits>.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "wide_arguments.cuh"

namespace gpusort {

// `cuts`: stage.cuts_bytes, 256-byte aligned.
template <class U>
WideMergeArguments<U> make_wide_arguments(const WideMergeStage& stage, const KeyOrder<U>& order, int64_t rows, int64_t row_length,
                                          char* cuts) {
  WideMergeArguments<U> arguments;
  arguments.order = order;
  arguments.rows = rows;
  arguments.row_length = row_length;
  arguments.run_length = stage.run_length;
  arguments.groups = static_cast<uint32_t>(stage.groups);
  arguments.tiles_per_group = static_cast<uint32_t>(stage.tiles_per_group);
  arguments.ways = stage.ways;
  arguments.index_shift = 32 - ceil_log2(stage.run_length * stage.ways);
  arguments.step = static_cast<uint32_t>(stage.step);
  arguments.sample_run_length = static_cast<uint32_t>(stage.sample_run_length);
  arguments.sample_row_length = static_cast<uint32_t>(stage.sample_row_length);
  arguments.cuts = reinterpret_cast<uint32_t*>(cuts);
  arguments.bounds = reinterpret_cast<uint64_t*>(cuts + stage.bounds_offset);
  arguments.begins = reinterpret_cast<uint32_t*>(cuts + stage.begins_offset);
  arguments.lists = reinterpret_cast<uint32_t*>(cuts + stage.lists_offset);
  return arguments;
}

// `arguments` fit the stage, but for the samples. `samples`: two buffers of stage.samples_bytes; sample_cuts: what the narrow stages need.
// Both are free when the tiles are merged.
template <class U>
cudaError_t launch_wide_stage(const WideMergeArguments<U>& arguments, const WideMergeStage& stage, char* samples, char* sample_cuts,
                              cudaStream_t stream);

}  // namespace gpusort
