// Single cuts by a thread, near where an even mixture of the keys puts them.
//
// Keys seen at a few places tell how fast they rise there, and so where those of a and b meet. A loose cut (core/loose_cut.h) of random
// keys takes one look at the even mixture (guess_cut) and, in 99.3 % of cases, two more around the place that it tells of
// (narrow_by_secants).
#pragma once

#include "../../core/loose_cut.h"
#include "merge_cuts.cuh"

namespace gpusort {

// Where cuts between two known splits are if keys are evenly mixed there.
struct EvenMix {
  SplitBounds<int64_t> ends;

  __device__ explicit EvenMix(const SplitBounds<int64_t>& ends_) : ends(ends_) {}

  __device__ float from_a() const { return static_cast<float>(ends.a_high - ends.a_low); }
  __device__ float outputs() const { return static_cast<float>(ends.rank_high - ends.rank_low); }
  __device__ float share_before(int64_t rank) const { return static_cast<float>(rank - ends.rank_low) / outputs(); }
  __device__ int64_t a_count(int64_t rank) const { return ends.a_low + static_cast<int64_t>(from_a() * share_before(rank)); }
  // 1.5 standard deviations from there, if both sides are samples of one distribution.
  __device__ int64_t reach(int64_t rank) const {
    const float share = share_before(rank);
    return static_cast<int64_t>(1.5f * sqrtf(share * (1 - share) * from_a() * (1 - from_a() / outputs()))) + 8;
  }
};

// Where to look for a cut, and how far around.
struct CutGuess {
  int64_t a_count, reach;
};

// Improves on the even mixture by one look at it: keys are taken to rise evenly between there and where the neighbouring threads of the
// warp look. For whole warps. Where a look tells nothing, since keys do not rise or neighbours do not look, it stays with the even mixture.
template <class U>
__device__ CutGuess guess_cut(const CutSearch<U>& search, const EvenMix& mix, bool looks) {
  const int64_t place = max(search.low, min(search.high - 1, mix.a_count(search.rank))), b_place = search.rank - 1 - place;
  CutPlace<U> mine{0, 0};
  if (looks) mine = search.look(place);
  const U from_a = search.order.code(mine.from_a), from_b = search.order.code(mine.from_b);
  const unsigned looking = __ballot_sync(~0u, looks);
  const int lane = threadIdx.x % 32;
  const int below = lane > 0 && (looking >> (lane - 1) & 1) != 0 ? lane - 1 : lane;
  const int above = lane < 31 && (looking >> (lane + 1) & 1) != 0 ? lane + 1 : lane;
  const U a_rise = static_cast<U>(__shfl_sync(~0u, from_a, above) - __shfl_sync(~0u, from_a, below));
  const U b_rise = static_cast<U>(__shfl_sync(~0u, from_b, above) - __shfl_sync(~0u, from_b, below));
  const int64_t a_run = __shfl_sync(~0u, place, above) - __shfl_sync(~0u, place, below);
  const int64_t b_run = __shfl_sync(~0u, b_place, above) - __shfl_sync(~0u, b_place, below);
  const float rise = static_cast<float>(a_rise) / static_cast<float>(a_run) + static_cast<float>(b_rise) / static_cast<float>(b_run);
  constexpr float kLeastRise = 0.125f, kFar = 1e9f;  // from one element to the next: below, keys are runs of equal ones
  if (!(looks && above > below && rise > kLeastRise)) return {mix.a_count(search.rank), mix.reach(search.rank)};
  const float step = fmaxf(-kFar, fminf(kFar, search.distance(mine) / rise));
  return {place - static_cast<int64_t>(step), kLoosePlaces<U> / 2};
}

// Narrows a search to kLoosePlaces, if it can: looks on both sides of a guess, then around the place where the keys seen there would meet
// if they rose evenly, again and again.
template <class Search>
__device__ void narrow_by_secants(Search& search, const CutGuess& guess) {
  using U = typename Search::Key;
  constexpr int kRounds = 5;
  int64_t before = guess.a_count - guess.reach, behind = guess.a_count + guess.reach;
#pragma unroll 1
  for (int round = 0; round < kRounds && search.high - search.low > kLoosePlaces<U>; ++round) {
    before = max(search.low, min(search.high - 1, before));
    behind = max(search.low, min(search.high - 1, behind));
    const CutPlace<U> near_before = search.look(before), near_behind = search.look(behind);  // these reads overlap
    const float at_before = search.distance(near_before), at_behind = search.distance(near_behind);
    if (at_behind <= 0) {
      search.low = behind + 1;
    } else if (at_before <= 0) {
      search.low = before + 1;
      search.high = behind;
    } else {
      search.high = before;
    }
    constexpr float kFar = 1e9f;  // where they do not rise
    const float step = static_cast<float>(behind - before) * __fdividef(at_before, at_before - at_behind);
    const int64_t even = before + static_cast<int64_t>(fmaxf(-kFar, fminf(kFar, step)));
    before = even - kLoosePlaces<U> / 2;
    behind = even + kLoosePlaces<U> / 2;
  }
}

template <class Search>
__device__ void narrow_by_bisection(Search& search, int64_t enough) {
  while (search.high - search.low > enough) {
    const int64_t middle = search.low + (search.high - search.low) / 2;
    if (search.takes(middle)) {
      search.low = middle + 1;
    } else {
      search.high = middle;
    }
  }
}

}  // namespace gpusort
