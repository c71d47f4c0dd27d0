// The inner cuts of merges of a few thousand tiles of narrow keys, all at once, each in its window (cut_windows.cuh).
//
// A block takes a group of neighbouring pieces and finds every cut from where the first begins to where the last ends, eight lanes to a
// cut, from windows over the whole row: no cut waits for another. Ends of groups are found by both their neighbours, alike. Their windows
// lie apart, and if those of all group ends on the block's path in the tree of groups hold their cuts, none of these needs a repair; else
// the path is searched. Cuts between are repaired if they do not rise.
//
// H200, 2 x 2^24 int16: 55.3 to 52.7 us in all, five dependent reads for a cut where a search for the group's ends came before another for
// its cuts; uint8 37.5 to 32.3; 2 x 2^26 int16 158 either way.
#pragma once

#include "../primitives/dependent_launch.cuh"
#include "cut_windows.cuh"

namespace gpusort {

constexpr int kWindowCutThreads = 256;
constexpr int kWindowCutLanes = 8;
static_assert(kWindowCutThreads / kWindowCutLanes - 1 == kWindowCutGroup, "the group's ends and all cuts between");

// A search by kWindowCutLanes lanes, in step with the others of the warp.
struct LanesSearch {
  static constexpr int kLanes = kWindowCutLanes;
  int low, high;

  __device__ static int lane() { return threadIdx.x % kLanes; }
  // The votes of the lanes of one search.
  __device__ static uint32_t votes(bool vote) {
    return __ballot_sync(~0u, vote) >> threadIdx.x % 32 / kLanes * kLanes & ((1u << kLanes) - 1);
  }
  __device__ bool done() const { return low >= high; }
  __device__ int stride() const { return (high - low + kLanes - 1) / kLanes; }

  template <class Takes>
  __device__ bool look(Takes takes) const {
    const int place = low + (lane() + 1) * stride() - 1;
    return !done() && place < high && takes(place);
  }
  __device__ void narrow(uint32_t taking) {
    if (done()) return;
    const int step = stride();
    low += __popc(taking) * step;
    high = min(high, low + step - 1);
  }
};

// The cut at `rank`, for each kWindowCutLanes lanes of a warp their own.
template <class U>
__device__ int search_cut_by_lanes(const MergeArguments<U>& m, const U* a, const U* b, int rank) {
  const CutWindow window(m, rank);
  const auto takes = [&](int place) { return !(m.order.code(b[rank - 1 - place]) < m.order.code(a[place])); };
  LanesSearch search{window.low, window.high};
  const bool taken = search.look(takes);  // on its way with the ends of the window
  const bool low_end = LanesSearch::lane() == 0, high_end = LanesSearch::lane() == 1;
  const bool asks = (low_end && window.low > window.least) || (high_end && window.high < window.most);
  const bool wrong = asks && takes(low_end ? window.low - 1 : window.high) != low_end;
  const uint32_t taking = LanesSearch::votes(taken);
  if (LanesSearch::votes(wrong) != 0) {
    search = {window.least, window.most};
  } else {
    search.narrow(taking);
  }
  while (__any_sync(~0u, !search.done())) search.narrow(LanesSearch::votes(search.look(takes)));
  return search.low;
}

template <class U>
__global__ void __launch_bounds__(kWindowCutThreads) merge_window_cuts_kernel(const __grid_constant__ MergeArguments<U> m) {
  constexpr int kGroup = kWindowCutGroup;
  __shared__ int found[kGroup + 1];  // elements of a before each cut
  __shared__ int path[32];
  const int piece = static_cast<int>(m.piece), pieces = static_cast<int>(m.pieces_per_row), groups = (pieces + kGroup - 1) / kGroup;
  const unsigned row = blockIdx.x / static_cast<unsigned>(groups);
  const int group = static_cast<int>(blockIdx.x - row * groups), first = group * kGroup, count = min(kGroup, pieces - first);
  const U* const a = m.a_row(row);
  const U* const b = m.b_row(row);
  const auto rank_of = [&](int cut) { return cut < pieces ? cut * piece : static_cast<int>(m.row_outputs()); };
  const int mine = threadIdx.x / kWindowCutLanes;
  const CutWindow on_path(m, threadIdx.x < 32 ? rank_of(cut_on_path(group, groups, threadIdx.x) * kGroup) : 0);

  start_after_predecessor();
  const bool path_holds = on_path.holds(a, b, m.order);
  const int a_count = search_cut_by_lanes(m, a, b, rank_of(first + min(mine, count)));
  if (mine <= count && LanesSearch::lane() == 0) found[mine] = a_count;
  if (__syncthreads_or(!path_holds)) {
    for (int level = threadIdx.x / 32; level < 32; level += kWindowCutThreads / 32) {
      const int cut = cut_on_path(group, groups, level);
      if (cut == 0) break;
      const int on_level = search_cut_by_lanes(m, a, b, rank_of(cut * kGroup));
      if (threadIdx.x % 32 == 0) path[level] = on_level;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      const int* next = path;
      const auto rank_of_group = [&](int cut) { return rank_of(min(pieces, cut * kGroup)); };
      const SplitBounds<int> ends =
          repaired_piece<int>(group, groups, static_cast<int>(m.a_length), rank_of_group, [&](int) { return *next++; });
      found[0] = ends.a_low;
      found[count] = ends.a_high;
    }
    __syncthreads();
  }
  const int cut = threadIdx.x;
  bool falls = false;
  if (cut < count) {
    const int from_a = found[cut + 1] - found[cut];
    falls = from_a < 0 || from_a > rank_of(first + cut + 1) - rank_of(first + cut);
  }
  const bool contradictory = __syncthreads_or(falls);
  if (cut >= count || first + cut == 0) return;
  int before = found[cut];
  if (contradictory) {
    before = found[0] + repaired_split<int>(
                            cut, count, found[count] - found[0], [&](int c) { return rank_of(first + c) - rank_of(first); },
                            [&](int c) { return found[c] - found[0]; });
  }
  m.cuts[row * (m.pieces_per_row - 1) + first + cut - 1] = before;
}

}  // namespace gpusort
