// Windows in which the cuts of a merge are expected, and searches in them by warps.
//
// If a and b are samples of one distribution, the cut at output rank r lies within a few sqrt(n) elements of r * a_length / n. A window
// holds the places that near (its reach is the plan's), and whether the cut lies among them is told by two comparisons, one at either end.
// So a block may load what its tile can need before it knows what the tile is.
//
// Windows of neighbouring cuts lie apart, in a and in b. A cut in its window therefore never contradicts another in its own, however it was
// found: of the tree of cuts that makes pieces of unsorted inputs hold every element once (co_rank.h), none needs a repair on a path whose
// cuts all lie in their windows. What is found for a cut depends on its rank alone (search_cut), so that neighbours agree on it.
#pragma once

#include "merge_arguments.cuh"

namespace gpusort {

// The keys that meet at a place of the cut at `rank`: the cut is behind the place if the one of a is taken. All reads of a round come
// before its comparisons, so that they overlap.
template <class U>
struct MeetingKeys {
  U from_a = 0, from_b = 0;

  template <bool kFresh>
  __device__ void read(const U* a, const U* b, int rank, int place) {
    from_a = read_key<kFresh>(a + place);
    from_b = read_key<kFresh>(b + (rank - 1 - place));
  }
  __device__ bool takes(const KeyOrder<U>& order) const { return !(order.code(from_b) < order.code(from_a)); }
};

struct CutWindow {
  int rank;
  int least, most;  // the places where the cut can lie: this many elements of a come before it
  int low, high;    // those where it is expected

  template <class U>
  __device__ CutWindow(const MergeArguments<U>& m, int rank_) : rank(rank_) {
    least = max(0, rank - static_cast<int>(m.b_length));
    most = min(rank, static_cast<int>(m.a_length));
    const int expected = max(least, min(most, __float2int_rd(static_cast<float>(rank) * m.share_of_a)));
    low = max(least, expected - m.reach);
    high = min(most, expected + m.reach);
  }

  __device__ bool asks_before() const { return low > least; }
  __device__ bool asks_behind() const { return high < most; }
};

// Whether a window holds its cut, by what stands at its ends. What is made reads.
template <bool kFresh, class U>
struct WindowCheck {
  CutWindow window;
  MeetingKeys<U> before, behind;

  __device__ WindowCheck(const CutWindow& window_, const U* a, const U* b) : window(window_) {
    if (window.asks_before()) before.template read<kFresh>(a, b, window.rank, window.low - 1);
    if (window.asks_behind()) behind.template read<kFresh>(a, b, window.rank, window.high);
  }
  // If the inputs are sorted.
  __device__ bool holds(const KeyOrder<U>& order) const {
    const bool low_is_taken = !window.asks_before() || before.takes(order);
    const bool high_is_left = !window.asks_behind() || !behind.takes(order);
    return low_is_taken && high_is_left;
  }
};

// The cut on `level` of the way down the tree to `piece`; 0 below its end.
__device__ inline int cut_on_path(int piece, int pieces, int level) {
  int low = 0, high = pieces, cut = 0;
  for (int above = 0; above <= level; ++above) {
    if (high - low <= 1) return 0;
    cut = low + (high - low) / 2;
    (cut > piece ? high : low) = cut;
  }
  return cut;
}

// A search by a warp, which looks at 32 places at a time. Sorted or not, two searches of one range that see the same keys end alike.
struct WarpSearch {
  int low, high;

  __device__ bool done() const { return low >= high; }
  __device__ int stride() const { return (high - low + 31) / 32; }

  // Whether the calling lane's place is taken.
  template <class Takes>
  __device__ bool look(Takes takes) const {
    const int place = low + (static_cast<int>(threadIdx.x) % 32 + 1) * stride() - 1;
    return !done() && place < high && takes(place);
  }

  // All lanes of a warp call it.
  __device__ void narrow(bool taken) {
    const int places = __popc(__ballot_sync(~0u, taken));
    if (done()) return;
    const int step = stride();
    low += places * step;
    high = min(high, low + step - 1);
  }

  template <class Takes>
  __device__ int finish(Takes takes) {
    while (!done()) narrow(look(takes));
    return low;
  }
};

// The cut at `rank`, by a whole warp: in its window if it lies there, else wherever.
template <class U>
__device__ int search_cut(const MergeArguments<U>& m, const U* a, const U* b, int rank) {
  const CutWindow window(m, rank);
  const auto takes = [&](int place) { return !(m.order.code(b[rank - 1 - place]) < m.order.code(a[place])); };
  WarpSearch everywhere{window.least, window.most}, nearby{window.low, window.high};
  const bool taken = everywhere.look(takes);  // on its way with the look at the window
  if (WindowCheck<false, U>(window, a, b).holds(m.order)) return nearby.finish(takes);
  everywhere.narrow(taken);
  return everywhere.finish(takes);
}

}  // namespace gpusort
