// M1 on the GPU: one thread merges a row with two pointers. The reference that the other kernels are measured against.
#pragma once

#include "../../core/serial_merge.h"
#include "merge_arguments.cuh"

namespace gpusort {

// One output with what travels along, straight from global to global memory. i, j and rank are places within the row.
template <class U>
__device__ void store_output(const MergeArguments<U>& m, int64_t row, int64_t rank, bool from_b, int64_t position) {
  const int64_t source = from_b ? row * m.b_length + position : row * m.a_length + position;
  const int64_t destination = row * m.row_outputs() + rank;
  m.keys_out[destination] = (from_b ? m.b : m.a)[source];
  const void* payload = from_b ? m.b_payload : m.a_payload;
  switch (m.payload_bytes) {
    case 1: static_cast<uint8_t*>(m.payload_out)[destination] = static_cast<const uint8_t*>(payload)[source]; break;
    case 2: static_cast<uint16_t*>(m.payload_out)[destination] = static_cast<const uint16_t*>(payload)[source]; break;
    case 4: static_cast<uint32_t*>(m.payload_out)[destination] = static_cast<const uint32_t*>(payload)[source]; break;
    case 8: static_cast<uint64_t*>(m.payload_out)[destination] = static_cast<const uint64_t*>(payload)[source]; break;
    case 16: static_cast<uint4*>(m.payload_out)[destination] = static_cast<const uint4*>(payload)[source]; break;
    default: break;
  }
  if (m.indices_out != nullptr) {
    const int64_t index = from_b ? m.a_length + position : position;
    if (m.index_bytes == 8) {
      static_cast<int64_t*>(m.indices_out)[destination] = index;
    } else {
      static_cast<int32_t*>(m.indices_out)[destination] = static_cast<int32_t>(index);
    }
  }
}

// The piece between two splits of a row, by the calling thread.
template <class U>
__device__ void merge_piece(const MergeArguments<U>& m, int64_t row, const SplitBounds<int64_t>& bounds) {
  const MergeRange<int64_t> range = bounds.range();
  int64_t i = range.a_begin, j = range.b_begin;
  serial_merge<int64_t>(
      CodedKeys<U>{m.a_row(row), m.order}, i, range.a_end, CodedKeys<U>{m.b_row(row), m.order}, j, range.b_end, range.length(),
      [](U x, U y) { return x < y; },
      [&](int64_t step, bool from_b, int64_t position, U) { store_output(m, row, bounds.rank_low + step, from_b, position); });
}

template <class U>
__global__ void merge_sequential_kernel(MergeArguments<U> m) {
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; row < m.rows;
       row += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    merge_piece(m, row, SplitBounds<int64_t>{0, m.row_outputs(), 0, m.a_length});
  }
}

}  // namespace gpusort
