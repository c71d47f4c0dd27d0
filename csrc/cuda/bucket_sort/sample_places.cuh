// Places of samples: the same for every input, at offsets that a hash gives, so that periodic data meets no period.
#pragma once

#include <cstdint>

namespace gpusort {

__device__ __forceinline__ uint32_t scramble(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

}  // namespace gpusort
