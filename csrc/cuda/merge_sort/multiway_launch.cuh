// The launches behind multiway_launch.h.
#pragma once

#include "multiway_cuts.cuh"
#include "multiway_launch.h"
#include "multiway_tile.cuh"

namespace gpusort {

template <class U, class Index>
cudaError_t launch_multiway_stage(const MultiwayArguments<U, Index>& arguments, const MultiwayStage& stage, cudaStream_t stream) {
  using Tile = MultiwayTile<U, Index>;
  if (stage.tiles >= int64_t{1} << 31) return cudaErrorInvalidValue;  // more than 2^41 records
  constexpr int kTilesPerBlock = kCutsThreads / 32;
  const unsigned cut_blocks = static_cast<unsigned>((stage.tiles + kTilesPerBlock - 1) / kTilesPerBlock);
  multiway_cuts_kernel<U, Index><<<cut_blocks, kCutsThreads, 0, stream>>>(arguments, stage.tiles);
  cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  if (arguments.contradictory != nullptr) {
    check_cuts_kernel<U, Index><<<cut_blocks, kCutsThreads, 0, stream>>>(arguments, stage.tiles);
    status = cudaGetLastError();
    if (status != cudaSuccess) return status;
  }
  constexpr size_t kMostBytes = Tile::shared_bytes(kMultiwayThreads);
  if (kMostBytes > 48 * 1024) {  // one value for every launch, so that concurrent callers agree
    status =
        cudaFuncSetAttribute(multiway_tile_kernel<U, Index>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kMostBytes));
    if (status != cudaSuccess) return status;
  }
  multiway_tile_kernel<U, Index>
      <<<static_cast<unsigned>(stage.tiles), stage.threads, Tile::shared_bytes(stage.threads), stream>>>(arguments);
  return cudaGetLastError();
}

}  // namespace gpusort
