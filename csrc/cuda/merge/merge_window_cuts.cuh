// The inner cuts of merges of a few thousand tiles of narrow keys, all at once, each in its window (cut_windows.cuh).
//
// A block takes a group of neighbouring pieces and finds every cut from where the first begins to where the last ends, eight lanes to a
// cut, from windows over the whole row: no cut waits for another. Ends of groups are found by both their neighbours, alike. Their windows
// lie apart, and if those of all group ends on the block's path in the tree of groups hold their cuts, none of these needs a repair; else
// the path is searched. Cuts between are repaired if they do not rise. All this begins behind the pieces that blocks find for themselves
// (own_windows.cuh).
//
// H200, 2 x 2^24 int16: 55.3 to 52.7 us in all, five dependent reads for a cut where a search for the group's ends came before another for
// its cuts; uint8 37.5 to 32.3; 2 x 2^26 int16 158 either way.
#pragma once

#include "../primitives/dependent_launch.cuh"
#include "lanes_cut.cuh"

namespace gpusort {

constexpr int kWindowCutThreads = 256;
static_assert(kWindowCutThreads / kWindowCutLanes - 1 == kWindowCutGroup, "the group's ends and all cuts between");

template <class U>
__global__ void __launch_bounds__(kWindowCutThreads) merge_window_cuts_kernel(const __grid_constant__ MergeArguments<U> m) {
  constexpr int kGroup = kWindowCutGroup;
  __shared__ int found[kGroup + 1];  // elements of a before each cut
  __shared__ int on_path[32];
  // The cuts of the first pieces, which blocks find for themselves, are not found here; the border, where theirs end, is.
  const int own = static_cast<int>(m.own_pieces), pieces = static_cast<int>(m.pieces_per_row) - own, piece = static_cast<int>(m.piece);
  const int groups = (pieces + kGroup - 1) / kGroup;
  const unsigned row = blockIdx.x / static_cast<unsigned>(groups);
  const int group = static_cast<int>(blockIdx.x - row * groups), first = group * kGroup, count = min(kGroup, pieces - first);
  const U* const a = m.a_row(row);
  const U* const b = m.b_row(row);
  const auto rank_of = [&](int cut) { return cut < pieces ? (own + cut) * piece : static_cast<int>(m.row_outputs()); };
  const int mine = threadIdx.x / kWindowCutLanes;
  const bool first_lane = threadIdx.x % kWindowCutLanes == 0;
  const auto find = [&](int rank) { return LanesCut<kWindowCutLanes, false, U>(m, a, b, rank).find(); };
  const CutWindow path_window(m, rank_of(threadIdx.x < 32 ? cut_on_path(group, groups, threadIdx.x) * kGroup : 0));  // or the border

  start_after_predecessor();
  const WindowCheck<false, U> path(path_window, a, b);
  const LanesCut<kWindowCutLanes, false, U> search(m, a, b, rank_of(first + min(mine, count)));
  const bool path_holds = path.holds(m.order);
  const int a_count = search.find();
  if (mine <= count && first_lane) found[mine] = a_count;
  if (__syncthreads_or(!path_holds)) {
    for (int level = threadIdx.x / 32; level < 32; level += kWindowCutThreads / 32) {
      const int cut = cut_on_path(group, groups, level);
      if (cut == 0 && level > 0 && cut_on_path(group, groups, level - 1) == 0) break;
      const int on_level = find(rank_of(cut * kGroup));  // on the first level below the path: the border
      if (threadIdx.x % 32 == 0) on_path[cut > 0 ? level : 31] = on_level;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      const int border = on_path[31];
      const int* next = on_path;
      const auto rank_of_group = [&](int cut) { return rank_of(min(pieces, cut * kGroup)) - rank_of(0); };
      const SplitBounds<int> ends =
          repaired_piece<int>(group, groups, static_cast<int>(m.a_length) - border, rank_of_group, [&](int) { return *next++ - border; });
      found[0] = border + ends.a_low;
      found[count] = border + ends.a_high;
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
  if (cut >= count || own + first + cut == 0) return;
  int before = found[cut];
  if (contradictory) {
    before = found[0] + repaired_split<int>(
                            cut, count, found[count] - found[0], [&](int c) { return rank_of(first + c) - rank_of(first); },
                            [&](int c) { return found[c] - found[0]; });
  }
  m.cuts[row * (m.pieces_per_row - 1) + own + first + cut - 1] = before;
}

}  // namespace gpusort
