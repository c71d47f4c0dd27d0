// Exclusive sum over the threads of one block.
//
// Two levels: each warp scans its 32 values by shuffles (Kogge-Stone: log2(32) steps), then the first warp scans the warps' totals.
// The work-efficient tree of Blelloch ("Prefix sums and their applications", 1990) saves additions; inside a warp the additions of idle
// lanes are free, so the shallower form is used. Two block barriers before the result; the caller owns a third before `shared` is used
// again.
#pragma once

#include <cstdint>

namespace gpusort {

constexpr int kWarpSize = 32;

template <class T>
struct BlockScanStorage {
  T warp_totals[kWarpSize];
  T block_total;
};

template <class T>
__device__ __forceinline__ T warp_inclusive_scan(T value) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const T before = __shfl_up_sync(~0u, value, distance);
    if (lane >= distance) value += before;
  }
  return value;
}

// Every thread of the block calls this; blockDim.x is a multiple of 32. `total` is the sum over the block.
template <class T>
__device__ __forceinline__ T block_exclusive_scan(T value, T& total, BlockScanStorage<T>& shared) {
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;
  const int warps = blockDim.x / kWarpSize;
  const T inclusive = warp_inclusive_scan(value);
  if (lane == kWarpSize - 1) shared.warp_totals[warp] = inclusive;
  __syncthreads();
  if (warp == 0) {
    const T warp_total = lane < warps ? shared.warp_totals[lane] : T{0};
    const T scanned = warp_inclusive_scan(warp_total);
    shared.warp_totals[lane] = scanned - warp_total;
    if (lane == kWarpSize - 1) shared.block_total = scanned;
  }
  __syncthreads();
  total = shared.block_total;
  return shared.warp_totals[warp] + inclusive - value;
}

}  // namespace gpusort
