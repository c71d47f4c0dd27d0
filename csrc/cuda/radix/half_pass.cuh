// One partition of 16-bit keys (half_sort.h): one read and one write of the data, as in onesweep_pass.cuh.
//
// One persistent block per SM takes tiles by ticket. Per tile (half_tile.cuh):
//   count      each warp counts its bins in a histogram of its own
//   scan       256 threads add up the warps, publish the tile's counts, and turn the histograms into places in the tile
//   scatter    records to shared memory in the order of their bins
//   look-back  where in the row the tile's run of each bin begins
//   write      in that order, so that the runs are long; the loads of the next tile are issued between the stores
#pragma once

#include <atomic>

#include "../primitives/dependent_launch.cuh"
#include "../primitives/kernel_setup.h"
#include "half_tile.cuh"

namespace gpusort {

template <class Tile, int kLookBackWidth = 8>
struct HalfPass : Tile {
  using Tile::arguments;
  using Tile::kCounts;
  using Tile::kGroup;
  using Tile::kGroups;
  using Tile::kHigh;
  using Tile::kNextTile;
  using Tile::kOffsets;
  using Tile::kOneBin;
  using Tile::kPatterns;
  using Tile::kThreads;
  using Tile::kTileItems;
  using Tile::kUnit;
  using Tile::kWarps;
  using Tile::kWarpSums;
  using Tile::lane;
  using Tile::shared;
  using Tile::thread;
  using Tile::Tile;
  using Tile::warp;
  using typename Tile::Range;
  static constexpr int kPass = kHigh ? 1 : 0;
  static constexpr uint32_t kBins = kHalfBins;
  uint32_t tile = 0;  // that is loaded and counted, if there is one
  // Is the next tile counted between the stores of this one? H200, 2^26: patterns 396 us with and 445 without; the others take as long.
  static constexpr bool kCountsBetween = kPatterns;

  __device__ __forceinline__ uint32_t tiles() const { return arguments.tiles[static_cast<int>(Tile::kStep)]; }

