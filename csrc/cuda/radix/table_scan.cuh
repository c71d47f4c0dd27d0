// The scan of table_scan.h by one of some blocks: eight bins, one 32-byte sector of each table, and a thread some neighbouring tables.
#pragma once

#include <cstdint>

namespace gpusort {

constexpr int kScannedCodes = 8;  // of a block: a sector of each table

// `block`: which of the 256 / kScannedCodes blocks this is. All its threads call.
template <int kThreads>
__device__ __forceinline__ void scan_tables(uint32_t* tables, uint32_t count, uint32_t* bins, uint32_t block) {
  __shared__ uint32_t sums[32][kScannedCodes];
  const uint32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const uint32_t share = (count + kThreads - 1) / kThreads;
  const uint32_t begin = min(thread * share, count), end = min(begin + share, count);
  uint4* own = reinterpret_cast<uint4*>(tables) + block * 2;  // a table has 64 vectors
  uint32_t sum[kScannedCodes] = {};
#pragma unroll 4
  for (uint32_t table = begin; table < end; ++table) {
    const uint4 low = own[table * uint64_t{64}], high = own[table * uint64_t{64} + 1];
    sum[0] += low.x, sum[1] += low.y, sum[2] += low.z, sum[3] += low.w;
    sum[4] += high.x, sum[5] += high.y, sum[6] += high.z, sum[7] += high.w;
  }
  uint32_t before[kScannedCodes];
#pragma unroll
  for (int k = 0; k < kScannedCodes; ++k) {
    uint32_t inclusive = sum[k];
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, inclusive, distance);
      if (lane >= distance) inclusive += other;
    }
    before[k] = inclusive - sum[k];
    if (lane == 31) sums[warp][k] = inclusive;
  }
  __syncthreads();
  if (warp < kScannedCodes) {  // warp k: the sums of all warps for code k
    const uint32_t value = lane < kThreads / 32 ? sums[lane][warp] : 0;
    uint32_t inclusive = value;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, inclusive, distance);
      if (lane >= distance) inclusive += other;
    }
    sums[lane][warp] = inclusive - value;
    if (lane == 31) bins[block * kScannedCodes + warp] = inclusive;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kScannedCodes; ++k) before[k] += sums[warp][k];
#pragma unroll 2
  for (uint32_t table = begin; table < end; ++table) {
    const uint4 low = own[table * uint64_t{64}], high = own[table * uint64_t{64} + 1];
    own[table * uint64_t{64}] = make_uint4(before[0], before[1], before[2], before[3]);
    own[table * uint64_t{64} + 1] = make_uint4(before[4], before[5], before[6], before[7]);
    before[0] += low.x, before[1] += low.y, before[2] += low.z, before[3] += low.w;
    before[4] += high.x, before[5] += high.y, before[6] += high.z, before[7] += high.w;
  }
}

}  // namespace gpusort
