// Counts all digits of all rows in one read of the keys, and finds out which digits are constant and whether the rows are sorted.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "../../core/key_codec.h"
#include "../../core/key_order.h"

namespace gpusort {

struct RadixControl;

// Where all keys differ in their low byte alone: low_bytes.h. The tables as those of byte_sort.cu.
struct LowByteTables {
  uint8_t* bytes = nullptr;  // null: not asked for
  uint32_t* tile_tables = nullptr;
  uint32_t* group_tables = nullptr;
  uint32_t* bins = nullptr;
  uint32_t tile_items = 0;
  uint32_t tiles = 0;
  uint32_t tiles_per_group = 0;
  uint32_t groups = 0;
};

template <class Key>
struct HistogramArguments {
  KeyOrder<Key> order;
  KeyCodec<Key> codec;  // of this order
  const Key* keys = nullptr;
  RadixControl* control = nullptr;
  void* bins = nullptr;          // [rows][passes][256] counters, zeroed: 32-bit, or 64-bit for wide sorts
  void* look_back = nullptr;     // the first pass's table, cleared here
  uint64_t look_back_bytes = 0;  // a multiple of 16
  LowByteTables low_bytes;
  uint64_t length = 0;
  uint32_t rows = 1;
  uint32_t chunk = 0;  // keys of a row taken at a time
  uint64_t chunks_per_row = 0;
  int passes = 0;
  int begin_bit = 0;
  int window_bits = 0;      // end_bit - begin_bit, above 0
  bool previewed = false;   // 32- and 64-bit keys, whole ones, one row of more than 1024: see digit_preview.h
  bool codes_meet = false;  // floats and bool: fill RadixControl::other_patterns
};

template <class Key>
cudaError_t launch_digit_histogram(const HistogramArguments<Key>& arguments, bool wide, int grid, cudaStream_t stream);

}  // namespace gpusort
