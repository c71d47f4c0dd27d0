// The first pieces of a long merge, whose blocks find them for themselves while another kernel finds the cuts of all others.
//
// Blocks of the first wave would have nothing to do until that kernel ends. They may start before, since its blocks let them only when all
// that is in front of it has ended: the inputs are complete in the L2 then, and nobody reads any longer what the output overwrites. But
// nothing has emptied the L1 of the multiprocessor, so that such a block reads the inputs past it (read_key). A row is then two parts with
// a border between them, whose place both kernels find by the same function (find_border), so that they agree on it even where the inputs
// are not sorted; each part has a tree of cuts of its own.
#pragma once

#include "near_cuts.cuh"

namespace gpusort {

// The border of the only row, by a whole warp.
template <bool kFresh, class U>
__device__ void find_border(const MergeArguments<U>& m, PieceSearch& shared) {
  CutSearch<U, kFresh> search(m, 0, m.own_pieces * m.piece);
  const EvenMix mix({0, m.row_outputs(), 0, m.a_length});
  look_near<32>(search, mix.a_count(search.rank), static_cast<float>(m.row_outputs()));
  const int64_t a_count = group_co_rank<32>(search);
  if (threadIdx.x % 32 == 0) shared.border = a_count;
}

// The ends of one of the first pieces, into shared.bounds, for all threads of a block: all cuts on the way down their tree side by side, by
// a lane each of one warp, and the border by another.
template <int kThreads, class U>
__device__ void search_own_piece(const MergeArguments<U>& m, int64_t piece, PieceSearch& shared) {
  static_assert(kThreads >= 64, "two warps");
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) {
    int64_t low = 0, high = m.own_pieces, cut = 0;
    for (int level = 0; high - low > 1; ++level) {
      const int64_t middle = low + (high - low) / 2;
      if (level == lane) cut = middle;
      (middle > piece ? high : low) = middle;
    }
    if (cut > 0) {
      CutSearch<U, true> search(m, 0, cut * m.piece);
      const EvenMix mix({0, m.row_outputs(), 0, m.a_length});
      narrow_by_secants(search, {mix.a_count(search.rank), mix.reach(search.rank)});
      narrow_by_bisection(search, 0);
      shared.path[lane] = search.low;
    }
  } else if (warp == 1) {
    find_border<true>(m, shared);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const int64_t* next = shared.path;
    shared.bounds = repaired_piece<int64_t>(
        piece, m.own_pieces, shared.border, [&](int64_t cut) { return cut * m.piece; }, [&](int64_t) { return *next++; });
  }
  __syncthreads();
}

}  // namespace gpusort
