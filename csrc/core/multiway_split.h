// Multiway split: how much of each of k sorted runs the first `rank` outputs of their merge take. The co-rank of many inputs.
//
// Outputs are ordered by (element, run, place), so no two are equal and the split is unique. Every run keeps a range [low, high] that holds
// its count; a pivot is taken from the run whose range is widest, its rank is found by one binary search in each run's range, and the
// ranges are cut there:
//
//   sum(low) <= rank <= sum(high)          before and after each round, whatever the data
//   a pivot below `rank` outputs is taken: low = (elements before the pivot), + 1 in the pivot's own run; else high = those counts
//
// The first two pivots are set a little before and a little behind where runs that look alike would be cut, which leaves random data with
// ranges of about 4 sqrt(length); then the middle is taken, so that the widest range is at least halved: k log(length) rounds at most,
// about log(length) in practice. Source: Varman, Scheufler, Iyer and Ricard, "Merging multiple lists on hierarchical-memory
// multiprocessors" (1991), the multisequence selection; the pivot rule is this project's.
//
// Runs that are not sorted have no such split: the search still ends, reads nothing outside the runs and answers counts within them whose
// sum is `rank`, but two ranks may contradict each other.
//
// A team does the work: one CPU thread that owns all runs, or the lanes of a warp that own one each (cuda/merge_sort/multiway_cuts.cuh).
#pragma once

#include <cmath>
#include <cstdint>

#include "host_device.h"

namespace gpusort {

// A team of one: owns every run, has nobody to talk to.
template <class Index>
struct SoloTeam {
  int runs;

  GPUSORT_HD int owned() const { return runs; }
  GPUSORT_HD int run(int slot) const { return slot; }
  GPUSORT_HD Index sum(Index value) const { return value; }
  // Of all members' (range, run, low), the one with the widest range.
  GPUSORT_HD void widest(Index&, int&, Index&) const {}
};

// How many elements of a sorted run lie before `pivot`, known to be in [low, high]; elements equal to it count when `equal_too`.
template <class Index, class Key, class ElementAt, class Less>
GPUSORT_HD Index count_before(const ElementAt& element_at, int run, Index low, Index high, const Key& pivot, bool equal_too,
                              const Less& less) {
  while (low < high) {
    const Index middle = low + (high - low) / 2;
    const Key element = element_at(run, middle);
    const bool before = equal_too ? !less(pivot, element) : less(element, pivot);
    if (before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Where in a range of `range` elements the next pivot is, when `wanted` of the `left` elements of all ranges are still to be taken.
template <class Index>
GPUSORT_HD Index pivot_place(int round, Index range, Index wanted, Index left) {
  constexpr Index kGuessAbove = 64;  // narrower ranges are halved at once
  if (round > 1 || range <= kGuessAbove) return range / 2;
  const float width = static_cast<float>(range);
  const float margin = 2.0f * sqrtf(width);
  const float place = width * (static_cast<float>(wanted) / static_cast<float>(left)) + (round == 0 ? -margin : margin);
  if (!(place > 0.0f)) return 0;
  const Index rounded = static_cast<Index>(place);
  return rounded < range - 1 ? rounded : range - 1;
}

// On entry low[slot] = 0 and high[slot] = the length of run team.run(slot); on return both hold the run's count. `before` is scratch of the
// same size. element_at(run, place) is callable for every run by every member; less(x, y) is strict. 0 <= rank <= sum of the lengths.
template <class Index, class Team, class ElementAt, class Less>
GPUSORT_HD void multiway_split(const Team& team, Index rank, Index* low, Index* high, Index* before, const ElementAt& element_at,
                               const Less& less) {
  Index total = 0;
  for (int slot = 0; slot < team.owned(); ++slot) total += high[slot];
  Index taken = 0, possible = team.sum(total);
  for (int round = 0; taken < rank && rank < possible; ++round) {
    Index range = -1, first = 0;
    int pivot_run = 0;
    for (int slot = 0; slot < team.owned(); ++slot) {
      if (high[slot] - low[slot] <= range) continue;
      range = high[slot] - low[slot];
      first = low[slot];
      pivot_run = team.run(slot);
    }
    team.widest(range, pivot_run, first);
    const Index place = first + pivot_place<Index>(round, range, rank - taken, possible - taken);
    const auto pivot = element_at(pivot_run, place);

    Index counted = 0;
    for (int slot = 0; slot < team.owned(); ++slot) {
      const int run = team.run(slot);
      before[slot] = run == pivot_run ? place : count_before(element_at, run, low[slot], high[slot], pivot, run < pivot_run, less);
      counted += before[slot];
    }
    counted = team.sum(counted);
    if (counted < rank) {
      for (int slot = 0; slot < team.owned(); ++slot) low[slot] = before[slot] + (team.run(slot) == pivot_run ? 1 : 0);
      taken = counted + 1;
    } else {
      for (int slot = 0; slot < team.owned(); ++slot) high[slot] = before[slot];
      possible = counted;
    }
  }
  for (int slot = 0; slot < team.owned(); ++slot) {
    if (taken == rank) {
      high[slot] = low[slot];
    } else {
      low[slot] = high[slot];
    }
  }
}

}  // namespace gpusort
