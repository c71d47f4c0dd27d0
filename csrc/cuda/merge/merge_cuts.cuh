// Where the pieces of a merge begin: co-ranks in global memory.
//
// Up to some number of pieces every block finds the cuts of its own piece (search_piece): a group of lanes looks at as many places at a
// time, so a search takes log32, log16 or log8 instead of log2 steps of memory latency. Beyond, a kernel of its own finds all inner cuts
// (merge_cuts_kernel), which read_piece reads. Each of its blocks takes 256 neighbouring pieces: it finds where they begin and end as
// above, then every 32nd cut by a warp, then the rest by a thread each. Where there are few pieces it takes 32, and eight lanes find a cut.
// Everywhere the cut is near where an even mixture of the keys on both sides would put it, so that few places are looked at; each costs a
// read from memory of 64 bytes for one key.
//
// Sorted or not, pieces hold every input element exactly once: every cut is moved into what the cuts above it in a tree allow
// (repaired_piece), by all that use it alike.
#pragma once

#include "../primitives/dependent_launch.cuh"
#include "merge_arguments.cuh"

namespace gpusort {

constexpr int kCutThreads = 256;    // of merge_cuts_kernel
constexpr int kSmallCutGroup = 32;  // pieces of one of its blocks, where there are no more than kFewCuts in all; else 256
constexpr int64_t kFewCuts = 16384;
constexpr int kCutStride = 32;     // cuts between those that warps find
constexpr int kMaxCutLevels = 48;  // of a tree of pieces

// A search for the split at `rank`.
template <class U>
struct CutSearch {
  const U* a;
  const U* b;
  KeyOrder<U> order;
  int64_t rank;
  int64_t low, high;  // the elements of a before the split lie between these

  __device__ CutSearch(const MergeArguments<U>& m, int64_t row, int64_t rank_)
      : a(m.a_row(row)),
        b(m.b_row(row)),
        order(m.order),
        rank(rank_),
        low(max(int64_t{0}, rank_ - m.b_length)),
        high(min(rank_, m.a_length)) {}

  // Between two known splits. Unsorted inputs may make them contradict each other; the range is still one of places that may be looked at.
  __device__ CutSearch(const MergeArguments<U>& m, int64_t row, int64_t rank_, const SplitBounds<int64_t>& known)
      : a(m.a_row(row)), b(m.b_row(row)), order(m.order), rank(rank_) {
    high = min(known.a_high, rank - (known.rank_low - known.a_low));
    low = min(high, max(known.a_low, rank - (known.rank_high - known.a_high)));
  }

  // Whether a[place] is among the first `rank` outputs; low <= place < high.
  __device__ bool takes(int64_t place) const { return !(order.code(b[rank - 1 - place]) < order.code(a[place])); }

