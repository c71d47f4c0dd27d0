// Where the pieces of a merge begin: co-ranks in global memory.
//
// Either a kernel of its own finds all inner cuts, one thread each (merge_cuts_kernel, read by read_piece), or every block finds the cuts
// of its own piece (find_piece): half a warp looks at 16 places at a time, so a search takes log16 instead of log2 steps of memory latency.
// Sorted or not, pieces hold every input element exactly once: see repaired_piece. The kernel compares each cut with the one before and
// raises a flag if they contradict; only then do readers walk the tree of cuts.
#pragma once

#include "merge_arguments.cuh"

namespace gpusort {

constexpr int kCutThreads = 256;
constexpr int kMaxCutLevels = 16;  // log2(kSearchInBlockPieces), rounded up, and some

// co_rank by a whole warp: 32 evenly spaced places are compared at once, and the answer lies behind the last that comes before it.
// Where the inputs are not sorted the count of such places is still at most the number of places looked at, so it stays in bounds.
template <class U>
__device__ int64_t warp_co_rank(const U* a, int64_t a_length, const U* b, int64_t b_length, const KeyOrder<U>& order, int64_t rank) {
  const int lane = threadIdx.x % 32;
  int64_t low = max(int64_t{0}, rank - b_length);
  int64_t high = min(rank, a_length);
  while (low < high) {
    const int64_t stride = (high - low + 31) / 32;
    const int64_t place = low + (lane + 1) * stride - 1;
    const bool before = place < high && !(order.code(b[rank - 1 - place]) < order.code(a[place]));
    const int64_t passed = low + __popc(__ballot_sync(~0u, before)) * stride;
    high = min(high, passed + stride - 1);
    low = passed;
  }
  return low;
}

// The same by each half of a warp for itself, so that two searches wait for memory side by side. All lanes call it; those of a half that
// does not search get 0.
template <class U>
__device__ int64_t half_warp_co_rank(const U* a, int64_t a_length, const U* b, int64_t b_length, const KeyOrder<U>& order, int64_t rank,
                                     bool searches) {
  const int lane = threadIdx.x % 16, first_lane = threadIdx.x & 16;
  int64_t low = searches ? max(int64_t{0}, rank - b_length) : 0;
  int64_t high = searches ? min(rank, a_length) : 0;
  while (__any_sync(~0u, low < high)) {
    const int64_t stride = (high - low + 15) / 16;
    const int64_t place = low + (lane + 1) * stride - 1;
    const bool before = low < high && place < high && !(order.code(b[rank - 1 - place]) < order.code(a[place]));
    const int64_t passed = low + __popc(__ballot_sync(~0u, before) >> first_lane & 0xffff) * stride;
    if (low < high) {
      high = min(high, passed + stride - 1);
      low = passed;
    }
  }
  return low;
}

// The split at `rank`, which lies a fraction `part` / `parts` of the way between two that are known. Where keys are spread evenly it is
// near that fraction of the elements between them, so two comparisons on either side of there come before the bisection.
template <class U>
__device__ int64_t co_rank_near(const MergeArguments<U>& m, int64_t row, int64_t rank, const SplitBounds<int64_t>& known, int64_t part,
                                int64_t parts) {
  constexpr int64_t kReach = 1024;
  const auto less = [](U x, U y) { return x < y; };
  const CodedKeys<U> a{m.a_row(row), m.order}, b{m.b_row(row), m.order};
  // Unsorted inputs may make the bounds contradict each other; `high` is still what co_rank_between may be asked.
  int64_t high = min(known.a_high, rank - (known.rank_low - known.a_low));
  int64_t low = min(high, max(known.a_low, rank - (known.rank_high - known.a_high)));
  const int64_t guess = low + (high - low) * part / parts;
#pragma unroll
  for (int64_t probe : {guess - kReach, guess + kReach}) {
    if (probe < low || probe >= high) continue;
    if (less(b[rank - 1 - probe], a[probe])) {
      high = probe;
    } else {
      low = probe + 1;
    }
  }
  return co_rank_between(low, high, rank, a, b, less);
}

// merge_cuts_kernel. The ends of a block's cuts are searched for first, by a warp each, and bound the search of the others. Thread 0 has
// the last cut of the block before: the same search, so the same answer, and every pair of neighbours is compared.
template <class U>
__global__ void __launch_bounds__(kCutThreads) merge_cuts_kernel(MergeArguments<U> m) {
  __shared__ int64_t found[kCutThreads];
  __shared__ int64_t ends[2];
  const int64_t inner_cuts = m.pieces_per_row - 1;
  const int64_t total = m.rows * inner_cuts;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * (kCutThreads - 1) - 1; first + 1 < total;
       first += static_cast<int64_t>(gridDim.x) * (kCutThreads - 1)) {
    const int64_t begin = max(first, int64_t{0}), last = min(first + kCutThreads, total) - 1;
    const int64_t begin_row = begin / inner_cuts, last_row = last / inner_cuts;
    const int64_t begin_rank = m.rank_of(begin - begin_row * inner_cuts + 1), last_rank = m.rank_of(last - last_row * inner_cuts + 1);
    if (threadIdx.x < 64) {
      const int64_t row = threadIdx.x < 32 ? begin_row : last_row;
      const int64_t a_count =
          warp_co_rank(m.a_row(row), m.a_length, m.b_row(row), m.b_length, m.order, threadIdx.x < 32 ? begin_rank : last_rank);
      if (threadIdx.x % 32 == 0) ends[threadIdx.x / 32] = a_count;
    }
    __syncthreads();
    const int64_t index = first + threadIdx.x;
    const bool mine = index >= 0 && index < total;
    const int64_t row = mine ? index / inner_cuts : 0;
    const int64_t cut = index - row * inner_cuts + 1;
    int64_t a_count = 0;
    if (index == begin) {
      a_count = ends[0];
    } else if (index == last) {
      a_count = ends[1];
    } else if (mine && begin_row == last_row) {
      a_count =
          co_rank_near(m, row, m.rank_of(cut), SplitBounds<int64_t>{begin_rank, last_rank, ends[0], ends[1]}, index - begin, last - begin);
    } else if (mine) {
      a_count = global_co_rank(m, row, m.rank_of(cut));
    }
    found[threadIdx.x] = a_count;
    __syncthreads();
    if (mine && threadIdx.x > 0) {
      m.cuts[index] = a_count;
      const int64_t before = cut == 1 ? 0 : found[threadIdx.x - 1];
      bool rises = a_count >= before && a_count - before <= m.piece;
      if (cut == inner_cuts) {
        const int64_t rest = m.row_outputs() - m.rank_of(cut);
        rises = rises && m.a_length - a_count <= rest;  // a_count <= a_length always
      }
      if (!rises) *m.contradictory = 1;
    }
  }
}

