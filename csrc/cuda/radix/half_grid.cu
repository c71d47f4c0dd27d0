// The sort of 16-bit keys with indices that fit the chip, in one launch (half_sort.h): every block is resident and has one tile.
//
//   count the low bytes (half_tile.cuh), publish the tile's counts    barrier of the grid; the tile is staged while the others arrive
//   add up the counts of all tiles before this one, write              barrier
//   the same for the high byte, from what was written, to the outputs  one barrier, between counts and write
//
// Sorted keys are found out at the first barrier, and leave their block as they have come.
#include <cooperative_groups.h>

#include <atomic>

#include "../primitives/dependent_launch.cuh"
#include "../primitives/kernel_setup.h"
#include "half_tile.cuh"

namespace gpusort {
namespace {

namespace cg = cooperative_groups;

template <class Tile>
struct HalfGridTile : Tile {
  using Tile::arguments;
  using Tile::kGroup;
  using Tile::kGroups;
  using Tile::kHigh;
  using Tile::kOffsets;
  using Tile::kThreads;
  using Tile::kUnit;
  using Tile::kWarps;
  using Tile::kWarpSums;
  using Tile::lane;
  using Tile::shared;
  using Tile::thread;
  using Tile::Tile;
  using Tile::warp;
  using typename Tile::Range;
  static constexpr uint32_t kBins = kHalfBins;
  static constexpr uint32_t kQuads = kBins / 4;  // four counts of 16 bits to 8 bytes
  // Two words for each bin, in place of histograms that are no longer needed: in all tiles, in those before this one.
  static constexpr uint32_t kInAll = 0, kBefore = 4 * 72 * 4;
  // Where those of a bin are. Threads that add differ by 4 bins, those that read by one: either way they meet in no bank.
  __device__ __forceinline__ static uint32_t word_of(uint32_t bin) { return (bin % 4 * 72 + bin / 4) * 4; }

  const Range range = Tile::range_of(blockIdx.x);

  // 256 threads have a bin each. Of a short tile these are the last ones, and they add up the counts over their warps before the block
  // arrives at the barrier of the grid: they go on from there while thread 0 waits until what the block has published is there (H200, 2^20
  // float16: 21.2 to 20.8 us). A long tile has too few registers for that (2^21: 35.3 to 36.3); ptxas does best by these expressions as
  // they stand.
  static constexpr bool kShort = kThreads == kHalfGridShapes[0].threads;
  static constexpr uint32_t kFirstOfBins = kShort ? kThreads - kBins : 0;

  __device__ __forceinline__ uint16_t* counts_of(uint32_t tile) const {
    return arguments.grid_counts + (static_cast<uint64_t>(kHigh ? gridDim.x : 0) + tile) * kBins;
  }

  __device__ __forceinline__ void load() {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) Tile::load_group(range, group);
  }

  // Is some key smaller than the one before it?
  __device__ __forceinline__ bool unsorted() const {
    bool found = false;
    uint32_t last = 0;  // the code before these 32; lane 0 compares with it
    if (lane == 0 && range.first + this->own > 0 && this->own < range.items)
      last = Tile::code_of(Tile::keys()[range.first + this->own - 1]);
#pragma unroll
    for (int item = 0; item < Tile::kItems; ++item) {
      const uint32_t code = Tile::code_of(this->input[item]);
      const uint32_t place = this->own + item * 32;
      uint32_t before = __shfl_up_sync(~0u, code, 1);
      if (lane == 0) before = last;
      last = __shfl_sync(~0u, code, 31);
      found |= place < range.items && range.first + place > 0 && before > code;
    }
    return found;
  }

  // Before a barrier, and this before count().
  __device__ __forceinline__ void clear() const {
    if (thread == 0) Tile::clear_findings(0);
    Tile::clear_histogram();
  }

  // Keys that are loaded.
  __device__ __forceinline__ void count() {
    Tile::count_tile(range, 0);
    __syncthreads();
  }

  __device__ __forceinline__ uint32_t column(int h) const {
    return shared + (thread - kFirstOfBins) * 4 + h * (kBins * 4);
  }

