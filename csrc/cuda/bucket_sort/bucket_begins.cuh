// Where buckets begin: at the sum of those before, but for values that are found so often that they fill several.
#pragma once

#include <cstdint>

#include "bucket_arguments.h"

namespace gpusort {

// The first bucket whose floor, floor_of(bucket), is at least `code`, or (after_equal) above it. Floors do not fall.
template <class Code, class FloorOf>
__device__ __forceinline__ int floors_before(int buckets, Code code, bool after_equal, FloorOf floor_of) {
  int low = 0, high = buckets;
  while (low < high) {
    const int middle = (low + high) / 2;
    const Code floor = floor_of(middle);
    if (floor < code || (after_equal && floor == code)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The word of `begins` for a bucket; base: keys of the row in buckets before. The bucket that holds code floor(bucket) is the last one with
// this floor. If it holds no other code, its keys, total_of(it), are divided among all buckets with this floor, the others being empty.
template <class Code, class FloorOf, class TotalOf>
__device__ __forceinline__ uint32_t bucket_begin(int bucket, int buckets, Code highest, uint32_t base, FloorOf floor_of, TotalOf total_of) {
  const Code floor = floor_of(bucket);
  const int first_alike = floors_before(buckets, floor, false, floor_of), last_alike = floors_before(buckets, floor, true, floor_of) - 1;
  const bool one_code = floor == highest || (last_alike + 1 < buckets && floor_of(last_alike + 1) == floor + 1);
  if (!one_code) return base;
  const uint64_t keys = total_of(last_alike);
  return (base + static_cast<uint32_t>(keys * (bucket - first_alike) / (last_alike - first_alike + 1))) | kEqualBucket;
}

}  // namespace gpusort
