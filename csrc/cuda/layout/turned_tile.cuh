// Which part of a strided tensor a block turns: a tile of the length axis and of one row axis.
#pragma once

#include <cstdint>

#include "../../plan/row_layout.h"

namespace gpusort {

// The row axis that is turned against the length axis, and the rest of the row number.
struct TurnedAxis {
  int64_t size = 1;
  int64_t stride = 0;    // in the strided tensor
  int64_t row_step = 1;  // between its neighbours in row numbers
  int64_t size_tiles = 1;
  int64_t length_tiles = 1;
  int64_t tiles = 1;        // in all
  bool last_first = false;  // the order in which blocks take tiles
};

// A 64-bit division takes about a hundred instructions, as many as a thread's part of a tile.
__device__ __forceinline__ int64_t quotient(int64_t a, int64_t b) {
  return (a | b) >> 32 == 0 ? static_cast<uint32_t>(a) / static_cast<uint32_t>(b) : a / b;
}

struct TurnedTile {
  int64_t strided;  // where the tile begins, in elements
  int64_t packed;
  int64_t row_pitch;  // of turned neighbours, packed
  int lengths;
  int rows;
};

// Tiles that follow each other are neighbours where they are read: DRAM is read a page at a time, while the L2 cache gathers what is
// written. `number`: of the tile.
template <int kLengths, int kRows, bool kGather>
__device__ __forceinline__ TurnedTile find_turned_tile(const StridedRows& rows, const TurnedAxis& axis, int64_t number) {
  if (axis.last_first) number = axis.tiles - 1 - number;
  const int64_t fast_tiles = kGather ? axis.size_tiles : axis.length_tiles;
  const int64_t rest = quotient(number, fast_tiles), fast = number - rest * fast_tiles;
  const int64_t slow_tiles = kGather ? axis.length_tiles : axis.size_tiles;
  const int64_t others = quotient(rest, slow_tiles), slow = rest - others * slow_tiles;
  const int64_t outer = quotient(others, axis.row_step);
  const int64_t length_start = (kGather ? slow : fast) * kLengths;
  const int64_t axis_start = (kGather ? fast : slow) * kRows;
  const int64_t first_row = outer * axis.row_step * axis.size + (others - outer * axis.row_step);
  TurnedTile tile;
  tile.strided = rows.offset(first_row) + axis_start * axis.stride + length_start * rows.length_stride;
  tile.packed = (first_row + axis_start * axis.row_step) * rows.length + length_start;
  tile.row_pitch = axis.row_step * rows.length;
  tile.lengths = static_cast<int>(min(static_cast<int64_t>(kLengths), rows.length - length_start));
  tile.rows = static_cast<int>(min(static_cast<int64_t>(kRows), axis.size - axis_start));
  return tile;
}

}  // namespace gpusort
