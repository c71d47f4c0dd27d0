// The cut at a rank by a few lanes of a warp, several cuts side by side: in its window (cut_windows.cuh) if it lies there, else wherever.
//
// Lanes look at as many places at a time. The first look is on its way with those at the ends of the window. Sorted or not, two searches by
// as many lanes for one rank end alike.
#pragma once

#include "cut_windows.cuh"

namespace gpusort {

constexpr int kWindowCutLanes = 8;  // for each cut that a kernel of its own finds (merge_window_cuts.cuh)

// A search by kLanes lanes, in step with the others of the warp.
template <int kLanes>
struct LanesSearch {
  int low, high;

  __device__ static int lane() { return threadIdx.x % kLanes; }
  // The votes of the lanes of one search.
  __device__ static uint32_t votes(bool vote) {
    return __ballot_sync(~0u, vote) >> threadIdx.x % 32 / kLanes * kLanes & ((1u << kLanes) - 1);
  }
  __device__ bool done() const { return low >= high; }
  __device__ int stride() const { return (high - low + kLanes - 1) / kLanes; }
  // Where the calling lane looks, if it does.
  __device__ int place() const { return low + (lane() + 1) * stride() - 1; }
  __device__ bool looks() const { return !done() && place() < high; }

  __device__ void narrow(uint32_t taking) {
    if (done()) return;
    const int step = stride();
    low += __popc(taking) * step;
    high = min(high, low + step - 1);
  }
};

// For each kLanes lanes of a warp their own. What is made reads; find(), which all lanes of the warp call, goes on from there.
template <int kLanes, bool kFresh, class U>
struct LanesCut {
  using Search = LanesSearch<kLanes>;
  static_assert(kLanes < 32, "votes are told apart by a shift");

  const KeyOrder<U>& order;
  const U* a;
  const U* b;
  CutWindow window;
  bool looks, asks;
  MeetingKeys<U> seen, at_end;  // of the window: the first two lanes ask

  __device__ LanesCut(const MergeArguments<U>& m, const U* a_, const U* b_, int rank) : order(m.order), a(a_), b(b_), window(m, rank) {
    const Search search{window.low, window.high};
    const bool first = Search::lane() == 0, second = Search::lane() == 1;
    looks = search.looks();
    asks = (first && window.asks_before()) || (second && window.asks_behind());
    if (looks) seen.template read<kFresh>(a, b, rank, search.place());
    if (asks) at_end.template read<kFresh>(a, b, rank, first ? window.low - 1 : window.high);
  }

  __device__ int find() const {
    Search search{window.low, window.high};
    const uint32_t taking = Search::votes(looks && seen.takes(order));
    const bool wrong = asks && at_end.takes(order) != (Search::lane() == 0);
    if (Search::votes(wrong) != 0) {
      search = {window.least, window.most};
    } else {
      search.narrow(taking);
    }
    while (__any_sync(~0u, !search.done())) {
      MeetingKeys<U> keys;
      const bool looks_again = search.looks();
      if (looks_again) keys.template read<kFresh>(a, b, window.rank, search.place());
      search.narrow(Search::votes(looks_again && keys.takes(order)));
    }
    return search.low;
  }
};

}  // namespace gpusort
