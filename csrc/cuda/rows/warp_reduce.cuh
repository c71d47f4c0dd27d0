// Reductions over the whole warp; every lane gets the result.
#pragma once

#include <cstdint>

#include "lane_sort.cuh"

namespace gpusort {

template <class T>
__device__ __forceinline__ T warp_min(T value) {
  if constexpr (sizeof(T) == 4) {
    return __reduce_min_sync(kWholeWarp, value);
  } else {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value = min(value, static_cast<T>(__shfl_xor_sync(kWholeWarp, value, distance)));
    return value;
  }
}

template <class T>
__device__ __forceinline__ T warp_max(T value) {
  if constexpr (sizeof(T) == 4) {
    return __reduce_max_sync(kWholeWarp, value);
  } else {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value = max(value, static_cast<T>(__shfl_xor_sync(kWholeWarp, value, distance)));
    return value;
  }
}

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(kWholeWarp, value, distance);
  return value;
}

}  // namespace gpusort