  // The sum over threads 0..255 up to and with this one, in two halves with a barrier of the whole block between them.
  __device__ __forceinline__ uint32_t sum_in_warp(uint32_t value) const {
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, value, distance);
      if (lane >= distance) value += other;
    }
    if (lane == 31) store_shared(shared + kWarpSums + warp * 4, value);
    return value;
  }
  __device__ __forceinline__ uint32_t sum_over_warps(uint32_t sum) const {
#pragma unroll
    for (int k = 0; k < static_cast<int>(kBins / 32); ++k) {
      const uint32_t other = load_shared(shared + kWarpSums + k * 4);
      if (k < warp) sum += other;
    }
    return sum;
  }

  // Thread b: its counter in histogram number h.
  __device__ __forceinline__ uint32_t column(int h) const {
    return shared + thread * 4 + h * (kBins * 4);
  }

  // Thread b: the tile's count of bin b.
  __device__ __forceinline__ uint32_t count_of_bin(uint32_t tile, uint32_t* word, uint32_t parity) const {
    uint32_t total = 0;
#pragma unroll
    for (int h = 0; h < kWarps; ++h) total += load_shared(column(h));
    if (tile != 0) publish_count(word, total);
    if (total > kTileItems / 2) store_shared(shared + kOneBin, 1);
    Tile::note_common(thread, total, parity);
    return total;
  }

  // Thread b: the histograms become places in the tile, in bytes of keys, from the start of bin b's run on.
  __device__ __forceinline__ void place_bin(uint32_t start) const {
    uint32_t next = start * kUnit;
#pragma unroll
    for (int first = 0; first < kWarps; first += 8) {
      uint32_t count[8];
#pragma unroll
      for (int h = 0; h < 8; ++h) count[h] = load_shared(column(first + h));
#pragma unroll
      for (int h = 0; h < 8; ++h) {
        store_shared(column(first + h), next);
        next += count[h] * kUnit;
      }
    }
  }

  // Thread b: publishes the position after the tile's run of bin b, and keeps what must be added to a place in the tile to get the position
  // in the row. All threads of the block call.
  __device__ __forceinline__ void find_offsets(uint32_t tile, uint32_t* word, uint32_t total, uint32_t start) const {
    uint32_t before = 0;
    if (tile == 0) {  // the first tile starts from the bins: all later words are positions in the row
      uint32_t items = 0;
      if (thread < kBins) {
        items = kPatterns ? load_shared(shared + kCounts + thread * 4) : __ldcg(arguments.bins + kPass * kBins + thread);
        before = sum_in_warp(items);
      }
      __syncthreads();
      if (thread < kBins) before = sum_over_warps(before) - items;
    } else if (thread < kBins) {
      before = look_back<kLookBackWidth>(word, tile, kBins);
    }
    if (thread >= kBins) return;
    publish_inclusive(word, before + total);
    const uint32_t offset = before - start;
    if constexpr (kHigh)
      store_shared(shared + kOffsets + thread * 4, offset);
    else
      store_shared(shared + kOffsets + thread * 8, make_uint2(offset, start));
  }

  // Numbers the patterns, and finds their bins: how many of them have smaller codes. All threads call.
  __device__ __forceinline__ void prepare_patterns() const {
    const PatternSet set(shared + Tile::kSet);
    const uint32_t table = shared + Tile::kBinOfPattern;
    for (uint32_t i = thread; i < kPatternWords; i += kThreads) store_shared(set.bits + i * 4, __ldcg(arguments.patterns + i));
    if (thread < kBins) store_shared(shared + kCounts + thread * 4, 0);
    __syncthreads();
    const uint32_t patterns = set.template count<kThreads>(shared + Tile::kScratch);
    for (uint32_t i = thread; i < kPatternWords; i += kThreads) {
      uint32_t number = load_shared_8(set.before + i);
      for (uint32_t word = load_shared(set.bits + i * 4); word != 0; word &= word - 1) {
        store_shared(table + number * 4, i * 32 + __ffs(static_cast<int>(word)) - 1);
        ++number;
      }
    }
    __syncthreads();
    uint32_t pattern = 0, bin = 0;
    if (thread < patterns) {
      pattern = load_shared(table + thread * 4);
      const uint32_t code = Tile::code_of(pattern);
      for (uint32_t i = 0; i < patterns; ++i) bin += Tile::code_of(load_shared(table + i * 4)) < code ? 1 : 0;
      add_shared(shared + kCounts + bin * 4, __ldcg(arguments.bins + 2 * kBins + thread));
    }
    __syncthreads();
    if (thread < patterns) store_shared(table + thread * 4, pattern << 16 | bin << 2);
    __syncthreads();
  }

  __device__ __forceinline__ uint32_t* ticket() const {
    return arguments.control->tickets + static_cast<int>(Tile::kStep);
  }

  // Takes, loads and counts the first tile, if there is one. Needs a clear ticket and the input.
  __device__ __forceinline__ void begin() {
    if (thread == kThreads - 1) {
      store_shared(shared + kNextTile, atomicAdd(ticket(), 1u));
      store_shared(shared + kOneBin, 0);
      Tile::clear_findings(0);
      Tile::clear_findings(4);
    }
    __syncthreads();
    tile = warp_uniform(load_shared(shared + kNextTile));
    if (tile >= tiles()) return;
    if constexpr (kPatterns) prepare_patterns();
    Tile::clear_histogram();
    const Range range = Tile::range_of(tile);
#pragma unroll
    for (int group = 0; group < kGroups; ++group) Tile::load_group(range, group);
    Tile::count_tile(range, 0);
    __syncthreads();
  }

  // All that follows. Needs clear tables and the bins.
  __device__ __forceinline__ void run() {
    if (tile >= tiles()) return;
    uint32_t parity = 0;
    for (;;) {  // the tile is loaded and counted
      const Range range = Tile::range_of(tile);
      uint32_t next_tile = 0;
      if (thread == kThreads - 1) next_tile = atomicAdd(ticket(), 1u);
      uint32_t total = 0, start = 0;
      uint32_t* word = arguments.look_back[kPass] + static_cast<uint64_t>(tile) * kBins + thread;
      if (thread < kBins) {
        total = count_of_bin(tile, word, parity);
        start = sum_in_warp(total);
      }
      __syncthreads();
      if (thread < kBins) {
        start = sum_over_warps(start) - total;
        place_bin(start);
      }
      if (thread == kThreads - 1) Tile::clear_findings(parity ^ 4);  // for the next tile, whose votes come after two barriers
      __syncthreads();                                               // places in the tile are known
      if (thread == kThreads - 1) {
        store_shared(shared + kNextTile, next_tile);
        const bool one_bin = load_shared(shared + kOneBin) != 0;  // slower with a prefetch then, see onesweep_pass.cuh
        store_shared(shared + kOneBin, 0);
        if (!kHigh && !one_bin && next_tile < tiles()) Tile::prefetch(next_tile);
      }
      Tile::scatter(range, parity);
      __syncwarp();
      Tile::clear_histogram();
      find_offsets(tile, word, total, start);
      __syncthreads();  // records and offsets are in place
      tile = warp_uniform(load_shared(shared + kNextTile));
      const bool more = tile < tiles();
      const Range next = Tile::range_of(more ? tile : 0);
      bool wrong = false;
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        if (more) Tile::load_group(next, group);
        wrong |= Tile::template write_rounds<kGroup>(range, group * kGroup);
        if (more && kCountsBetween && group > 0) Tile::count_group(next, group - 1);
      }
      parity ^= 4;
      if (more) Tile::count_tile(next, parity, kCountsBetween ? kGroups - 1 : 0);
      if (__syncthreads_or(wrong)) Tile::mend(range);
      if (!more) return;
    }
  }
};

template <HalfStep kStep, bool kKeepsRanks = false>
using HalfTileOf = HalfTile<kStep, half_shape(kStep).threads, half_shape(kStep).items, kKeepsRanks>;

template <auto kKernel>
cudaError_t launch_half_pass(const HalfArguments& arguments, int grid, int threads, int shared_bytes, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(kKernel, shared_bytes, prepared);
  if (error != cudaSuccess) return error;
  return launch_after_predecessor<kKernel>(arguments, LaunchShape{static_cast<unsigned>(grid), threads, shared_bytes, true}, stream);
}

}  // namespace gpusort
