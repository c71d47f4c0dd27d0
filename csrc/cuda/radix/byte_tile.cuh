// A tile of keys that one block partitions by their byte digits in shared memory.
//
// The staged tile has a region for each bin that has any items, in order of code. What is staged are positions in the tile, 16 bits each,
// which must rise in each region. Regions are laid out so that an item's place and its position in the output are equal modulo 4: threads
// that write pairs of neighbours write whole 32-byte sectors of int64 indices. So a region begins with up to 3 places and ends with up to
// 3 places that nothing is staged in.
//
// In most bins the last items of one tile and the first of the next share a sector. A tile may have a halo: the keys of its first warp are
// those of the last warp of the tile before. Where what the later tile lacks of a shared sector is among these, it writes the whole sector;
// the earlier tile, which knows the same counts, leaves it out.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../../plan/byte_sort_plan.h"
#include "../primitives/shared_memory.cuh"
#include "shared_bytes.cuh"

namespace gpusort {

constexpr int kByteWarps = kByteSortThreads / 32;
constexpr uint32_t kByteHistograms = kByteWarps * 1024;  // bytes

// The inclusive sum over threads 0..255, in two halves with a barrier of the whole block between them.
__device__ __forceinline__ uint32_t sum_in_warp(uint32_t value, uint32_t sums) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, value, distance);
    if (lane >= distance) value += other;
  }
  if (lane == 31) store_shared(sums + threadIdx.x / 32 * 4, value);
  return value;
}
__device__ __forceinline__ uint32_t sum_over_warps(uint32_t value, uint32_t sums) {
#pragma unroll
  for (uint32_t warp = 0; warp < 8; ++warp) {
    const uint32_t other = load_shared(sums + warp * 4);
    if (warp < threadIdx.x / 32) value += other;
  }
  return value;
}

// Where a bin's items lie in the staged tile and in the output.
struct StagedRegion {
  uint32_t begin;  // the first item; the region begins at the multiple of 4 at or before it, and ends where the next begins
  uint32_t end;    // behind the last item
  uint32_t written_begin, written_end;  // the items that this tile writes
  uint32_t offset;                      // output position less place, modulo 2^32
};

// The staged tile of a block.
struct StagedBins {
  // Shared memory: histograms of the warps | regions | ends of the bins by code | words below | staged positions.
  static constexpr uint32_t kRegions = kByteHistograms;  // those that are not empty, in order of code, and one that begins nowhere
  static constexpr uint32_t kEnds = kRegions + 257 * 16;
  static constexpr uint32_t kSums = kEnds + 1024;  // 8 words
  static constexpr uint32_t kTotal = kSums + 32;   // places | regions << 16
  static constexpr uint32_t kStaged = kSums + 48;
  static_assert(kStaged == kByteSortScratchBytes, "the plan and the kernel agree");
  static constexpr uint32_t kUnit = 2;  // bytes of a staged position

  const uint32_t shared;
  const uint32_t thread = threadIdx.x;

  // Where each bin begins and ends in the output. Two barriers.
  __device__ __forceinline__ void find_bins(const uint32_t* bins) {
    uint32_t end = 0;
    if (thread < 256) end = sum_in_warp(bins[thread], shared + kSums);
    __syncthreads();
    if (thread < 256) {
      end = sum_over_warps(end, shared + kSums);
      store_shared(shared + kEnds + thread * 4, end);
    }
    __syncthreads();
  }
  // Thread c < 256: of bin c, in the output.
  __device__ __forceinline__ uint32_t bin_begin() const { return thread == 0 ? 0 : load_shared(shared + kEnds + thread * 4 - 4); }
  __device__ __forceinline__ uint32_t bin_end() const { return load_shared(shared + kEnds + thread * 4); }

  __device__ __forceinline__ StagedRegion region_at(uint32_t number) const {
    uint4 v;
    load_shared(shared + kRegions + number * 16, v);
    return StagedRegion{v.x, v.y & 0xffff, v.z, v.y >> 16, v.w};
  }

