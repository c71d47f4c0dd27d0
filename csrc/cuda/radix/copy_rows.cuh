// The sort of rows that are sorted already (or have no digit to sort by): the keys copied, the indices 0, 1, 2, ...
//
// 16 bytes at a time where addresses allow: so one block on an SM has enough loads in flight to keep up with memory.
#pragma once

#include <cstdint>

#include "borrowed_indices.cuh"

namespace gpusort {

// Keys, or vectors of them.
template <int kThreads, class Item>
__device__ __forceinline__ void copy_items(const Item* from, Item* to, uint32_t items) {
  constexpr int kBatch = 8;
  for (uint32_t first = threadIdx.x; first < items; first += kThreads * kBatch) {
    Item batch[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      if (first + k * kThreads < items) batch[k] = from[first + k * kThreads];
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      if (first + k * kThreads < items) to[first + k * kThreads] = batch[k];
    }
  }
}

// Writes first, first + 1, ... to `items` int64 indices, an even number of them, from a multiple of 16 bytes on.
template <int kThreads>
__device__ __forceinline__ void write_counting(int64_t* indices, uint32_t first, uint32_t items) {
#pragma unroll 8
  for (uint32_t pair = threadIdx.x; pair < items / 2; pair += kThreads) {
    const uint32_t index = first + pair * 2;
    reinterpret_cast<uint4*>(indices)[pair] = make_uint4(index, 0, index + 1, 0);
  }
}

template <int kThreads, int kTileItems, bool kKeysWanted, class Key>
__device__ __forceinline__ void copy_rows(const PassArguments<Key>& arguments) {
  const bool wide_indices = arguments.index_bytes == 8 && arguments.indices_out != nullptr;
  int32_t* narrow_indices = arguments.index_bytes == 4 ? static_cast<int32_t*>(arguments.indices_out) : nullptr;
  auto aligned = [](const void* pointer) { return (reinterpret_cast<uintptr_t>(pointer) & 15) == 0; };
  for (uint32_t tile = blockIdx.x; tile < arguments.tiles; tile += gridDim.x) {
    const uint32_t row = tile / arguments.tiles_per_row;
    const uint32_t first = (tile - row * arguments.tiles_per_row) * kTileItems;
    const uint64_t row_start = static_cast<uint64_t>(row) * arguments.length;
    const uint64_t start = row_start + first;
    const uint32_t items = min(arguments.length - first, static_cast<uint32_t>(kTileItems));
    const Key* keys_in = arguments.keys_in + start;
    Key* keys_out = arguments.keys_out == nullptr || !kKeysWanted ? nullptr : arguments.keys_out + start;
    if (keys_out != nullptr) {
      if (items * sizeof(Key) % 16 == 0 && aligned(keys_in) && aligned(keys_out)) {
        copy_items<kThreads>(reinterpret_cast<const uint4*>(keys_in), reinterpret_cast<uint4*>(keys_out), items * sizeof(Key) / 16);
      } else {
        copy_items<kThreads>(keys_in, keys_out, items);
      }
    }
    int64_t* wide_row = wide_indices ? static_cast<int64_t*>(arguments.indices_out) + row_start : nullptr;
    if (wide_indices && items % 2 == 0 && aligned(wide_row + first) && start + items <= arguments.borrowed_begin) {
      write_counting<kThreads>(wide_row + first, first, items);
      continue;
    }
    const uint32_t borrowed_begin = borrowed_begin_in_row(arguments, row_start);
    for (uint32_t i = first + threadIdx.x; i < first + items; i += kThreads) {
      if (wide_indices) store_wide_index(wide_row, i, borrowed_begin, i);
      if (narrow_indices != nullptr) narrow_indices[row_start + i] = static_cast<int32_t>(i);
    }
  }
}

}  // namespace gpusort
