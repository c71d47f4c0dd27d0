// A loose cut: where a piece of a merge begins, to within 256 bytes of keys.
//
// The last steps of a search in global memory look at neighbours, one after the other. The tiles on both sides of a cut read these elements
// anyhow: if both load all places where the cut may be, each settles it in shared memory, both alike. At most 256 bytes more are loaded at
// either end of a tile, which the other tile reads at about the same time.
#pragma once

#include <cstdint>

#include "co_rank.h"

namespace gpusort {

// The most places that a loose cut leaves open. H200, 2 x 2^26 int64 in tiles of 256 x 18: 32 places 549 us, 64 554, exact cuts 557.
template <class U>
constexpr int kLoosePlaces = 256 / static_cast<int>(sizeof(U));

constexpr int kLooseShift = 48;  // elements of a fit below

// In memory as one number: the least number of elements of a before the cut, and how many more there may be. Exact cuts leave none open.
struct LooseCut {
  int64_t a_count;
  int open;

  GPUSORT_HD int64_t most() const { return a_count + open; }
  GPUSORT_HD int64_t packed() const { return a_count | static_cast<int64_t>(open) << kLooseShift; }
  GPUSORT_HD static LooseCut unpack(int64_t packed) {
    return {packed & ((int64_t{1} << kLooseShift) - 1), static_cast<int>(packed >> kLooseShift)};
  }
};

// Whether a cut and the next one, `outputs` behind it, leave a piece between them with no less than nothing of both inputs, wherever they
// are settled.
GPUSORT_HD bool rise_for_certain(const LooseCut& cut, const LooseCut& next, int64_t outputs) {
  return cut.most() <= next.a_count && next.most() - cut.a_count <= outputs;
}

// A piece between two loose cuts, and what it may hold.
struct LoosePiece {
  SplitBounds<int64_t> bounds;  // with the least numbers of elements of a
  int open_begin, open_end;

  GPUSORT_HD MergeRange<int64_t> range() const {
    return {bounds.a_low, bounds.a_high + open_end, bounds.rank_low - bounds.a_low - open_begin, bounds.rank_high - bounds.a_high};
  }
};

}  // namespace gpusort
