// Sorting or finishing tiles on chip: the part of the bitonic sort that the sample sort uses too.
//
// A tile is a power of two of places within one row, at most 64 KB of pairs. Rows are `length` long and lie one after the other, or begin
// and end where a device array says (the buckets of a sample sort, whose sizes only the device knows; `length` is then their upper bound).
#pragma once

#include <cuda_runtime.h>

#include "code_position.h"

namespace gpusort {

template <class U, class Pair>
struct BitonicTiles {
  int64_t rows = 0;
  int64_t length = 0;
  const uint64_t* starts = nullptr;  // rows + 1 places, or null
  int64_t tiles_per_row = 1;
  int tile = 0;
  bool merge_only = false;  // tiles are bitonic already: half cleaners alone

  // Source: keys, encoded here, or pairs.
  const U* keys_in = nullptr;
  const Pair* pairs_in = nullptr;

  // Target: pairs (may be the source), or when null the result.
  Pair* pairs_out = nullptr;
  U* keys_out = nullptr;
  void* indices_out = nullptr;
  int index_bytes = 8;
  KeyOrder<U> order;
  const U* input = nullptr;        // the problem's keys, for what a code has lost
  int64_t input_length = 0;        // and their row length
  int64_t rows_per_input_row = 1;  // how many of these rows one row of the input became
};

// Fills in the result part of a BitonicTiles.
template <class U, class Pair>
void set_result(BitonicTiles<U, Pair>& tiles, const SortProblem& problem, int64_t rows_per_input_row) {
  tiles.pairs_out = nullptr;
  tiles.keys_out = static_cast<U*>(problem.keys_out);
  tiles.indices_out = problem.indices_out;
  tiles.index_bytes = problem.index_bytes;
  tiles.order = problem.key.order<U>(problem.descending);
  tiles.input = static_cast<const U*>(problem.keys_in);
  tiles.input_length = problem.length;
  tiles.rows_per_input_row = rows_per_input_row;
}

// One launch over all tiles. Instantiated in bitonic_sort.cu: packed pairs for keys of 8, 16, 32 bits, wide pairs for all.
template <class U, class Pair>
cudaError_t launch_bitonic_tiles(const BitonicTiles<U, Pair>& tiles, cudaStream_t stream);

// Rows of any length, all of the same one. `tiles` has its source and target set; `pairs` holds rows * length pairs and may be null when
// one tile holds a row.
template <class U, class Pair>
cudaError_t launch_bitonic_rows(BitonicTiles<U, Pair> tiles, Pair* pairs, cudaStream_t stream);

}  // namespace gpusort
