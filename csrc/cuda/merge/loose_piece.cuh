// Tiles between loose cuts (core/loose_cut.h): their ends are settled in shared memory.
#pragma once

#include "../../core/loose_cut.h"
#include "merge_cuts.cuh"
#include "merge_plain.cuh"
#include "own_pieces.cuh"
#include "own_windows.cuh"

namespace gpusort {

struct LoosePieceSearch {
  PieceSearch exact;
  int open_begin, open_end;  // then, once they are settled, how many of these elements come before the cut
};

// The ends of a piece, for all threads of a block. With kCuts these may be loose, or among those that blocks find for themselves.
template <int kThreads, bool kCuts, class U>
__device__ LoosePiece find_loose_piece(const MergeArguments<U>& m, int64_t row, int64_t piece, LoosePieceSearch& shared) {
  if constexpr (!kCuts) {
    return {find_piece<kThreads>(m, row, piece, shared.exact), 0, 0};
  } else {
    __syncthreads();  // `shared` may still be read from the piece before
    if (piece < m.own_pieces) {
      if constexpr (sizeof(U) <= 2) {
        search_own_piece_in_windows<kThreads>(m, static_cast<int>(piece), shared.exact);
      } else {
        search_own_piece<kThreads>(m, piece, shared.exact);
      }
      return {shared.exact.bounds, 0, 0};
    }
    if (threadIdx.x == 0) {
      const SplitBounds<int64_t> read = read_piece(m, row, piece);
      const LooseCut begin = LooseCut::unpack(read.a_low), end = LooseCut::unpack(read.a_high);
      shared.exact.bounds = {read.rank_low, read.rank_high, begin.a_count, end.a_count};
      shared.open_begin = begin.open;
      shared.open_end = end.open;
    }
    __syncthreads();
    return {shared.exact.bounds, shared.open_begin, shared.open_end};
  }
}

// How many of `open` elements of a come before the cut among them, for a whole warp: a[place] meets b_last[-place].
template <class U>
__device__ int settle_cut(const U* a, const U* b_last, int open, const KeyOrder<U>& order) {
  int taken = 0;
#pragma unroll
  for (int first = 0; first < kLoosePlaces<U>; first += 32) {
    const int place = first + static_cast<int>(threadIdx.x) % 32;
    const bool takes = place < open && !(order.code(b_last[-place]) < order.code(a[place]));
    taken += __popc(__ballot_sync(~0u, takes));
  }
  return taken;
}

// Settles both ends of a tile that lies in shared memory with all that it may hold: in `window`, and in `shared` for later. All threads of
// the block call it, between barriers of which the first is behind find_loose_piece's answer.
template <class U>
__device__ void settle_ends(const U* elements, PlainWindow& window, const LoosePiece& piece, LoosePieceSearch& shared,
                            const KeyOrder<U>& order) {
  if (piece.open_begin + piece.open_end == 0) return;
  const U *const a = elements + window.a_begin, *const b = elements + window.b_begin;
  if (threadIdx.x < 32) {
    const int taken = settle_cut(a, b + piece.open_begin - 1, piece.open_begin, order);
    if (threadIdx.x == 0) {
      shared.exact.bounds.a_low += taken;
      shared.open_begin = taken;
    }
  } else if (threadIdx.x < 64) {
    const int taken = settle_cut(a + window.a_length - piece.open_end, b + window.b_length - 1, piece.open_end, order);
    if (threadIdx.x == 32) {
      shared.exact.bounds.a_high += taken;
      shared.open_end = taken;
    }
  }
  __syncthreads();
  const int begin = shared.open_begin, end = shared.open_end;
  if (end < piece.open_end) window.a_behind = 1;
  if (end > 0) window.b_behind = 1;
  window.a_begin += begin;
  window.a_length -= begin + piece.open_end - end;
  window.b_begin += piece.open_begin - begin;
  window.b_length -= piece.open_begin - begin + end;
}

}  // namespace gpusort
