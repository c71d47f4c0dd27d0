// What goes out beside the keys of a tile, from the positions that the merge left in shared memory: the payload, fetched from where its key
// came from (neighbouring outputs come from neighbouring places of two inputs, so these reads nearly coalesce), or the source index.
#pragma once

#include "merge_arguments.cuh"
#include "merge_block.cuh"

namespace gpusort {

template <int kThreads, class Word>
__device__ void gather_payload(const Word* __restrict__ a, const Word* __restrict__ b, Word* __restrict__ destination,
                               const uint16_t* positions, int count) {
#pragma unroll 4
  for (int index = threadIdx.x; index < count; index += kThreads) {
    const uint32_t position = positions[index];
    const Word* from = position & kFromB ? b - kFromB : a;
    destination[index] = __ldg(from + position);
  }
}

template <int kThreads, class Index>
__device__ void store_indices(Index* destination, int64_t a_begin, int64_t b_begin, const uint16_t* positions, int count) {
  const Index first_a = static_cast<Index>(a_begin), first_b = static_cast<Index>(b_begin - kFromB);
#pragma unroll 4
  for (int index = threadIdx.x; index < count; index += kThreads) {
    const uint32_t position = positions[index];
    destination[index] = (position & kFromB ? first_b : first_a) + static_cast<Index>(position);
  }
}

// a_begin and b_begin are where the tile's parts begin in the row's inputs, rank where its outputs begin in the row's output.
template <int kThreads, class U>
__device__ void store_companions(const MergeArguments<U>& m, int64_t row, int64_t a_begin, int64_t b_begin, int64_t rank,
                                 const uint16_t* positions, int count) {
  const int64_t a = row * m.a_length + a_begin, b = row * m.b_length + b_begin, out = row * m.row_outputs() + rank;
  const auto gather = [&](auto word) {
    using Word = decltype(word);
    gather_payload<kThreads>(static_cast<const Word*>(m.a_payload) + a, static_cast<const Word*>(m.b_payload) + b,
                             static_cast<Word*>(m.payload_out) + out, positions, count);
  };
  switch (m.payload_bytes) {
    case 1: gather(static_cast<unsigned char>(0)); break;
    case 2: gather(static_cast<unsigned short>(0)); break;
    case 4: gather(0u); break;
    case 8: gather(0ull); break;
    case 16: gather(uint4{}); break;
    default: break;
  }
  if (m.indices_out != nullptr && m.index_bytes == 8) {
    store_indices<kThreads>(static_cast<int64_t*>(m.indices_out) + out, a_begin, m.a_length + b_begin, positions, count);
  } else if (m.indices_out != nullptr) {
    store_indices<kThreads>(static_cast<int32_t*>(m.indices_out) + out, a_begin, m.a_length + b_begin, positions, count);
  }
}

}  // namespace gpusort