  // How far a[place] is above its counterpart in b; a place is taken if it is not above.
  __device__ float distance(int64_t place) const {
    const U from_a = order.code(a[place]), from_b = order.code(b[rank - 1 - place]);
    return from_a > from_b ? static_cast<float>(static_cast<U>(from_a - from_b)) : -static_cast<float>(static_cast<U>(from_b - from_a));
  }
};

// Finishes a search by groups of kLanes lanes, each its own. All lanes of a warp call it.
template <int kLanes, class U>
__device__ int64_t group_co_rank(CutSearch<U> search) {
  const int lane = threadIdx.x % kLanes, first_lane = threadIdx.x % 32 / kLanes * kLanes;
  while (__any_sync(~0u, search.low < search.high)) {
    const int64_t stride = (search.high - search.low + kLanes - 1) / kLanes;
    const int64_t place = search.low + (lane + 1) * stride - 1;
    const bool takes = place < search.high && stride > 0 && search.takes(place);
    // Where the inputs are not sorted this is still at most the number of places looked at.
    const int taken = __popc(__ballot_sync(~0u, takes) >> first_lane & static_cast<uint32_t>((uint64_t{1} << kLanes) - 1));
    if (stride > 0) {
      const int64_t passed = search.low + taken * stride;
      search.high = min(search.high, passed + stride - 1);
      search.low = passed;
    }
  }
  return search.low;
}

// The first round of such a search between two splits with `outputs` outputs between them. Half of the lanes look near the guess that keys
// are evenly mixed, which is within 0.7 sqrt(outputs) elements in 99.5 % of cases if both sides are samples of one distribution. The others
// look everywhere.
template <int kLanes, class U>
__device__ void look_near(CutSearch<U>& search, int64_t guess, float outputs) {
  constexpr int kHalf = kLanes / 2;
  const int64_t range = search.high - search.low;
  if (!__any_sync(~0u, range > kLanes * kLanes)) return;
  const int lane = threadIdx.x % kLanes, first_lane = threadIdx.x % 32 / kLanes * kLanes;
  const int64_t spacing = static_cast<int64_t>(sqrtf(outputs) * (1.4f / kHalf)) + 1, stride = range / (kHalf + 1) + 1;
  const int64_t first_near = guess - kHalf / 2 * spacing + spacing / 2;
  const auto near = [&](int place) { return max(search.low, min(search.high - 1, first_near + place * spacing)); };
  const auto far = [&](int place) { return min(search.high - 1, search.low + (place + 1) * stride); };
  const bool takes = range > 0 && search.takes(lane < kHalf ? near(lane) : far(lane - kHalf));
  const uint32_t taking = __ballot_sync(~0u, takes) >> first_lane;
  const int near_taken = __popc(taking & ((1u << kHalf) - 1)), far_taken = __popc(taking >> kHalf & ((1u << kHalf) - 1));
  if (range <= 0) return;
  int64_t low = search.low, high = search.high;
  if (near_taken > 0) low = max(low, near(near_taken - 1) + 1);
  if (far_taken > 0) low = max(low, far(far_taken - 1) + 1);
  if (near_taken < kHalf) high = min(high, near(near_taken));
  if (far_taken < kHalf) high = min(high, far(far_taken));
  search.low = low;
  search.high = max(low, high);
}

// By a whole warp, first near a guess.
template <class U>
__device__ int64_t warp_co_rank_near(CutSearch<U> search, int64_t guess) {
  constexpr int64_t kSpacing = 32;
  const int lane = threadIdx.x % 32;
  if (search.low < search.high) {
    const int64_t place = max(search.low, min(search.high - 1, guess + (lane - 16) * kSpacing));
    const int taken = __popc(__ballot_sync(~0u, search.takes(place)));
    const int64_t last_taken = __shfl_sync(~0u, place, max(taken - 1, 0)), first_left = __shfl_sync(~0u, place, min(taken, 31));
    if (taken > 0) search.low = last_taken + 1;
    if (taken < 32) search.high = max(search.low, first_left);
  }
  return group_co_rank<32>(search);
}

// By one thread: on both sides of a guess, ever farther out until the split lies between; then on both sides of where it is if keys rise
// evenly there; then by bisection. Of 14 reads of 64 bytes that bisection alone would cost, some 8 are left.
template <class U>
__device__ int64_t thread_co_rank_near(CutSearch<U> search, int64_t guess) {
  if (search.low >= search.high) return search.low;
  int64_t reach = 256;  // three standard deviations, 16 pieces from a known split, if the keys are evenly mixed
  const int64_t before = max(search.low, min(guess, search.high) - reach), behind = min(search.high - 1, max(guess, search.low) + reach);
  const float above_before = search.distance(before), above_behind = search.distance(behind);  // these reads overlap
  if (above_behind <= 0) {
    search.low = behind + 1;
    for (reach *= 4; search.low + reach < search.high; reach *= 4) {
      const int64_t place = search.low + reach;
      if (!search.takes(place)) {
        search.high = place;
        break;
      }
      search.low = place + 1;
    }
  } else if (above_before <= 0) {
    search.low = before + 1;
    search.high = behind;
    constexpr int kNear = 24;  // again
    const int64_t even =
        before + static_cast<int64_t>(static_cast<float>(behind - before) * (above_before / (above_before - above_behind)));
    const int64_t near_before = max(search.low, even - kNear), near_behind = min(search.high - 1, even + kNear);
    if (near_before < near_behind) {
      const bool takes_before = search.takes(near_before), takes_behind = search.takes(near_behind);
      if (takes_behind) {
        search.low = near_behind + 1;
      } else {
        search.high = near_behind;
        if (takes_before) {
          search.low = near_before + 1;
        } else {
          search.high = near_before;
        }
      }
    }
  } else {
    search.high = before;
    for (reach *= 4; search.high - reach > search.low; reach *= 4) {
      const int64_t place = search.high - reach;
      if (search.takes(place)) {
        search.low = place + 1;
        break;
      }
      search.high = place;
    }
  }
  while (search.low < search.high) {
    const int64_t middle = search.low + (search.high - search.low) / 2;
    if (search.takes(middle)) {
      search.low = middle + 1;
    } else {
      search.high = middle;
    }
  }
  return search.low;
}

struct PieceSearch {
  int64_t path[kMaxCutLevels];
  SplitBounds<int64_t> bounds;
};

// The cuts on the way down the tree to a piece, all of them side by side, kThreads / kLanes at a time.
template <int kThreads, int kLanes, class U>
__device__ void search_path(const MergeArguments<U>& m, int64_t row, int64_t piece, int64_t piece_length, int64_t pieces, int64_t* path) {
  constexpr int kGroups = kThreads / kLanes;
  const int group = threadIdx.x / kLanes;
  int levels = kMaxCutLevels;
  for (int first = 0; first < levels; first += kGroups) {
    int64_t low = 0, high = pieces, cut = 0;
    for (levels = 0; high - low > 1; ++levels) {
      const int64_t middle = low + (high - low) / 2;
      if (levels == first + group) cut = middle;
      (middle > piece ? high : low) = middle;
    }
    CutSearch<U> search(m, row, cut * piece_length);
    const double diagonal = static_cast<double>(m.a_length) / static_cast<double>(m.row_outputs());
    look_near<kLanes>(search, static_cast<int64_t>(static_cast<double>(search.rank) * diagonal), static_cast<float>(m.row_outputs()));
    const int64_t a_count = group_co_rank<kLanes>(search);  // 0 at once for groups without a cut
    if (cut > 0 && threadIdx.x % kLanes == 0) path[first + group] = a_count;
  }
}

// The ends of piece `piece` of a row that is cut into `pieces` of `piece_length` outputs, into shared.bounds, for all threads of a block.
// The cuts on the way to the piece do not depend on each other, and both its ends are among them.
template <int kThreads, class U>
__device__ void search_piece(const MergeArguments<U>& m, int64_t row, int64_t piece, int64_t piece_length, int64_t pieces,
                             PieceSearch& shared) {
  if (pieces <= int64_t{1} << (kThreads / 32)) {
    search_path<kThreads, 32>(m, row, piece, piece_length, pieces, shared.path);
  } else if (pieces <= int64_t{1} << (kThreads / 16)) {
    search_path<kThreads, 16>(m, row, piece, piece_length, pieces, shared.path);
  } else {
    search_path<kThreads, 8>(m, row, piece, piece_length, pieces, shared.path);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const int64_t* next = shared.path;
    shared.bounds = repaired_piece<int64_t>(
        piece, pieces, m.a_length, [&](int64_t cut) { return min(cut * piece_length, m.row_outputs()); }, [&](int64_t) { return *next++; });
  }
  __syncthreads();
}

// kGroup pieces to a block: 256, or 32 where there are too few pieces to give every multiprocessor work otherwise.
template <class U, int kGroup>
__global__ void __launch_bounds__(kCutThreads) merge_cuts_kernel(const __grid_constant__ MergeArguments<U> m) {
  static_assert(kGroup == kCutThreads || kGroup * 8 == kCutThreads, "a thread for each cut, or eight");
  __shared__ PieceSearch search;
  __shared__ int64_t found[kGroup + 1];  // elements of a before each piece, counted from the first
  start_after_predecessor();
  const int64_t groups = (m.pieces_per_row + kGroup - 1) / kGroup;
  for (int64_t work = blockIdx.x; work < m.rows * groups; work += gridDim.x) {
    const int64_t row = work / groups, group = work - row * groups;
    search_piece<kCutThreads>(m, row, group, m.piece * kGroup, groups, search);
    const SplitBounds<int64_t> all = search.bounds;
    const int pieces = static_cast<int>(min(int64_t{kGroup}, m.pieces_per_row - group * kGroup));
    const auto rank_of = [&](int64_t cut) { return min(all.rank_low + cut * m.piece, all.rank_high); };
    if (threadIdx.x == 0) {
      found[0] = all.a_low;
      found[pieces] = all.a_high;
    }
    // Where the cut is if keys are spread evenly between two known ones.
    const auto guess = [](const SplitBounds<int64_t>& known, int64_t rank) {
      return known.a_low + static_cast<int64_t>(static_cast<float>(known.a_high - known.a_low) * static_cast<float>(rank - known.rank_low) /
                                                static_cast<float>(known.rank_high - known.rank_low));
    };
    const int mine = threadIdx.x;
    if constexpr (kGroup == kCutThreads) {
      for (int cut = (threadIdx.x / 32 + 1) * kCutStride; cut < pieces; cut += kCutThreads) {
        const int64_t a_count = warp_co_rank_near(CutSearch<U>(m, row, rank_of(cut), all), guess(all, rank_of(cut)));
        if (threadIdx.x % 32 == 0) found[cut] = a_count;
      }
      __syncthreads();
      if (mine % kCutStride != 0 && mine < pieces) {
        const int below = mine / kCutStride * kCutStride, above = min(below + kCutStride, pieces);
        const SplitBounds<int64_t> known{rank_of(below), rank_of(above), found[below], found[above]};
        found[mine] = thread_co_rank_near(CutSearch<U>(m, row, rank_of(mine), known), guess(known, rank_of(mine)));
      }
    } else {
      const int cut = threadIdx.x / 8;
      CutSearch<U> inner(m, row, rank_of(cut), all);
      if (cut == 0 || cut >= pieces) inner.high = inner.low;
      look_near<8>(inner, guess(all, rank_of(cut)), static_cast<float>(all.rank_high - all.rank_low));
      const int64_t a_count = group_co_rank<8>(inner);
      if (cut > 0 && cut < pieces && threadIdx.x % 8 == 0) found[cut] = a_count;
    }
    __syncthreads();
    if (mine < pieces && group + mine > 0) {
      const int64_t a_count = repaired_split<int64_t>(
          mine, pieces, all.a_high - all.a_low, [&](int64_t cut) { return rank_of(cut) - all.rank_low; },
          [&](int64_t cut) { return found[cut] - all.a_low; });
      m.cuts[row * (m.pieces_per_row - 1) + group * kGroup + mine - 1] = all.a_low + a_count;
    }
    __syncthreads();  // `search` and `found` are read no more
  }
}

// The ends of a piece from the cuts that merge_cuts_kernel left.
template <class U>
__device__ SplitBounds<int64_t> read_piece(const MergeArguments<U>& m, int64_t row, int64_t piece) {
  const int64_t* const cuts = m.cuts + row * (m.pieces_per_row - 1);
  const int64_t a_low = piece == 0 ? 0 : cuts[piece - 1];
  const int64_t a_high = piece + 1 == m.pieces_per_row ? m.a_length : cuts[piece];
  return {m.rank_of(piece), m.rank_of(piece + 1), a_low, a_high};
}

// The ends of a piece, for all threads of a block.
template <int kThreads, class U>
__device__ SplitBounds<int64_t> find_piece(const MergeArguments<U>& m, int64_t row, int64_t piece, PieceSearch& shared) {
  __syncthreads();  // `shared` may still be read from the piece before
  if (m.cuts == nullptr) {
    search_piece<kThreads>(m, row, piece, m.piece, m.pieces_per_row, shared);
    return shared.bounds;
  }
  if (threadIdx.x == 0) shared.bounds = read_piece(m, row, piece);
  __syncthreads();
  return shared.bounds;
}

}  // namespace gpusort
