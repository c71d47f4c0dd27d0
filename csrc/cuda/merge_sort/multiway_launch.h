// Launches one multiway merge stage for one key width and index width; instantiated in multiway_<bits>.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/multiway_plan.h"
#include "multiway_arguments.cuh"

namespace gpusort {

// `arguments.runs` and `arguments.cuts` must fit the stage.
template <class U, class Index>
cudaError_t launch_multiway_stage(const MultiwayArguments<U, Index>& arguments, const MultiwayStage& stage, cudaStream_t stream);

template <class U, class Index>
MultiwayArguments<U, Index> make_multiway_arguments(const MultiwayStage& stage, const KeyOrder<U>& order, int64_t row_length) {
  MultiwayArguments<U, Index> arguments;
  arguments.order = order;
  arguments.runs.ways = stage.ways;
  arguments.runs.tile = stage.tile;
  arguments.runs.row_length = row_length;
  arguments.runs.runs = stage.runs;
  arguments.runs.groups = stage.groups;
  arguments.runs.run_length = stage.run_length;
  arguments.runs.tiles_per_group = stage.tiles_per_group;
  arguments.runs.stride = stage.stride;
  arguments.source_row_stride = row_length;
  return arguments;
}

// A record buffer in the workspace: codes, then indices.
template <class U, class Index>
RecordArray<U, Index> make_record_array(void* buffer, int64_t records) {
  using Format = RecordFormat<U, Index>;
  RecordArray<U, Index> array;
  char* const bytes = static_cast<char*>(buffer);
  if constexpr (Format::kPacked) {
    array.words = reinterpret_cast<uint64_t*>(bytes);
  } else if constexpr (sizeof(Index) > sizeof(U)) {  // the wider first, so that both are aligned
    array.indices = reinterpret_cast<Index*>(bytes);
    array.codes = reinterpret_cast<U*>(bytes + records * sizeof(Index));
  } else {
    array.codes = reinterpret_cast<U*>(bytes);
    array.indices = reinterpret_cast<Index*>(bytes + records * sizeof(U));
  }
  return array;
}

}  // namespace gpusort
