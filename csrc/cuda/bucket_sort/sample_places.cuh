// Places of samples: one in each of many equal parts, at offsets that a hash gives, so that periodic data meets no period.
//
// The hash has a seed (sample_seed.h) that is another one at each launch, so nobody can write a row whose samples are unlike the rest of
// it: whatever the keys are, buckets above the capacity are as rare as the plans say. Results do not depend on the samples, only the time
// does.
#pragma once

#include <cstdint>

namespace gpusort {

__device__ __forceinline__ uint32_t scramble(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

}  // namespace gpusort
