// The tiles of a wide merge that no block holds, or that crowd whatever the bins: every record finds its place by a bisection in each
// piece.
//
// The rank of a word is the sum over the pieces of how many of their words are below it. Nothing is assumed of size or spread, and nothing
// is kept in shared memory but where the pieces lie. ways * log2(piece) steps a record: slow, and rare.
#pragma once

#include "wide_tile.cuh"

namespace gpusort {

constexpr int kWideRestThreads = 256;
constexpr int kWideRestShares = 64;  // blocks that a tile's records are dealt to

// One warp to a record, the lanes of which have some of the pieces each.
template <class U, bool kFirst>
__global__ void __launch_bounds__(kWideRestThreads) wide_rest_kernel(const __grid_constant__ WideMergeArguments<U> m) {
  __shared__ uint32_t begins[kMostWideWays], ends[kMostWideWays];
  const uint32_t thread = threadIdx.x, lane = thread % 32, ways = static_cast<uint32_t>(m.ways);
  const int64_t shares = int64_t{m.lists[kWideRest]} * kWideRestShares;
  for (int64_t share = blockIdx.x; share < shares; share += gridDim.x) {
    const uint32_t bound = wide_list(m, kWideRest)[share / kWideRestShares];
    const WideGroup group(m, bound / (m.tiles_per_group + 1));
    const int64_t source = group.row_begin + group.begin, destination = source + m.begins[bound];
    __syncthreads();
    if (thread < ways) {
      begins[thread] = thread * static_cast<uint32_t>(m.run_length) + m.cuts[int64_t{bound} * ways + thread];
      ends[thread] = thread * static_cast<uint32_t>(m.run_length) + m.cuts[int64_t{bound + 1} * ways + thread];
    }
    __syncthreads();
    const auto word_at = [&](uint32_t way, uint32_t place) {
      return wide_word<U, kFirst>(m, source + place, static_cast<uint32_t>(group.begin) + way * static_cast<uint32_t>(m.run_length));
    };
    uint32_t slot = static_cast<uint32_t>(share % kWideRestShares) * (kWideRestThreads / 32) + thread / 32;  // in piece `way`, or behind it
    for (uint32_t way = 0; way < ways;) {
      const uint32_t length = ends[way] - begins[way];
      if (slot >= length) {
        slot -= length;
        ++way;
        continue;
      }
      const uint64_t word = word_at(way, begins[way] + slot);
      uint32_t rank = 0;
      for (uint32_t other = lane; other < ways; other += 32) {
        uint32_t low = begins[other], high = ends[other];
        while (low < high) {
          const uint32_t middle = low + (high - low) / 2;
          if (word_at(other, middle) < word) {
            low = middle + 1;
          } else {
            high = middle;
          }
        }
        rank += low - begins[other];
      }
      rank = __reduce_add_sync(~0u, rank);
      if (lane == 0) write_wide_word(m, group.row_begin, destination + rank, word);
      slot += kWideRestShares * (kWideRestThreads / 32);
    }
  }
}

}  // namespace gpusort
