// Where the pieces of a merge begin: co-ranks in global memory.
//
// Up to some number of pieces every block finds the cuts of its own piece (search_piece): a group of lanes looks at as many places at a
// time, so a search takes log32, log16 or log8 instead of log2 steps of memory latency. Beyond, a kernel of its own finds all inner cuts
// (merge_cuts_kernel), which read_piece reads. Each of its blocks takes 256 neighbouring pieces: it finds where they begin and end as
// above, then every 32nd cut by a warp, then the rest by a thread each. At either step the cut is near where an even mixture of the keys on
// both sides would put it, so that few places are looked at; each costs a read from memory of 64 bytes for one key.
//
// Sorted or not, pieces hold every input element exactly once: every cut is moved into what the cuts above it in a tree allow
// (repaired_piece), by all that use it alike.
#pragma once

#include "../primitives/dependent_launch.cuh"
#include "merge_arguments.cuh"

namespace gpusort {

constexpr int kCutThreads = 256;   // pieces of a block of merge_cuts_kernel
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

// By one thread, first near a guess, then ever farther from it, then by bisection.
template <class U>
__device__ int64_t thread_co_rank_near(CutSearch<U> search, int64_t guess) {
  if (search.low >= search.high) return search.low;
  int64_t reach = 128;
  const int64_t before = max(search.low, min(guess, search.high) - reach), behind = min(search.high - 1, max(guess, search.low) + reach);
  const bool takes_before = search.takes(before), takes_behind = search.takes(behind);  // these reads overlap
  if (takes_behind) {
    search.low = behind + 1;
    for (reach *= 4; search.low + reach < search.high; reach *= 4) {
      const int64_t place = search.low + reach;
      if (!search.takes(place)) {
        search.high = place;
        break;
      }
      search.low = place + 1;
    }
  } else if (takes_before) {
    search.low = before + 1;
    search.high = behind;
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
    const int64_t a_count = group_co_rank<kLanes>(CutSearch<U>(m, row, cut * piece_length));  // 0 at once for groups without a cut
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

template <class U>
__global__ void __launch_bounds__(kCutThreads) merge_cuts_kernel(const __grid_constant__ MergeArguments<U> m) {
  __shared__ PieceSearch search;
  __shared__ int64_t found[kCutThreads + 1];  // elements of a before each piece, counted from the first
  start_after_predecessor();
  const int64_t groups = (m.pieces_per_row + kCutThreads - 1) / kCutThreads;
  for (int64_t work = blockIdx.x; work < m.rows * groups; work += gridDim.x) {
    const int64_t row = work / groups, group = work - row * groups;
    search_piece<kCutThreads>(m, row, group, m.piece * kCutThreads, groups, search);
    const SplitBounds<int64_t> all = search.bounds;
    const int pieces = static_cast<int>(min(int64_t{kCutThreads}, m.pieces_per_row - group * kCutThreads));
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
    for (int cut = (threadIdx.x / 32 + 1) * kCutStride; cut < pieces; cut += kCutThreads) {
      const int64_t a_count = warp_co_rank_near(CutSearch<U>(m, row, rank_of(cut), all), guess(all, rank_of(cut)));
      if (threadIdx.x % 32 == 0) found[cut] = a_count;
    }
    __syncthreads();
    const int mine = threadIdx.x;
    if (mine % kCutStride != 0 && mine < pieces) {
      const int below = mine / kCutStride * kCutStride, above = min(below + kCutStride, pieces);
      const SplitBounds<int64_t> known{rank_of(below), rank_of(above), found[below], found[above]};
      found[mine] = thread_co_rank_near(CutSearch<U>(m, row, rank_of(mine), known), guess(known, rank_of(mine)));
    }
    __syncthreads();
    if (mine < pieces && group + mine > 0) {
      const int64_t a_count = repaired_split<int64_t>(
          mine, pieces, all.a_high - all.a_low, [&](int64_t cut) { return rank_of(cut) - all.rank_low; },
          [&](int64_t cut) { return found[cut] - all.a_low; });
      m.cuts[row * (m.pieces_per_row - 1) + group * kCutThreads + mine - 1] = all.a_low + a_count;
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
