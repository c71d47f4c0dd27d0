// Multiway split: how much of each of k sorted runs the first `rank` outputs of their merge take. The co-rank of many inputs.
//
// Outputs are ordered by (element, run, place), so no two are equal and the split is unique. Every run keeps a range [low, high] that holds
// its count; a pivot is taken from the run whose range is widest, its rank is found by one binary search in each run's range, and the
// ranges are cut there:
//
//   sum(low) <= rank <= sum(high)          before and after each round, whatever the data
//   a pivot below `rank` outputs is taken: low = (elements before the pivot), + 1 in the pivot's own run; else high = those counts
//
// The first pivots are taken where runs that look alike would be cut, and each other run is searched outwards from there. A pivot that
// misses tells how far to go, which leaves a miss of about the square root: for random data the second or third is near enough where a few
// outputs more or less are allowed. Then the middle is taken, so that the widest range is at least halved: k log(length) rounds at most,
// about log(length) in practice. Source: Varman, Scheufler, Iyer and Ricard, "Merging multiple lists on hierarchical-memory
// multiprocessors" (1991), the multisequence selection; the pivot rule is this project's.
//
// Runs that are not sorted have no such split: the search still ends, reads nothing outside the runs and answers counts within them whose
// sum is within the slack of `rank`, but two ranks may contradict each other.
//
// A team does the work: one CPU thread that owns all runs, or the lanes of a warp that own one each (cuda/merge_sort/multiway_cuts.cuh).
#pragma once

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

// As count_before, but searched outwards from `guess` in steps that grow fourfold: 2 log4 of its distance from the answer, or so.
template <class Index, class Key, class ElementAt, class Less>
GPUSORT_HD Index count_before_near(const ElementAt& element_at, int run, Index low, Index high, Index guess, const Key& pivot,
                                   bool equal_too, const Less& less) {
  const auto before = [&](Index place) {
    const Key element = element_at(run, place);
    return equal_too ? !less(pivot, element) : less(element, pivot);
  };
  if (low >= high) return low;
  guess = guess < low ? low : guess < high ? guess : high - 1;
  const bool upwards = before(guess);
  if (upwards) {
    low = guess + 1;
  } else {
    high = guess;
  }
  for (Index step = 16; low < high; step = step < high - low ? step * 4 : high - low) {
    if (step >= high - low) break;
    const Index place = upwards ? low + step : high - 1 - step;
    if (before(place)) {
      low = place + 1;
      if (!upwards) break;
    } else {
      high = place;
      if (upwards) break;
    }
  }
  return count_before(element_at, run, low, high, pivot, equal_too, less);
}

// On entry low[slot] = 0 and high[slot] = the length of run team.run(slot); on return both hold the run's count in the split of some rank
// within `slack` of `rank`: of as many outputs as the counts sum up to. `before` is scratch of the same size. element_at(run, place) is
// callable for every run by every member; less(x, y) is strict. 0 <= rank <= sum of the lengths.
template <class Index, class Team, class ElementAt, class Less>
GPUSORT_HD void multiway_split(const Team& team, Index rank, Index slack, Index* low, Index* high, Index* before,
                               const ElementAt& element_at, const Less& less) {
  constexpr int kGuesses = 4;  // then ranges are halved
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
    const bool guess = round < kGuesses;
    const float share = guess ? static_cast<float>(rank - taken) / static_cast<float>(possible - taken) : 0.5f;
    const auto share_of = [share](Index width) {
      const Index part = static_cast<Index>(static_cast<float>(width) * share);
      return part < width ? part : width - 1;
    };
    const Index place = first + (guess ? share_of(range) : range / 2);
    const auto pivot = element_at(pivot_run, place);

    Index counted = 0;
    for (int slot = 0; slot < team.owned(); ++slot) {
      const int run = team.run(slot);
      const Index around = guess ? low[slot] + share_of(high[slot] - low[slot]) : low[slot] + (high[slot] - low[slot]) / 2;
      before[slot] =
          run == pivot_run ? place : count_before_near(element_at, run, low[slot], high[slot], around, pivot, run < pivot_run, less);
      counted += before[slot];
    }
    counted = team.sum(counted);
    if (counted + slack >= rank && counted <= rank + slack) {
      for (int slot = 0; slot < team.owned(); ++slot) low[slot] = high[slot] = before[slot];
      return;
    }
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