// The ends of a piece from the cuts that merge_cuts_kernel left.
template <class U>
__device__ SplitBounds<int64_t> read_piece(const MergeArguments<U>& m, int64_t row, int64_t piece) {
  const int64_t* cuts = m.cuts + row * (m.pieces_per_row - 1);
  // Read ahead of the flag, so that the loads overlap.
  const int64_t a_low = piece == 0 ? 0 : cuts[piece - 1];
  const int64_t a_high = piece + 1 == m.pieces_per_row ? m.a_length : cuts[piece];
  if (m.pieces_per_row > 1 && *m.contradictory != 0) {
    return repaired_piece<int64_t>(
        piece, m.pieces_per_row, m.a_length, [&](int64_t cut) { return m.rank_of(cut); }, [&](int64_t cut) { return cuts[cut - 1]; });
  }
  return {m.rank_of(piece), m.rank_of(piece + 1), a_low, a_high};
}

struct PieceSearch {
  int64_t path[kMaxCutLevels];
  SplitBounds<int64_t> bounds;
};

// The ends of a piece, for all threads of a block. The cuts on the way down the tree to the piece do not depend on each other, so each half
// of a warp searches for one of them. Both ends of the piece are among them.
template <int kThreads, class U>
__device__ SplitBounds<int64_t> find_piece(const MergeArguments<U>& m, int64_t row, int64_t piece, PieceSearch& shared) {
  const auto rank_of = [&](int64_t cut) { return m.rank_of(cut); };
  __syncthreads();  // `shared` may still be read from the piece before
  if (m.cuts != nullptr) {
    if (threadIdx.x == 0) shared.bounds = read_piece(m, row, piece);
  } else {
    constexpr int kGroups = kThreads / 16;
    const int group = threadIdx.x / 16;
    int levels = kMaxCutLevels;
    for (int first = 0; first < levels; first += kGroups) {
      int64_t low = 0, high = m.pieces_per_row, rank = 0;
      for (levels = 0; high - low > 1; ++levels) {
        const int64_t middle = low + (high - low) / 2;
        if (levels == first + group) rank = m.rank_of(middle);
        (middle > piece ? high : low) = middle;
      }
      const bool searches = first + group < levels;
      const int64_t a_count = half_warp_co_rank(m.a_row(row), m.a_length, m.b_row(row), m.b_length, m.order, rank, searches);
      if (searches && threadIdx.x % 16 == 0) shared.path[first + group] = a_count;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      const int64_t* next = shared.path;
      shared.bounds = repaired_piece<int64_t>(piece, m.pieces_per_row, m.a_length, rank_of, [&](int64_t) { return *next++; });
    }
  }
  __syncthreads();
  return shared.bounds;
}

}  // namespace gpusort
