// Ranks as in tile_ranks.cuh for bins that many lanes share. Votes, atomics and shuffles of the items of a group follow each other in loops
// of their own, so that their latencies overlap; a group that lies in one bin takes one atomic.
#pragma once

#include <cstdint>

#include "../primitives/shared_memory.cuh"

namespace gpusort {

// Adds where `here` is set; what it returns elsewhere has no meaning.
__device__ __forceinline__ uint32_t fetch_add_shared_if(bool here, uint32_t address, uint32_t value) {
  uint32_t before = 0;
  asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p atom.shared.add.u32 %0, [%1], %2;}"
               : "+r"(before)
               : "r"(address), "r"(value), "r"(here ? 1u : 0u)
               : "memory");
  return before;
}

// Do all items of the group have one counter? Then ranks them.
template <int kGroup, uint32_t kUnit>
__device__ __forceinline__ bool rank_one_bin(const uint32_t (&counter)[kGroup], uint32_t (&rank)[kGroup], uint32_t lane) {
  const uint32_t first = __shfl_sync(~0u, counter[0], 0);
  uint32_t different = 0;
#pragma unroll
  for (int k = 0; k < kGroup; ++k) different |= counter[k] ^ first;
  if (__any_sync(~0u, different != 0)) return false;
  const uint32_t start = __shfl_sync(~0u, fetch_add_shared_if(lane == 0, first, kGroup * 32 * kUnit), 0) + lane * kUnit;
#pragma unroll
  for (int k = 0; k < kGroup; ++k) rank[k] = start + k * (32 * kUnit);
  return true;
}

// Where equal bins are neighbours.
template <int kGroup, uint32_t kUnit>
__device__ __forceinline__ void rank_neighbours(const uint32_t (&counter)[kGroup], uint32_t (&rank)[kGroup], uint32_t lane) {
  if (rank_one_bin<kGroup, kUnit>(counter, rank, lane)) return;
  const uint32_t up_to = lanes_below() | 1u << lane;
  uint32_t heads[kGroup], start[kGroup];
#pragma unroll
  for (int k = 0; k < kGroup; ++k) heads[k] = __ballot_sync(~0u, __shfl_up_sync(~0u, counter[k], 1) != counter[k] || lane == 0);
#pragma unroll
  for (int k = 0; k < kGroup; ++k) {
    const uint32_t later = heads[k] & ~up_to;
    const uint32_t end = later != 0 ? __ffs(static_cast<int>(later)) - 1 : 32;
    start[k] = fetch_add_shared_if((heads[k] >> lane & 1) != 0, counter[k], (end - lane) * kUnit);
  }
#pragma unroll
  for (int k = 0; k < kGroup; ++k) {
    const uint32_t first = 31 - __clz(static_cast<int>(heads[k] & up_to));
    rank[k] = __shfl_sync(~0u, start[k], first) + (lane - first) * kUnit;
  }
}

}  // namespace gpusort