  __device__ __forceinline__ uint32_t sum_in_warp(uint32_t value) const {
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, value, distance);
      if (lane >= distance) value += other;
    }
    if (lane == 31) store_shared(shared + kWarpSums + (kShort ? (thread - kFirstOfBins) / 32 : warp) * 4, value);
    return value;
  }
  __device__ __forceinline__ uint32_t sum_over_warps(uint32_t sum) const {
#pragma unroll
    for (int k = 0; k < static_cast<int>(kBins / 32); ++k) {
      const uint32_t other = load_shared(shared + kWarpSums + k * 4);
      if (k < (kShort ? (thread - kFirstOfBins) / 32 : warp)) sum += other;
    }
    return sum;
  }

  // Publishes how many items of the thread's bin the tile has.
  __device__ __forceinline__ uint32_t publish_counts() const {
    uint32_t total = 0;
    if (kShort ? thread >= kFirstOfBins : thread < kBins) {
#pragma unroll
      for (int h = 0; h < kWarps; ++h) total += load_shared(column(h));
      counts_of(blockIdx.x)[thread - kFirstOfBins] = static_cast<uint16_t>(total);
      Tile::note_common(thread - kFirstOfBins, total, 0);
    }
    return total;
  }

  // Stages the tile; returns where the run of the thread's bin begins in it. `start`: of a short tile, the sum of `total` in the warp.
  __device__ __forceinline__ uint32_t stage(uint32_t total, uint32_t start) const {
    if constexpr (!kShort) {
      if (thread < kBins) start = sum_in_warp(total);
      __syncthreads();
    }
    if (kShort ? thread >= kFirstOfBins : thread < kBins) {
      start = sum_over_warps(start) - total;
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
    __syncthreads();
    Tile::scatter(range, 0);
    __syncthreads();
    Tile::clear_histogram();
    return start;
  }

  // What must be added to a place in the tile to get the position in the row, for the thread's bin. Or, if the keys turn out to be sorted,
  // nothing: returns false then.
  __device__ __forceinline__ bool find_offsets(uint32_t start) const {
    bool any = kHigh;
    if constexpr (!kHigh) {
      for (uint32_t block = thread; block < gridDim.x; block += kThreads) any |= __ldcg(arguments.grid_unsorted + block) != 0;
    }
    const uint32_t quad = thread % kQuads;
    const uint2* counts = reinterpret_cast<const uint2*>(counts_of(0)) + quad;
    uint32_t all[4] = {0, 0, 0, 0}, before[4] = {0, 0, 0, 0};
    constexpr uint32_t kRows = kThreads / kQuads;
    constexpr int kBatch = 128 / kRows + 1;  // in flight: 132 tiles at once
    for (uint32_t first = thread / kQuads; first < gridDim.x; first += kRows * kBatch) {
      uint2 four[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const uint32_t tile = first + k * kRows;
        four[k] = tile < gridDim.x ? __ldcg(counts + tile * kQuads) : make_uint2(0, 0);
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const uint32_t mask = first + k * kRows < blockIdx.x ? ~0u : 0;
        const uint32_t counts_of_tile[4] = {four[k].x & 0xffff, four[k].x >> 16, four[k].y & 0xffff, four[k].y >> 16};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          all[i] += counts_of_tile[i];
          before[i] += counts_of_tile[i] & mask;
        }
      }
    }
    if (!__syncthreads_or(any)) return false;  // else the histograms are clear
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      add_shared(shared + kInAll + word_of(quad * 4 + k), all[k]);
      add_shared(shared + kBefore + word_of(quad * 4 + k), before[k]);
    }
    __syncthreads();
    uint32_t items = 0, end = 0;
    if (kShort ? thread >= kFirstOfBins : thread < kBins) {
      items = load_shared(shared + kInAll + word_of(thread - kFirstOfBins));
      end = sum_in_warp(items);
    }
    __syncthreads();
    if (kShort ? thread >= kFirstOfBins : thread < kBins) {
      const uint32_t offset = sum_over_warps(end) - items + load_shared(shared + kBefore + word_of(thread - kFirstOfBins)) - start;
      if constexpr (kHigh)
        store_shared(shared + kOffsets + (thread - kFirstOfBins) * 4, offset);
      else
        store_shared(shared + kOffsets + (thread - kFirstOfBins) * 8, make_uint2(offset, start));
    }
    __syncthreads();
    return true;
  }

  __device__ __forceinline__ void write() const {
    bool wrong = false;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) wrong |= Tile::template write_rounds<kGroup>(range, group * kGroup);
    if (__syncthreads_or(wrong)) Tile::mend(range);
  }

  // The tile's keys as they are, and their positions.
  __device__ __forceinline__ void copy() const {
#pragma unroll 8
    for (uint32_t place = thread; place < range.items; place += kThreads) {
      const uint32_t position = range.first + place;
      if (arguments.keys_out != nullptr) arguments.keys_out[position] = Tile::keys()[position];
      if (arguments.index_bytes == 8)
        static_cast<int64_t*>(arguments.indices_out)[position] = position;
      else
        static_cast<uint32_t*>(arguments.indices_out)[position] = position;
    }
  }
};

