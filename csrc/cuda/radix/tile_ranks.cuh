// Ranks of items among those of equal digit in one warp, in memory order, kGroup items of every lane at a time. Each warp has a histogram
// of its own; `counter` is the shared address of a digit's counter in it, ranks and counters count in steps of kUnit bytes. Counters move
// on as items are ranked.
//
// Where lanes of one digit each add for themselves, the ranks rely on the hardware to serve the lanes of one instruction in lane order,
// which it does but does not promise: the caller verifies (onesweep_pass.cuh). rank_in_lane_order rests on the programming model alone,
// and so do rank_few_digits and rank_common_digits for the digits that they find, and rank_runs for each run. Cycles for 32 random 8-bit
// digits, one warp of many on an H200: atomics 3.5, match.any 60; eight ballots, the classic way, 27.
#pragma once

#include <cstdint>

#include "../primitives/shared_memory.cuh"

namespace gpusort {

// Reverses `rank` among the lanes of one digit in one instruction of kPeriod: what tests of the verification need.
template <int kPeriod>
__device__ __forceinline__ void permute_rank(uint32_t counter, uint32_t& rank) {
  const uint32_t hash = __shfl_sync(~0u, counter, 0) * 37 + __shfl_sync(~0u, counter, 1) * 101 + __shfl_sync(~0u, counter, 2) * 1009;
  if ((hash ^ hash >> 7) / 4 % kPeriod != 0) return;
  const uint32_t same = __match_any_sync(~0u, counter);
  rank = __shfl_sync(~0u, rank, __fns(same, 0, __popc(same) - __popc(same & lanes_below())));
}

template <int kGroup, uint32_t kUnit, int kPermutePeriod>
__device__ __forceinline__ void rank_by_atomics(const uint32_t (&counter)[kGroup], uint32_t (&rank)[kGroup]) {
#pragma unroll
  for (int k = 0; k < kGroup; ++k) {
    rank[k] = fetch_add_shared(counter[k], kUnit);
    if constexpr (kPermutePeriod != 0) permute_rank<kPermutePeriod>(counter[k], rank[k]);
  }
}

// For few digits: atomics on one address are served one lane at a time. A group of one digit needs none; else the two first digits of each
// 32 items are taken by ballot and only the rest by atomics. kLanes lanes share a histogram, at whose address the counter of digit 0 lies.
template <int kGroup, uint32_t kUnit, int kLanes>
__device__ __forceinline__ void rank_few_digits(const uint32_t (&counter)[kGroup], uint32_t (&rank)[kGroup], uint32_t lane,
                                                uint32_t histogram) {
  const uint32_t sharing = kLanes == 32 ? ~0u : ((1u << kLanes % 32) - 1) << lane / kLanes * kLanes;
  const uint32_t below = lanes_below() & sharing;
  auto digit_of = [&](int k) { return kLanes == 32 ? counter[k] : counter[k] ^ histogram; };
  const uint32_t first = __shfl_sync(~0u, digit_of(0), 0);
  uint32_t different = 0;
#pragma unroll
  for (int k = 0; k < kGroup; ++k) different |= digit_of(k) ^ first;
  if (!__any_sync(~0u, different)) {
    const uint32_t start = load_shared(counter[0]) + __popc(below) * kUnit;
    __syncwarp();
    if (below == 0) store_shared(counter[0], start + kGroup * kLanes * kUnit);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kGroup; ++k) rank[k] = start + k * kLanes * kUnit;
    return;
  }
  uint32_t same[kGroup];
#pragma unroll
  for (int k = 0; k < kGroup; ++k) {
    const uint32_t digit = digit_of(k);
    const uint32_t digit0 = __shfl_sync(~0u, digit, 0);
    const uint32_t same0 = __ballot_sync(~0u, digit == digit0);
    const uint32_t digit1 = __shfl_sync(~0u, digit, ~same0 != 0 ? __ffs(~same0) - 1 : 0);
    const uint32_t same1 = __ballot_sync(~0u, digit == digit1);
    same[k] = (digit == digit0 ? same0 : digit == digit1 ? same1 : 0) & sharing;
  }
#pragma unroll
  for (int k = 0; k < kGroup; ++k) {
    rank[k] = 0;
    if (same[k] != 0) rank[k] = load_shared(counter[k]);
    __syncwarp();
    if (same[k] >> lane == 1) add_shared(counter[k], __popc(same[k]) * kUnit);  // the last of its lanes
    if (same[k] == 0) rank[k] = fetch_add_shared(counter[k], kUnit);
    __syncwarp();
  }
#pragma unroll
  for (int k = 0; k < kGroup; ++k) rank[k] += __popc(same[k] & below) * kUnit;
}

