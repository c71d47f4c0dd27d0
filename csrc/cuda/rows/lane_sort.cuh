// Sorts words spread over the registers of 1 to 32 lanes: a sorting network in each lane, then bitonic merges between lanes by shuffles.
//
// Afterwards item e of the group's lane l is the word of rank l * kItems + e. Works on any unsigned word whose values all differ (or are
// interchangeable when equal), or on any type with operator<, keep_one and from_lane. All 32 lanes of the warp take part. Source: Batcher
// (1968); the exchange with the mirrored lane, which makes two rising runs bitonic without reversing one, is common (e.g. Satish, Harris,
// Garland, "Designing efficient sorting algorithms", 2009). Steps: for 2^k lanes, k (k + 1) / 2 exchanges of every item with another lane,
// and k bitonic mergers of kItems in registers.
#pragma once

#include <cstdint>

#include "../../core/sorting_network.h"

namespace gpusort {

constexpr unsigned kWholeWarp = 0xffffffffu;

// min(mine, other) or max(mine, other). As such they are two instructions of the integer pipe, which the networks fill; here they are a
// comparison of that pipe and a multiplication by one of another. blockDim.z is a one that the compiler does not know.
__device__ __forceinline__ uint32_t keep_one(uint32_t mine, uint32_t other, bool larger) {
#if defined(__CUDA_ARCH__)
  asm("{\n"
      ".reg .pred upper, swap;\n"
      "setp.ne.u32 upper, %2, 0;\n"
      "setp.gt.xor.u32 swap, %0, %1, upper;\n"
      "@swap mul.lo.u32 %0, %1, %3;\n"
      "}\n"
      : "+r"(mine)
      : "r"(other), "r"(static_cast<uint32_t>(larger)), "r"(blockDim.z));
  return mine;
#else
  return larger ? max(mine, other) : min(mine, other);
#endif
}

__device__ __forceinline__ uint64_t keep_one(uint64_t mine, uint64_t other, bool larger) {
  return (mine > other) != larger ? other : mine;
}

template <class Word>
__device__ __forceinline__ Word from_lane(Word word, int lane_mask) {
  return static_cast<Word>(__shfl_xor_sync(kWholeWarp, word, lane_mask));
}

// Two sorted halves of a group of kGroup lanes become one sorted run.
template <int kGroup, int kItems, class Word>
__device__ __forceinline__ void merge_lanes(Word (&words)[kItems], int lane) {
  const bool upper = lane & (kGroup / 2);
#pragma unroll
  for (int e = 0; e < (kItems + 1) / 2; ++e) {
    const int mirror = kItems - 1 - e;
    const Word for_low = from_lane(words[mirror], kGroup - 1);
    const Word for_high = from_lane(words[e], kGroup - 1);
    words[e] = keep_one(words[e], for_low, upper);
    if (mirror != e) words[mirror] = keep_one(words[mirror], for_high, upper);
  }
#pragma unroll
  for (int distance = kGroup / 4; distance > 0; distance /= 2) {
    const bool larger = lane & distance;
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      words[e] = keep_one(words[e], from_lane(words[e], distance), larger);
    }
  }
  bitonic_sort_run<kItems>(words);
}

template <int kLanes, int kItems, class Word>
__device__ __forceinline__ void lanes_sort(Word (&words)[kItems], int lane) {
  network_sort<kItems>(words);
  if constexpr (kLanes > 1) merge_lanes<2>(words, lane);
  if constexpr (kLanes > 2) merge_lanes<4>(words, lane);
  if constexpr (kLanes > 4) merge_lanes<8>(words, lane);
  if constexpr (kLanes > 8) merge_lanes<16>(words, lane);
  if constexpr (kLanes > 16) merge_lanes<32>(words, lane);
}

}  // namespace gpusort