template <int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads, 1) half_grid_kernel(const __grid_constant__ HalfArguments arguments) {
  start_after_predecessor();
  extern __shared__ __align__(1024) uint8_t staging[];
  if (arguments.called_off != nullptr && *arguments.called_off != 0) return;  // all blocks do
  const cg::grid_group grid = cg::this_grid();
  const uint32_t shared = shared_address(staging);
  {
    HalfGridTile<HalfTile<HalfStep::kLow, kThreads, kItems>> tile(arguments, shared);
    tile.load();
    if (tile.kShort) tile.clear();
    const bool unsorted = __syncthreads_or(tile.unsorted()) != 0;
    if (threadIdx.x == 0) arguments.grid_unsorted[blockIdx.x] = unsorted ? 1 : 0;
    if (!tile.kShort) {
      tile.clear();
      __syncthreads();
    }
    tile.count();
    const uint32_t total = tile.publish_counts();
    uint32_t sum = 0;
    if (tile.kShort && threadIdx.x >= tile.kFirstOfBins) sum = tile.sum_in_warp(total);
    auto arrived = grid.barrier_arrive();
    const uint32_t start = tile.stage(total, sum);
    grid.barrier_wait(static_cast<decltype(arrived)&&>(arrived));
    if (!tile.find_offsets(start)) {
      tile.copy();
      return;
    }
    tile.write();
  }
  grid.sync();
  HalfGridTile<HalfTile<HalfStep::kHigh, kThreads, kItems>> tile(arguments, shared);
  tile.load();
  tile.clear();
  __syncthreads();
  tile.count();
  const uint32_t total = tile.publish_counts();
  uint32_t sum = 0;
  if (tile.kShort && threadIdx.x >= tile.kFirstOfBins) sum = tile.sum_in_warp(total);
  auto arrived = grid.barrier_arrive();
  const uint32_t start = tile.stage(total, sum);
  grid.barrier_wait(static_cast<decltype(arrived)&&>(arrived));
  tile.find_offsets(start);
  tile.write();
}

template <int kThreads, int kItems>
cudaError_t launch_shape(const HalfArguments& arguments, int grid, cudaStream_t stream) {
  constexpr HalfShape kShape = {kThreads, kItems};
  constexpr int kSharedBytes = half_shared_bytes(HalfStep::kHigh, kShape);
  static_assert(kSharedBytes >= half_shared_bytes(HalfStep::kLow, kShape), "one size serves both");
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(half_grid_kernel<kThreads, kItems>, kSharedBytes, prepared);
  if (error != cudaSuccess) return error;
  const LaunchShape launch = {static_cast<unsigned>(grid), kThreads, kSharedBytes, true, true};
  return launch_after_predecessor<half_grid_kernel<kThreads, kItems>>(arguments, launch, stream);
}

}  // namespace

cudaError_t launch_half_grid(const HalfArguments& arguments, HalfShape shape, int grid, cudaStream_t stream) {
  constexpr HalfShape kShort = kHalfGridShapes[0], kLong = kHalfGridShapes[1];
  if (shape == kShort) return launch_shape<kShort.threads, kShort.items>(arguments, grid, stream);
  if (shape == kLong) return launch_shape<kLong.threads, kLong.items>(arguments, grid, stream);
  return cudaErrorInvalidValue;
}

}  // namespace gpusort
