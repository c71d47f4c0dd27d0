// The sort of rows that are sorted already (or have no digit to sort by): the keys copied, the indices 0, 1, 2, ...
#pragma once

#include <cstdint>

#include "borrowed_indices.cuh"

namespace gpusort {

template <int kThreads, int kTileItems, class Key>
__device__ __forceinline__ void copy_rows(const PassArguments<Key>& arguments) {
  constexpr int kBatch = 8;
  static_assert(kTileItems % (kThreads * kBatch) == 0 || kTileItems % kThreads == 0, "tiles are whole multiples of the block");
  int64_t* wide_indices = arguments.index_bytes == 8 ? static_cast<int64_t*>(arguments.indices_out) : nullptr;
  int32_t* narrow_indices = arguments.index_bytes == 4 ? static_cast<int32_t*>(arguments.indices_out) : nullptr;
  for (uint32_t tile = blockIdx.x; tile < arguments.tiles; tile += gridDim.x) {
    const uint32_t row = tile / arguments.tiles_per_row;
    const uint32_t first = (tile - row * arguments.tiles_per_row) * kTileItems;
    const uint64_t row_start = static_cast<uint64_t>(row) * arguments.length;
    const uint32_t borrowed_begin = borrowed_begin_in_row(arguments, row_start);
    const uint32_t items = min(arguments.length - first, static_cast<uint32_t>(kTileItems));
    for (uint32_t place = threadIdx.x; place < items; place += kThreads * kBatch) {
      if (arguments.keys_out != nullptr) {
        Key keys[kBatch];
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
          if (place + k * kThreads < items) keys[k] = arguments.keys_in[row_start + first + place + k * kThreads];
        }
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
          if (place + k * kThreads < items) arguments.keys_out[row_start + first + place + k * kThreads] = keys[k];
        }
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const uint32_t index = first + place + k * kThreads;
        if (place + k * kThreads >= items) break;
        if (wide_indices != nullptr) store_wide_index(wide_indices + row_start, index, borrowed_begin, index);
        if (narrow_indices != nullptr) narrow_indices[row_start + index] = static_cast<int32_t>(index);
      }
    }
  }
}

}  // namespace gpusort
