// The first pieces of a long merge of narrow keys (own_pieces.cuh), found in windows (cut_windows.cuh).
//
// Windows of neighbouring pieces overlap, but those of the ends of groups of a few pieces lie apart. If the windows on a group's path in
// the tree of groups hold their cuts, and the one of the border does, then none of these cuts needs a repair, and a block finds the ends of
// its group and the cuts between them on the way to its piece, all side by side. If not, it finds those on the path too.
//
// H200, 2 x 2^24 keys: int16 51.8 to 48.7 us, uint8 29.8 to 27.6; 2 x 2^26 int16 157.8 to 155.8.
#pragma once

#include "lanes_cut.cuh"
#include "merge_cuts.cuh"

namespace gpusort {

template <class U>
constexpr int kOwnWindowGroup = own_window_group(sizeof(U));

// The ends of one of the first pieces, into shared.bounds, for all threads of a block. The last warp looks at the windows on the path and
// finds the border, beside the others, which find cuts of the group.
template <int kThreads, class U>
__device__ void search_own_piece_in_windows(const MergeArguments<U>& m, int piece, PieceSearch& shared) {
  constexpr int kGroup = kOwnWindowGroup<U>, kLanes = 16, kSearches = kThreads / kLanes, kFirstOfLastWarp = kSearches - 32 / kLanes;
  static_assert((kGroup & (kGroup - 1)) == 0 && (1 << (kFirstOfLastWarp - 2)) >= kGroup, "both ends of a group and all levels between");
  const int own = static_cast<int>(m.own_pieces), length = static_cast<int>(m.piece), groups = own / kGroup;
  const int group = piece / kGroup, first = group * kGroup, within = piece - first;
  const int mine = threadIdx.x / kLanes;
  const bool first_lane = threadIdx.x % kLanes == 0, ends_at_border = group + 1 == groups;

  bool path_holds = true;
  if (mine >= kFirstOfLastWarp) {
    const int on_path = cut_on_path(group, groups, threadIdx.x % 32);
    const WindowCheck<true, U> path(CutWindow(m, (on_path > 0 ? on_path * kGroup : own) * length), m.a, m.b);
    const LanesCut<kWindowCutLanes, true, U> search(m, m.a, m.b, own * length);  // as the other kernel does it
    path_holds = path.holds(m.order);
    const int border = search.find();
    if (threadIdx.x % 32 == 0) shared.border = border;
  } else {
    const int inner = mine < 2 ? 0 : cut_on_path(within, kGroup, mine - 2);
    int cut = inner > 0 ? first + inner : 0;  // nothing is looked for at 0
    if (mine == 0) cut = first;
    if (mine == 1 && !ends_at_border) cut = first + kGroup;
    const int found = LanesCut<kLanes, true, U>(m, m.a, m.b, cut * length).find();
    if (first_lane) shared.path[mine] = found;
  }
  const bool repairs = __syncthreads_or(!path_holds);
  if (threadIdx.x == 0 && ends_at_border) shared.path[1] = shared.border;
  if (repairs) {
    int64_t* const path = shared.path + kSearches;
#pragma unroll 1
    for (int level = 0; cut_on_path(group, groups, level) > 0; level += kSearches) {
      const int on_level = cut_on_path(group, groups, level + mine);
      const int found = LanesCut<kLanes, true, U>(m, m.a, m.b, on_level * kGroup * length).find();
      if (first_lane && on_level > 0) path[level + mine] = found;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      const int64_t* next = path;
      const SplitBounds<int> ends = repaired_piece<int>(
          group, groups, static_cast<int>(shared.border), [&](int c) { return c * kGroup * length; },
          [&](int) { return static_cast<int>(*next++); });
      shared.path[0] = ends.a_low;
      shared.path[1] = ends.a_high;
    }
  }
  if (threadIdx.x == 0) {
    const int a_first = static_cast<int>(shared.path[0]), from_a = static_cast<int>(shared.path[1]) - a_first;
    const int64_t* next = shared.path + 2;
    const SplitBounds<int> ends = repaired_piece<int>(
        within, kGroup, from_a, [&](int c) { return c * length; }, [&](int) { return static_cast<int>(*next++) - a_first; });
    const int rank_first = first * length;
    shared.bounds = {rank_first + ends.rank_low, rank_first + ends.rank_high, a_first + ends.a_low, a_first + ends.a_high};
  }
  __syncthreads();
}

}  // namespace gpusort