// Atomics on one address are served one lane at a time. So where lanes share a digit, the first of them adds for all. Here they are found
// by ballot: those of a digit that is common in the tile, and those of the first lane with another.
template <int kGroup, uint32_t kUnit>
__device__ __forceinline__ void rank_common_digits(const uint32_t (&counter)[kGroup], uint32_t (&rank)[kGroup], uint32_t common,
                                                   uint32_t lane) {
#pragma unroll
  for (int k = 0; k < kGroup; ++k) {
    const uint32_t same0 = __ballot_sync(~0u, counter[k] == common);
    const uint32_t other = __shfl_sync(~0u, counter[k], __ffs(~same0) - 1);
    const uint32_t same1 = __ballot_sync(~0u, counter[k] == other);
    const uint32_t same = counter[k] == common ? same0 : counter[k] == other ? same1 : 1u << lane;
    const uint32_t first = __ffs(same) - 1;
    uint32_t start = 0;
    if (first == lane) start = fetch_add_shared(counter[k], __popc(same) * kUnit);
    rank[k] = __shfl_sync(~0u, start, first) + __popc(same & lanes_below()) * kUnit;
  }
}

// The same where equal digits are neighbours. Each step is done for kAtOnce items before the next one: few warps wait for each of them.
template <int kGroup, uint32_t kUnit, int kAtOnce = 1>
__device__ __forceinline__ void rank_runs(const uint32_t (&counter)[kGroup], uint32_t (&rank)[kGroup], uint32_t lane) {
  const uint32_t below = lanes_below();
#pragma unroll
  for (int begin = 0; begin < kGroup; begin += kAtOnce) {
    uint32_t heads[kAtOnce], start[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) start[k] = __shfl_up_sync(~0u, counter[begin + k], 1);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) heads[k] = __ballot_sync(~0u, start[k] != counter[begin + k] || lane == 0);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const uint32_t later = heads[k] & ~below & ~(1u << lane);
      start[k] = 0;
      if (heads[k] >> lane & 1) start[k] = fetch_add_shared(counter[begin + k], ((later != 0 ? __ffs(later) - 1 : 32) - lane) * kUnit);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const uint32_t first = 31 - __clz(heads[k] & (below | 1u << lane));
      rank[begin + k] = __shfl_sync(~0u, start[k], first) + (lane - first) * kUnit;
    }
  }
}

// Ranks where one or two digits are common in the tile, or places if the counters are places already (placed_tile.cuh): the counters of
// common digits are in registers meanwhile, the same in all lanes. Bits are counted by slow instructions, 16 lanes a cycle, so few are: two
// or three for an item, where rank_common_digits takes six. Lanes of a common digit add nothing to one counter each, which costs less than
// a branch.
template <uint32_t kUnit, bool kTwo>
struct CommonDigits {
  uint32_t counter[2];  // of the common digits
  uint32_t nothing;     // a counter that only this lane adds nothing to
  uint32_t next[2];     // the values of the counters

  // All lanes call.
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int i = 0; i < 2; ++i) next[i] = load_shared(counter[i]);
    __syncwarp();
  }

  template <int kGroup>
  __device__ __forceinline__ void rank(const uint32_t (&counters)[kGroup], uint32_t (&rank)[kGroup]) {
    const uint32_t below = lanes_below();
#pragma unroll
    for (int k = 0; k < kGroup; ++k) {
      const bool first = counters[k] == counter[0], second = kTwo && counters[k] == counter[1];
      const uint32_t firsts = __ballot_sync(~0u, first), seconds = kTwo ? __ballot_sync(~0u, second) : 0;
      const bool common = first || second;
      rank[k] = fetch_add_shared(common ? nothing : counters[k], common ? 0 : kUnit);
      const uint32_t common_rank = (second ? next[1] : next[0]) + __popc((second ? seconds : firsts) & below) * kUnit;
      if (common) rank[k] = common_rank;
      next[0] += __popc(firsts) * kUnit;
      if constexpr (kTwo) next[1] += __popc(seconds) * kUnit;
    }
  }

  // One lane calls.
  __device__ __forceinline__ void store() const {
    store_shared(counter[0], next[0]);
    if constexpr (kTwo) store_shared(counter[1], next[1]);
  }
};

// Bit k of `valid` says whether item k is there; others get no rank.
template <int kGroup, uint32_t kUnit>
__device__ __forceinline__ void rank_in_lane_order(const uint32_t (&counter)[kGroup], uint32_t valid, uint32_t (&rank)[kGroup],
                                                   uint32_t lane) {
#pragma unroll
  for (int k = 0; k < kGroup; ++k) {
    const bool here = valid >> k & 1;
    const uint32_t same = __match_any_sync(~0u, here ? counter[k] : ~0u);
    rank[k] = here ? load_shared(counter[k]) + __popc(same & lanes_below()) * kUnit : 0;
    __syncwarp();
    if (here && same >> lane == 1) store_shared(counter[k], rank[k] + kUnit);
    __syncwarp();
  }
}

}  // namespace gpusort
