// The launches behind wide_launch.h.
#pragma once

#include <algorithm>

#include "multiway_launch.h"
#include "wide_crowds.cuh"
#include "wide_cuts.cuh"
#include "wide_launch.h"
#include "wide_rest.cuh"

namespace gpusort {

// The samples of each group in order; `samples` has two buffers, the first of which holds them. Where they are then.
template <class U>
cudaError_t sort_samples(const WideMergeArguments<U>& m, const WideMergeStage& stage, char* samples, char* cuts, uint64_t*& sorted,
                         cudaStream_t stream) {
  cudaError_t status = cudaSuccess;
  uint64_t* const buffer[2] = {reinterpret_cast<uint64_t*>(samples), reinterpret_cast<uint64_t*>(samples + stage.samples_bytes)};
  for (int s = 0; s < stage.sample_stages.count && status == cudaSuccess; ++s) {
    const MultiwayStage& narrow = stage.sample_stages.stage[s];
    MultiwayArguments<U, uint32_t> arguments = make_multiway_arguments<U, uint32_t>(narrow, m.order, stage.sample_row_length);
    arguments.cuts = reinterpret_cast<int64_t*>(cuts);
    arguments.records_in.words = buffer[s % 2];
    arguments.records_out.words = buffer[(s + 1) % 2];
    status = launch_multiway_stage(arguments, narrow, stream);
  }
  sorted = buffer[stage.sample_stages.count % 2];
  return status;
}

template <class U, bool kFirst>
cudaError_t launch_wide_tiles(const WideMergeArguments<U>& m, const WideMergeStage& stage, cudaStream_t stream) {
  constexpr int kResidentBlocks = 264;  // two to each multiprocessor of an H200; listed tiles are dealt to them
  const int bytes = static_cast<int>(kWideTileBytes);
  cudaError_t status = cudaFuncSetAttribute(wide_tile_kernel<U, kFirst>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  status = cudaFuncSetAttribute(wide_crowds_kernel<U, kFirst>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  const unsigned tiles = static_cast<unsigned>(stage.tiles),
                 listed = static_cast<unsigned>(std::min<int64_t>(stage.tiles, kResidentBlocks));
  wide_tile_kernel<U, kFirst><<<tiles, kWideThreads, kWideTileBytes, stream>>>(m);
  status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  wide_crowds_kernel<U, kFirst><<<listed, kWideThreads, kWideTileBytes, stream>>>(m);
  status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  wide_rest_kernel<U, kFirst><<<4 * kResidentBlocks, kWideRestThreads, 0, stream>>>(m);
  return cudaGetLastError();
}

template <class U, bool kFirst>
cudaError_t launch_wide_stage_of(WideMergeArguments<U> m, const WideMergeStage& stage, char* samples, char* sample_cuts,
                                 cudaStream_t stream) {
  const int64_t sample_count = m.rows * m.sample_row_length, bounds = m.rows * m.groups * (m.tiles_per_group + 1);
  if (sample_count >= int64_t{1} << 31 || bounds >= int64_t{1} << 31) return cudaErrorInvalidValue;  // more than 2^37 records
  m.samples = reinterpret_cast<uint64_t*>(samples);
  const unsigned blocks = static_cast<unsigned>(std::min<int64_t>((sample_count + kSampleThreads - 1) / kSampleThreads, 1 << 20));
  wide_samples_kernel<U, kFirst><<<blocks, kSampleThreads, 0, stream>>>(m);
  cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  status = sort_samples(m, stage, samples, sample_cuts, m.samples, stream);
  if (status != cudaSuccess) return status;
  const int64_t chunks = m.rows * m.groups * ((int64_t{m.tiles_per_group} + 32) / 32);  // of 32 bounds
  const dim3 cut_blocks(static_cast<unsigned>(chunks), static_cast<unsigned>((m.ways + kWideCutsWarps - 1) / kWideCutsWarps));
  wide_cuts_kernel<U, kFirst><<<cut_blocks, kWideCutsThreads, 0, stream>>>(m);
  status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  return launch_wide_tiles<U, kFirst>(m, stage, stream);
}

template <class U>
cudaError_t launch_wide_stage(const WideMergeArguments<U>& arguments, const WideMergeStage& stage, char* samples, char* sample_cuts,
                              cudaStream_t stream) {
  return arguments.keys != nullptr ? launch_wide_stage_of<U, true>(arguments, stage, samples, sample_cuts, stream)
                                   : launch_wide_stage_of<U, false>(arguments, stage, samples, sample_cuts, stream);
}

}  // namespace gpusort