  // The histograms become shared addresses of places in the staged tile; regions are set. Threads c < 256 are given the digit of bin c. All
  // threads call. `next_end`: thread c: where in the output the next tile's items of bin c end.
  __device__ __forceinline__ void place_bins(uint32_t digit, uint32_t tile_begin, bool halo, uint32_t next_end) const {
    const uint32_t column = shared + digit * 4;
    uint32_t count = 0, padded = 0, region = 0, of_halo = 0, of_last = 0, begin = 0;
    if (thread < 256) {
      of_halo = load_shared(column);
      count = of_halo;
      if (!halo) of_halo = 0;
#pragma unroll
      for (int warp = 1; warp < kByteWarps; ++warp) {
        of_last = load_shared(column + warp * 1024);
        count += of_last;
      }
      begin = tile_begin - of_halo;
      if (count != 0) padded = (begin % 4 + count + 3) / 4 * 4 | 1u << 16;
      region = sum_in_warp(padded, shared + kSums);
    }
    __syncthreads();
    if (thread < 256) {
      region = sum_over_warps(region, shared + kSums);
      if (thread == 255) {
        store_shared(shared + kTotal, region);
        store_shared(shared + kRegions + (region >> 16) * 16, ~0u);
      }
      region -= padded;
      const uint32_t number = region >> 16;
      const uint32_t first = (region & 0xffff) + begin % 4;
      if (count != 0) {
        const uint32_t end = begin + count, offset = begin - first;
        // A 32-byte sector that this tile begins and the next one ends is written by the next one, if its items are among those that both
        // have.
        const uint32_t before = tile_begin % 4, after = end % 4;
        const bool received = of_halo >= before && end >= tile_begin - before + 4;
        const bool given = halo && of_last >= after && next_end >= end - after + 4;
        const uint32_t written_begin = received ? tile_begin - before : tile_begin, written_end = given ? end - after : end;
        store_shared(shared + kRegions + number * 16,
                     make_uint4(first, first + count | (written_end - offset) << 16, written_begin - offset, offset));
      }
      uint32_t next = shared + kStaged + first * kUnit;
#pragma unroll
      for (int warp = 0; warp < kByteWarps; ++warp) {
        const uint32_t own = load_shared(column + warp * 1024);
        store_shared(column + warp * 1024, next);
        next += own * kUnit;
      }
    }
    __syncthreads();
  }

  // Where the staged tile is cut to share it out: a place, and the region that it lies in or ends. A region costs as much as kRegionCost
  // places; `cost` is a multiple of 4. All regions must not be empty together.
  static constexpr uint32_t kRegionCost = 64;
  struct Cut {
    uint32_t number, place;
  };
  __device__ __forceinline__ Cut cut_at(uint32_t cost, uint32_t places, uint32_t regions) const {
    uint32_t low = 0, high = regions;  // the last region whose cost before it is at most `cost` is in [low, high)
    while (high - low > 1) {
      const uint32_t middle = (low + high) / 2;
      if ((load_shared(shared + kRegions + middle * 16) & ~3u) + middle * kRegionCost <= cost)
        low = middle;
      else
        high = middle;
    }
    const uint32_t end = low + 1 < regions ? load_shared(shared + kRegions + (low + 1) * 16) & ~3u : places;
    return Cut{low, min(cost - low * kRegionCost, end)};
  }

  // Exchanges neighbours until the staged tile rises in each region. Never seen to be needed outside tests. All threads call.
  __device__ __forceinline__ void mend() const {
    const uint32_t regions = load_shared(shared + kTotal) >> 16, staged = shared + kStaged;
#pragma unroll 1
    for (uint32_t number = thread / 32; number < regions; number += kByteWarps) {
      const StagedRegion own = region_at(number);
      bool exchanged;
      do {
        exchanged = false;
#pragma unroll 1
        for (uint32_t parity = 0; parity < 2; ++parity) {
#pragma unroll 1
          for (uint32_t i = own.begin + 2 * (thread % 32) + parity; i + 1 < own.end; i += 64) {
            const uint32_t a = load_shared_16(staged + i * kUnit), b = load_shared_16(staged + i * kUnit + kUnit);
            if (a <= b) continue;
            exchanged = true;
            store_shared_16(staged + i * kUnit, b);
            store_shared_16(staged + i * kUnit + kUnit, a);
          }
          __syncwarp();
        }
      } while (__any_sync(~0u, exchanged));
    }
    __syncthreads();
  }
};

}  // namespace gpusort
