// All inner cuts of long merges, by kernels of their own: co-ranks in global memory, in as few dependent reads as can be.
//
// A block takes a group of neighbouring pieces, finds where the group begins and ends (search_piece), and then every cut between by itself,
// near where it would be if the keys of both sides were evenly mixed. For samples of one distribution it is within 1.5 standard deviations
// of that in seven cases of eight, a few hundred elements.
//
// A thread to a cut (near_cuts.cuh; H200, 2 x 2^26 float32: 16 us for loose cuts, 21 for exact ones, 28 for those by bisection between cuts
// that warps found). Narrow keys form runs of equal ones, which tell nothing: eight lanes to a cut, unless there are very many.
//
// Sorted or not, pieces hold every input element exactly once: cuts of neighbours that could contradict each other are found exactly, and
// moved into what the cuts above them in a tree allow (repaired_split).
#pragma once

#include "../primitives/dependent_launch.cuh"
#include "merge_cuts.cuh"
#include "own_pieces.cuh"

namespace gpusort {

constexpr int kCutThreads = 256;
constexpr int kCutGroup = 256;         // pieces of a block
constexpr int kFewCutGroup = 32;       // the same with eight lanes to a cut
constexpr int64_t kFewCuts = 1 << 15;  // of narrow keys, in all

// The pieces of a block, and the cuts between them.
template <class U, int kGroup>
struct CutGroup {
  const MergeArguments<U>& m;
  int64_t row, first;  // piece
  int pieces;
  SplitBounds<int64_t> ends;

  __device__ int64_t rank_of(int cut) const { return min(ends.rank_low + cut * m.piece, ends.rank_high); }
  __device__ CutSearch<U> search(int cut) const { return CutSearch<U>(m, row, rank_of(cut), ends); }

  __device__ void store(int cut, const LooseCut& found) const {
    if (cut < pieces && first + cut > 0) m.cuts[row * (m.pieces_per_row - 1) + first + cut - 1] = found.packed();
  }
  // Exact cuts; found[0] and found[pieces] are the ends.
  __device__ void store_repaired(int cut, const LooseCut* found) const {
    if (cut >= pieces) return;
    const int64_t a_count = repaired_split<int64_t>(
        cut, pieces, ends.a_high - ends.a_low, [&](int64_t c) { return rank_of(static_cast<int>(c)) - ends.rank_low; },
        [&](int64_t c) { return found[c].a_count - ends.a_low; });
    store(cut, {ends.a_low + a_count, 0});
  }
};

// Finds the group that is work item `work`, and writes its ends to `found`.
template <class U, int kGroup>
__device__ CutGroup<U, kGroup> find_group(const MergeArguments<U>& m, int64_t work, int64_t groups, PieceSearch& shared, LooseCut* found) {
  const int64_t row = work / groups, group = work - row * groups, first = m.own_pieces + group * kGroup;
  if (m.own_pieces > 0 && threadIdx.x / 32 == kCutThreads / 32 - 1) find_border<false>(m, shared);  // by the warp with the least to do then
  search_piece<kCutThreads>(m, row, group, m.piece * kGroup, groups, shared, m.own_pieces * m.piece);
  const int pieces = static_cast<int>(min(int64_t{kGroup}, m.pieces_per_row - first));
  if (threadIdx.x == 0) {
    found[0] = {shared.bounds.a_low, 0};
    found[pieces] = {shared.bounds.a_high, 0};
  }
  return {m, row, first, pieces, shared.bounds};
}

// A thread to a cut; exact ones, or loose where m.loose_cuts allows. The bounds leave registers for the reads of a round to overlap, which
// the compiler puts one behind the other otherwise.
template <class U>
__global__ void __launch_bounds__(kCutThreads, 2) merge_cuts_kernel(const __grid_constant__ MergeArguments<U> m) {
  static_assert(kCutGroup == kCutThreads, "a thread for each cut");
  __shared__ PieceSearch shared;
  __shared__ LooseCut found[kCutGroup + 1];
  start_after_predecessor();
  const int64_t groups = (m.pieces_per_row - m.own_pieces + kCutGroup - 1) / kCutGroup;
  const int cut = threadIdx.x;
  for (int64_t work = blockIdx.x; work < m.rows * groups; work += gridDim.x) {
    const auto group = find_group<U, kCutGroup>(m, work, groups, shared, found);
    const bool searches = cut > 0 && cut < group.pieces;
    CutSearch<U> search = group.search(cut);
    const CutGuess guess = guess_cut(search, EvenMix(group.ends), searches && search.high - search.low > kLoosePlaces<U>);
    if (searches) {
      narrow_by_secants(search, guess);
      narrow_by_bisection(search, m.loose_cuts ? kLoosePlaces<U> : 0);
      found[cut] = {search.low, static_cast<int>(search.high - search.low)};
    }
    __syncthreads();
    const bool doubtful = cut < group.pieces && !rise_for_certain(found[cut], found[cut + 1], group.rank_of(cut + 1) - group.rank_of(cut));
    if (__syncthreads_or(doubtful || !m.loose_cuts)) {
      if (searches) {
        narrow_by_bisection(search, 0);
        found[cut] = {search.low, 0};
      }
      __syncthreads();
      group.store_repaired(cut, found);
    } else {
      group.store(cut, found[cut]);
    }
    __syncthreads();  // `shared` and `found` are read no more
  }
}

// Eight lanes to a cut; exact ones.
template <class U>
__global__ void __launch_bounds__(kCutThreads) merge_few_cuts_kernel(const __grid_constant__ MergeArguments<U> m) {
  static_assert(kFewCutGroup * 8 == kCutThreads, "eight threads for each cut");
  __shared__ PieceSearch shared;
  __shared__ LooseCut found[kFewCutGroup + 1];
  start_after_predecessor();
  const int64_t groups = (m.pieces_per_row - m.own_pieces + kFewCutGroup - 1) / kFewCutGroup;
  const int cut = threadIdx.x / 8;
  for (int64_t work = blockIdx.x; work < m.rows * groups; work += gridDim.x) {
    const auto group = find_group<U, kFewCutGroup>(m, work, groups, shared, found);
    const bool searches = cut > 0 && cut < group.pieces;
    CutSearch<U> search = group.search(cut);
    if (!searches) search.high = search.low;
    look_near<8>(search, EvenMix(group.ends).a_count(search.rank), static_cast<float>(group.ends.rank_high - group.ends.rank_low));
    const int64_t a_count = group_co_rank<8>(search);
    if (searches && threadIdx.x % 8 == 0) found[cut] = {a_count, 0};
    __syncthreads();
    group.store_repaired(threadIdx.x, found);
    __syncthreads();  // `shared` and `found` are read no more
  }
}

}  // namespace gpusort
