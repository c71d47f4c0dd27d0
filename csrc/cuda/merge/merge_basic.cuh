// M3, the basic parallel merge: every thread takes an equal slice of the output, finds where it begins and ends in both inputs, and merges
// it with two pointers. Right for any lengths; slow because the threads of a warp read and write far from each other.
#pragma once

#include "merge_cuts.cuh"
#include "merge_sequential.cuh"

namespace gpusort {

template <class U>
__global__ void merge_basic_kernel(MergeArguments<U> m) {
  const int64_t pieces = m.rows * m.pieces_per_row;
  for (int64_t work = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; work < pieces;
       work += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    const int64_t row = work / m.pieces_per_row;
    merge_piece(m, row, read_piece(m, row, work - row * m.pieces_per_row));
  }
}

}  // namespace gpusort
