// Where the tiles of a multiway merge cut its runs: one warp to a tile, one lane to a run, by core/multiway_split.h.
//
// The cost is latency, not bandwidth: each round waits for the reads of a search, one after the other. So a cut near enough will do.
#pragma once

#include "../../core/multiway_split.h"
#include "multiway_arguments.cuh"

namespace gpusort {

constexpr int kCutsThreads = 128;
constexpr int kCutsBlocksPerSm = 12;  // the more warps wait, the better
constexpr unsigned kAllLanes = 0xffffffffu;

// The lanes of a warp, the first `runs` of which own one run each.
template <class Index>
struct WarpTeam {
  int lane, runs;

  __device__ int owned() const { return lane < runs ? 1 : 0; }
  __device__ int run(int) const { return lane; }

  __device__ Index sum(Index value) const {
    if constexpr (sizeof(Index) == 4) {
      return __reduce_add_sync(kAllLanes, value);
    } else {
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
      return value;
    }
  }

  __device__ void widest(Index& range, int& run_number, Index& low) const {
    Index most = range;
    if constexpr (sizeof(Index) == 4) {
      most = __reduce_max_sync(kAllLanes, range);
    } else {
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) {
        const Index other = __shfl_xor_sync(kAllLanes, most, distance);
        most = other > most ? other : most;
      }
    }
    const int winner = __ffs(__ballot_sync(kAllLanes, range == most)) - 1;
    range = most;
    run_number = __shfl_sync(kAllLanes, run_number, winner);
    low = __shfl_sync(kAllLanes, low, winner);
  }
};

template <class Count, class U, class Index>
__device__ void find_cuts(const MultiwayArguments<U, Index>& m, const MultiwayTileSpot& spot, int64_t number, int lane) {
  const MultiwayRuns& runs = m.runs;
  const int64_t row_begin = spot.row * m.source_row_stride;
  Count low = 0, before = 0;
  Count high = static_cast<Count>(runs.begin(runs.run_of(spot, lane + 1)) - runs.begin(runs.run_of(spot, lane)));
  const auto code_at = [&](int run, Count place) { return m.source_code(row_begin + runs.begin(runs.run_of(spot, run)) + place); };
  multiway_split<Count>(WarpTeam<Count>{lane, runs.ways}, static_cast<Count>(spot.tile * runs.tile), kCutSlack, &low, &high, &before,
                        code_at, [](U x, U y) { return x < y; });
  if (lane < runs.ways) m.cuts[number * runs.ways + lane] = low;
}

template <class U, class Index>
__global__ void __launch_bounds__(kCutsThreads, kCutsBlocksPerSm)
    multiway_cuts_kernel(const __grid_constant__ MultiwayArguments<U, Index> m, int64_t tiles) {
  const int64_t number = static_cast<int64_t>(blockIdx.x) * (kCutsThreads / 32) + threadIdx.x / 32;
  if (number >= tiles) return;
  const int lane = threadIdx.x % 32;
  const MultiwayTileSpot spot = m.runs.locate(number);
  if (!spot.exists || spot.tile == 0) return;  // a group's first tile begins where its runs do
  if (m.runs.group_length(spot) < (int64_t{1} << 31)) {
    find_cuts<int32_t>(m, spot, number, lane);
  } else {
    find_cuts<int64_t>(m, spot, number, lane);
  }
}

// The lane-th run's part of a tile, as cut.
struct MultiwayCut {
  int64_t begin = 0, end = 0;
};

template <class U, class Index>
__device__ MultiwayCut read_cut(const MultiwayArguments<U, Index>& m, const MultiwayTileSpot& spot, int64_t number, int lane) {
  const MultiwayRuns& runs = m.runs;
  MultiwayCut cut;
  if (lane >= runs.ways) return cut;
  const bool last = (spot.tile + 1) * runs.tile >= runs.group_length(spot);
  cut.begin = spot.tile == 0 ? 0 : m.cuts[number * runs.ways + lane];
  cut.end = last ? runs.begin(runs.run_of(spot, lane + 1)) - runs.begin(runs.run_of(spot, lane)) : m.cuts[(number + 1) * runs.ways + lane];
  return cut;
}

// Notes when a tile would get less than nothing of a run, which happens to runs that are not sorted.
template <class U, class Index>
__global__ void __launch_bounds__(kCutsThreads) check_cuts_kernel(const __grid_constant__ MultiwayArguments<U, Index> m, int64_t tiles) {
  const int64_t number = static_cast<int64_t>(blockIdx.x) * (kCutsThreads / 32) + threadIdx.x / 32;
  if (number >= tiles) return;
  const MultiwayTileSpot spot = m.runs.locate(number);
  if (!spot.exists) return;
  const MultiwayCut cut = read_cut(m, spot, number, threadIdx.x % 32);
  if (cut.end < cut.begin) *m.contradictory = 1;
}

}  // namespace gpusort
