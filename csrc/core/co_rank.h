// Co-rank: which part of each input the first `rank` outputs of a merge come from.
//
// Merging sorted a and b (ties taken from a), output rank k belongs to the unique split (i, j), i + j = k, with
//
//   a[i-1] <= b[j]   and   b[j-1] < a[i]
//
// (whatever lies outside an input imposes nothing). The asymmetry is what makes the merge stable. The split is found by bisection over i
// in [max(0, k - n), min(k, m)]: about log2(min(m, n)) comparisons. Source: Green, McColl and Bader, "GPU Merge Path" (2012);
// Siebert and Traeff, "Efficient MPI merging" (2012) for the name.
//
// Inputs that are not sorted have no such split. `co_rank` then still ends, reads nothing outside the inputs and answers within the bounds
// above, but its answers for two ranks may contradict each other, and pieces of an output cut there would overlap. `repaired_split` cuts
// an output into pieces that cannot: it changes nothing for sorted inputs, and for any others it makes the cuts rise on both sides, so
// that the pieces hold every element exactly once.
#pragma once

#include <cstdint>

#include "host_device.h"

namespace gpusort {

// Elements [a_begin, a_end) and [b_begin, b_end): the inputs of one piece of a merge.
template <class Index>
struct MergeRange {
  Index a_begin = 0, a_end = 0, b_begin = 0, b_end = 0;

  GPUSORT_HD Index a_length() const { return a_end - a_begin; }
  GPUSORT_HD Index b_length() const { return b_end - b_begin; }
  GPUSORT_HD Index length() const { return a_length() + b_length(); }
};

// How many of the first `rank` outputs come from a, if that is known to be within [low, high]; low >= rank - n, high <= min(rank, m). `a`
// and `b` are anything with operator[]; less(x, y) is strict.
template <class Index, class A, class B, class Less>
GPUSORT_HD Index co_rank_between(Index low, Index high, Index rank, const A& a, const B& b, Less less) {
  while (low < high) {
    const Index middle = low + (high - low) / 2;  // low <= middle < high keeps a[middle] and b[rank - 1 - middle] inside
    if (less(b[rank - 1 - middle], a[middle])) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// The same with nothing known. 0 <= rank <= m + n.
template <class Index, class A, class B, class Less>
GPUSORT_HD Index co_rank(Index rank, const A& a, Index a_length, const B& b, Index b_length, Less less) {
  const Index low = rank > b_length ? rank - b_length : Index{0};
  const Index high = rank < a_length ? rank : a_length;
  return co_rank_between(low, high, rank, a, b, less);
}

// The split at output rank k of a piece that is known to start and end at some splits.
template <class Index>
struct SplitBounds {
  Index rank_low, rank_high;  // output ranks of the piece's ends
  Index a_low, a_high;        // elements of a before them; 0 <= a_high - a_low <= rank_high - rank_low

  // The nearest value to `a_count` that leaves both sides of both halves of the piece with no less than nothing.
  GPUSORT_HD Index repair(Index rank, Index a_count) const {
    const Index from_above = a_high - (rank_high - rank);  // the upper half takes at most all its outputs from a
    const Index from_below = a_low + (rank - rank_low);    // and so does the lower half
    const Index least = from_above > a_low ? from_above : a_low;
    const Index most = from_below < a_high ? from_below : a_high;
    const Index at_least = a_count > least ? a_count : least;
    return at_least < most ? at_least : most;
  }

  GPUSORT_HD MergeRange<Index> range() const { return {a_low, a_high, rank_low - a_low, rank_high - a_high}; }
};

// One piece of an output of m + n elements that is cut at the ranks rank_of(0) = 0 < rank_of(1) < ... < rank_of(pieces) = m + n: its ends
// in the output and in a. raw(p) is the co-rank of rank_of(p), found in whatever way, as long as every caller gets the same.
//
// Bisection over the cuts down to [piece, piece + 1]: each cut on the way is moved into what the two around it allow. A cut depends only on
// the log2(pieces) cuts above it in that tree, so all workers agree without talking; and since each half keeps no less than nothing of both
// inputs, consecutive cuts rise on both sides whatever raw() says. raw is called once per level, from the root down, also where
// nothing needs a repair.
template <class Index, class RankOf, class Raw>
GPUSORT_HD SplitBounds<Index> repaired_piece(Index piece, Index pieces, Index a_length, RankOf rank_of, Raw raw) {
  SplitBounds<Index> bounds{0, rank_of(pieces), 0, a_length};
  Index low = 0, high = pieces;
  while (high - low > 1) {
    const Index middle = low + (high - low) / 2;
    const Index rank = rank_of(middle);
    const Index a_count = bounds.repair(rank, raw(middle));
    if (middle > piece) {
      high = middle;
      bounds.rank_high = rank;
      bounds.a_high = a_count;
    } else {
      low = middle;
      bounds.rank_low = rank;
      bounds.a_low = a_count;
    }
  }
  return bounds;
}

// How many elements of a lie before cut `cut` of such an output.
template <class Index, class RankOf, class Raw>
GPUSORT_HD Index repaired_split(Index cut, Index pieces, Index a_length, RankOf rank_of, Raw raw) {
  return cut >= pieces ? a_length : repaired_piece(cut, pieces, a_length, rank_of, raw).a_low;
}

}  // namespace gpusort
