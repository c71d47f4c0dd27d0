// Where the pieces of a merge begin: co-ranks in global memory.
//
// Up to some number of pieces every block finds the cuts of its own piece (search_piece): a group of lanes looks at as many places at a
// time, so a search takes log32, log16 or log8 instead of log2 steps of memory latency. Beyond, a kernel of its own finds all inner cuts
// (merge_cuts_kernel.cuh), which read_piece reads. Everywhere the cut is near where an even mixture of the keys on both sides would put it,
// so that few places are looked at; each costs a read from memory of 64 bytes for one key.
//
// Sorted or not, pieces hold every input element exactly once: every cut is moved into what the cuts above it in a tree allow
// (repaired_piece), by all that use it alike.
#pragma once

#include "merge_arguments.cuh"

namespace gpusort {

constexpr int kMaxCutLevels = 48;  // of a tree of pieces

template <class U>
struct CutPlace {
  U from_a, from_b;
};

// A search for the split at `rank`. Fresh: of inputs that may have been written just before (read_key).
template <class U, bool kFresh = false>
struct CutSearch {
  using Key = U;

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
  __device__ bool takes(int64_t place) const {
    const CutPlace<U> keys = look(place);
    return !(order.code(keys.from_b) < order.code(keys.from_a));
  }

  // a[place] and its counterpart in b.
  __device__ CutPlace<U> look(int64_t place) const { return {read_key<kFresh>(a + place), read_key<kFresh>(b + (rank - 1 - place))}; }

  // How far the first is above the second; such a place is taken if it is not above.
  __device__ float distance(const CutPlace<U>& place) const {
    const U from_a = order.code(place.from_a), from_b = order.code(place.from_b);
    return from_a > from_b ? static_cast<float>(static_cast<U>(from_a - from_b)) : -static_cast<float>(static_cast<U>(from_b - from_a));
  }
};

// Finishes a search by groups of kLanes lanes, each its own. All lanes of a warp call it.
template <int kLanes, class Search>
__device__ int64_t group_co_rank(Search search) {
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
template <int kLanes, class Search>
__device__ void look_near(Search& search, int64_t guess, float outputs) {
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

struct PieceSearch {
  int64_t path[kMaxCutLevels];
  SplitBounds<int64_t> bounds;
  int64_t border;  // elements of a before the part of the row that is cut, if it is not all
};

// The cuts on the way down the tree to a piece, all of them side by side, kThreads / kLanes at a time.
template <int kThreads, int kLanes, class U>
__device__ void search_path(const MergeArguments<U>& m, int64_t row, int64_t piece, int64_t piece_length, int64_t pieces,
                            int64_t first_rank, int64_t* path) {
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
    CutSearch<U> search(m, row, first_rank + cut * piece_length);
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
                             PieceSearch& shared, int64_t first_rank = 0) {
  if (pieces <= int64_t{1} << (kThreads / 32)) {
    search_path<kThreads, 32>(m, row, piece, piece_length, pieces, first_rank, shared.path);
  } else if (pieces <= int64_t{1} << (kThreads / 16)) {
    search_path<kThreads, 16>(m, row, piece, piece_length, pieces, first_rank, shared.path);
  } else {
    search_path<kThreads, 8>(m, row, piece, piece_length, pieces, first_rank, shared.path);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const int64_t* next = shared.path;
    const int64_t first_a = first_rank > 0 ? shared.border : 0;
    const SplitBounds<int64_t> ends = repaired_piece<int64_t>(
        piece, pieces, m.a_length - first_a, [&](int64_t cut) { return min(cut * piece_length, m.row_outputs() - first_rank); },
        [&](int64_t) { return *next++ - first_a; });
    shared.bounds = {first_rank + ends.rank_low, first_rank + ends.rank_high, first_a + ends.a_low, first_a + ends.a_high};
  }
  __syncthreads();
}

// The ends of a piece from exact cuts in the workspace.
template <class U>
__device__ SplitBounds<int64_t> read_piece(const MergeArguments<U>& m, int64_t row, int64_t piece) {
  const int64_t* const cuts = m.cuts + row * (m.pieces_per_row - 1);
  const int64_t a_low = piece == 0 ? 0 : cuts[piece - 1];
  const int64_t a_high = piece + 1 == m.pieces_per_row ? m.a_length : cuts[piece];
  return {m.rank_of(piece), m.rank_of(piece + 1), a_low, a_high};
}

// The ends of a piece, for all threads of a block, from exact cuts.
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
