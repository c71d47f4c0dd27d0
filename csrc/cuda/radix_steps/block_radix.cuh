// The kernels of R2 to R4: count digits per tile, then partition each tile on chip and write its runs. See block_radix.cu for the story.
#pragma once

#include <cuda_runtime.h>

#include "../primitives/block_scan.cuh"
#include "../primitives/device_scan.cuh"
#include "radix_pass.cuh"

namespace gpusort {

constexpr int kRadixBlockWarps = kRadixBlockThreads / kWarpSize;

// The counts of all tiles, digit-major: [row][digit][tile]. Scanned as one flat array they are the places in the output where each tile's
// run of each digit begins, because every row and every digit is as long as its counts say. Null when every row is a single tile.
struct RadixCounts {
  void* data = nullptr;
  int offset_bytes = 4;
  int64_t tiles_per_row = 1;

  __device__ __forceinline__ int64_t slot(int64_t row, int bins, int digit, int64_t tile_in_row) const {
    return (row * bins + digit) * tiles_per_row + tile_in_row;
  }
  __device__ __forceinline__ void store(int64_t slot, unsigned count) const {
    if (offset_bytes == 4)
      static_cast<uint32_t*>(data)[slot] = count;
    else
      static_cast<uint64_t*>(data)[slot] = count;
  }
  __device__ __forceinline__ int64_t load(int64_t slot) const {
    return offset_bytes == 4 ? int64_t{static_cast<const uint32_t*>(data)[slot]} : static_cast<const int64_t*>(data)[slot];
  }
};

// The part of a row that one block handles.
struct RadixTile {
  int64_t row = 0;
  int64_t tile_in_row = 0;
  int64_t row_begin = 0;
  int64_t begin = 0;
  int count = 0;
};

// Blocks are numbered over a two-dimensional grid, because there may be more tiles than one grid dimension holds. False: no such tile.
template <class U>
__device__ __forceinline__ bool find_radix_tile(const RadixPass<U>& pass, int64_t tiles_per_row, int tile_keys, RadixTile& tile) {
  const int64_t number = int64_t{blockIdx.y} * gridDim.x + blockIdx.x;
  tile.row = tiles_per_row == 1 ? number : number / tiles_per_row;
  if (tile.row >= pass.rows) return false;
  tile.tile_in_row = tiles_per_row == 1 ? 0 : number - tile.row * tiles_per_row;
  tile.row_begin = tile.row * pass.length;
  tile.begin = tile.row_begin + tile.tile_in_row * tile_keys;
  const int64_t left = tile.row_begin + pass.length - tile.begin;
  tile.count = left < tile_keys ? static_cast<int>(left) : tile_keys;
  return true;
}

__device__ __forceinline__ bool is_aligned_16(const void* pointer) {
  return (reinterpret_cast<uintptr_t>(pointer) & 15) == 0;
}

// Adds the digits of one tile to `bins`, kVector keys a thread and step, so that a wide load feeds kVector counts.
template <class U, int kDigitBits, int kVector>
__device__ __forceinline__ void count_tile_digits(const RadixPass<U>& pass, const RadixTile& tile, unsigned* bins) {
  constexpr int kBins = 1 << kDigitBits;
  struct alignas(sizeof(U) * kVector) Vector {
    U keys[kVector];
  };
  const int lane = threadIdx.x % kWarpSize;
  unsigned lane_count = 0;
  for (int step = 0; step < tile.count; step += kRadixBlockThreads * kVector) {
    const int at = step + threadIdx.x * kVector;
    const bool valid = at < tile.count;  // all kVector keys are: wide steps are taken in full tiles only
    Vector loaded;
    if (valid) loaded = *reinterpret_cast<const Vector*>(pass.keys_in + tile.begin + at);
#pragma unroll
    for (int item = 0; item < kVector; ++item) {
      const unsigned digit = valid ? pass.digit(pass.encode(loaded.keys[item])) : kBins;
      if constexpr (kBins <= 4) {
        // Few bins: 32 atomics on one address are served one by one, a vote per bin is not. Lane b keeps the count of bin b.
#pragma unroll
        for (int bin = 0; bin < kBins; ++bin) {
          const unsigned votes = __popc(__ballot_sync(~0u, digit == bin));
          if (lane == bin) lane_count += votes;
        }
      } else if (valid) {
        atomicAdd(bins + digit, 1u);
      }
    }
  }
  if (kBins <= 4 && lane < kBins) atomicAdd(bins + lane, lane_count);
}

template <class U, int kDigitBits>
__global__ void __launch_bounds__(kRadixBlockThreads)
    block_radix_count_kernel(RadixPass<U> pass, RadixCounts counts, int tile_keys, bool wide_loads) {
  constexpr int kBins = 1 << kDigitBits;
  constexpr int kVector = 16 / sizeof(U);
  __shared__ unsigned bins[kBins];
  RadixTile tile;
  if (!find_radix_tile(pass, counts.tiles_per_row, tile_keys, tile)) return;
  if (threadIdx.x < kBins) bins[threadIdx.x] = 0;
  __syncthreads();
  const bool wide =
      wide_loads && tile.count == tile_keys && tile_keys % (kWarpSize * kVector) == 0 && is_aligned_16(pass.keys_in + tile.begin);
  if (wide)
    count_tile_digits<U, kDigitBits, kVector>(pass, tile, bins);
  else
    count_tile_digits<U, kDigitBits, 1>(pass, tile, bins);
  __syncthreads();
  if (threadIdx.x < kBins) counts.store(counts.slot(tile.row, kBins, threadIdx.x, tile.tile_in_row), bins[threadIdx.x]);
}

// Moves the indices the way the keys went: into shared memory by slot, then out by slot, so that the writes run along the bins.
template <class Index, class U, int kKeysPerThread>
__device__ __forceinline__ void move_indices(const RadixPass<U>& pass, const RadixTile& tile, const unsigned (&slots)[kKeysPerThread],
                                             int own_begin, const U* staged_keys, const int64_t* run_begin, Index* staged) {
#pragma unroll
  for (int item = 0; item < kKeysPerThread; ++item) {
    const int at = own_begin + item * kWarpSize;
    if (at < tile.count) staged[slots[item]] = static_cast<Index>(pass.load_index(tile.begin + at, tile.row_begin));
  }
  __syncthreads();
  for (int slot = threadIdx.x; slot < tile.count; slot += kRadixBlockThreads) {
    pass.store_index(staged[slot], run_begin[pass.digit(staged_keys[slot])] + slot);
  }
}

// Dynamic shared memory: the tile's keys, then (with indices) the tile's indices.
template <class U, int kDigitBits, int kKeysPerThread>
__global__ void __launch_bounds__(kRadixBlockThreads)
    block_radix_scatter_kernel(RadixPass<U> pass, RadixCounts counts, int record_index_bytes, bool wide_loads) {
  constexpr int kBins = 1 << kDigitBits;
  constexpr int kTileKeys = kRadixBlockThreads * kKeysPerThread;
  constexpr int kVector = 16 / sizeof(U);
  extern __shared__ uint4 dynamic_shared[];
  __shared__ unsigned warp_bins[kRadixBlockWarps][kBins];
  __shared__ int64_t run_begin[kBins];  // output place of slot s of digit d: run_begin[d] + s
  __shared__ BlockScanStorage<unsigned> scan_storage;
  U* const staged_keys = reinterpret_cast<U*>(dynamic_shared);
  void* const staged_indices = staged_keys + kTileKeys;

  RadixTile tile;
  if (!find_radix_tile(pass, counts.tiles_per_row, kTileKeys, tile)) return;
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;
  const int warp_begin = warp * (kWarpSize * kKeysPerThread);
  const int own_begin = warp_begin + lane;  // a warp's keys lie in memory order: item k of lane l is number 32 * k + l

  for (int bin = lane; bin < kBins; bin += kWarpSize) warp_bins[warp][bin] = 0;

  U keys[kKeysPerThread];
  bool loaded = false;
  if constexpr (kKeysPerThread % kVector == 0) {
    if (wide_loads && tile.count == kTileKeys && is_aligned_16(pass.keys_in + tile.begin)) {
      // 16 bytes hold neighbours; ranking wants neighbours in neighbouring lanes. The warp turns them round in its part of the stage.
      const uint4* const source = reinterpret_cast<const uint4*>(pass.keys_in + tile.begin + warp_begin);
      uint4* const stage = reinterpret_cast<uint4*>(staged_keys + warp_begin);
#pragma unroll
      for (int item = 0; item < kKeysPerThread / kVector; ++item) stage[item * kWarpSize + lane] = source[item * kWarpSize + lane];
      __syncwarp();
#pragma unroll
      for (int item = 0; item < kKeysPerThread; ++item) keys[item] = pass.encode(staged_keys[own_begin + item * kWarpSize]);
      loaded = true;
    }
  }
  if (!loaded) {
#pragma unroll
    for (int item = 0; item < kKeysPerThread; ++item) {
      const int at = own_begin + item * kWarpSize;
      keys[item] = at < tile.count ? pass.load_key(tile.begin + at) : U{0};
    }
  }
  __syncwarp();

  // Rank within the warp: peers are the lanes whose digit agrees in every bit; before a key come the peers of lower lanes and what the
  // warp's counter has seen in earlier items.
  unsigned slots[kKeysPerThread];
#pragma unroll
  for (int item = 0; item < kKeysPerThread; ++item) {
    const bool valid = own_begin + item * kWarpSize < tile.count;
    const unsigned digit = pass.digit(keys[item]);
    unsigned peers = __ballot_sync(~0u, valid);
#pragma unroll
    for (int bit = 0; bit < kDigitBits; ++bit) {
      const bool set = (digit >> bit) & 1;
      const unsigned votes = __ballot_sync(~0u, set);
      peers &= set ? votes : ~votes;
    }
    const unsigned lower_peers = peers & ((1u << lane) - 1);
    const unsigned seen = warp_bins[warp][digit];
    __syncwarp();
    if (valid && lower_peers == 0) warp_bins[warp][digit] = seen + __popc(peers);
    __syncwarp();
    slots[item] = seen + __popc(lower_peers);
  }
  __syncthreads();

  // Place of each warp's first key of each digit: digits in order, within a digit warps in order.
  unsigned bin_count = 0;
  if (threadIdx.x < kBins) {
#pragma unroll
    for (int w = 0; w < kRadixBlockWarps; ++w) {
      const unsigned count = warp_bins[w][threadIdx.x];
      warp_bins[w][threadIdx.x] = bin_count;
      bin_count += count;
    }
  }
  unsigned tile_total;
  const unsigned bin_begin = block_exclusive_scan(bin_count, tile_total, scan_storage);
  if (threadIdx.x < kBins) {
#pragma unroll
    for (int w = 0; w < kRadixBlockWarps; ++w) warp_bins[w][threadIdx.x] += bin_begin;
    const int64_t first =
        counts.data == nullptr ? tile.row_begin + bin_begin : counts.load(counts.slot(tile.row, kBins, threadIdx.x, tile.tile_in_row));
    run_begin[threadIdx.x] = first - bin_begin;
  }
  __syncthreads();

#pragma unroll
  for (int item = 0; item < kKeysPerThread; ++item) {
    if (own_begin + item * kWarpSize < tile.count) {
      slots[item] += warp_bins[warp][pass.digit(keys[item])];
      staged_keys[slots[item]] = keys[item];
    }
  }
  __syncthreads();
  for (int slot = threadIdx.x; slot < tile.count; slot += kRadixBlockThreads) {
    const U key = staged_keys[slot];
    pass.store_key(key, run_begin[pass.digit(key)] + slot);
  }
  if (record_index_bytes == 4) move_indices(pass, tile, slots, own_begin, staged_keys, run_begin, static_cast<uint32_t*>(staged_indices));
  if (record_index_bytes == 8) move_indices(pass, tile, slots, own_begin, staged_keys, run_begin, static_cast<uint64_t*>(staged_indices));
}

inline dim3 radix_grid(int64_t tiles) {
  constexpr int64_t kMostInOneDimension = int64_t{1} << 30;
  if (tiles <= kMostInOneDimension) return dim3(static_cast<unsigned>(tiles));
  return dim3(static_cast<unsigned>(kMostInOneDimension), static_cast<unsigned>(steps_ceil_div(tiles, kMostInOneDimension)));
}

template <class U, int kDigitBits, int kKeysPerThread>
cudaError_t run_block_radix(const SortProblem& problem, const RadixStepsPlan& plan, void* workspace, cudaStream_t stream) {
  constexpr int kTileKeys = kRadixBlockThreads * kKeysPerThread;
  const auto scatter = block_radix_scatter_kernel<U, kDigitBits, kKeysPerThread>;
  const int shared_bytes = kTileKeys * (static_cast<int>(sizeof(U)) + plan.record_index_bytes);
  // One value for all lengths: the attribute is the kernel's, which other threads launch too.
  constexpr int kMostBytes = kTileKeys * (static_cast<int>(sizeof(U)) + 8);
  cudaError_t error = cudaFuncSetAttribute(scatter, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostBytes);
  if (error != cudaSuccess) return error;
  char* const base = static_cast<char*>(workspace);
  const dim3 grid = radix_grid(problem.rows * plan.tiles_per_row);
  RadixCounts counts;
  counts.offset_bytes = plan.offset_bytes;
  counts.tiles_per_row = plan.tiles_per_row;
  if (plan.offset_count > 0) counts.data = base + plan.offsets;
  for (int number = 0; number < plan.passes; ++number) {
    const RadixPass<U> pass = make_radix_pass<U>(problem, plan, workspace, number);
    if (counts.data != nullptr) {
      block_radix_count_kernel<U, kDigitBits><<<grid, kRadixBlockThreads, 0, stream>>>(pass, counts, kTileKeys, plan.wide_loads);
      if (error = cudaGetLastError(); error != cudaSuccess) return error;
      error = plan.offset_bytes == 4 ? launch_exclusive_scan(static_cast<uint32_t*>(counts.data), plan.offset_count,
                                                             reinterpret_cast<uint32_t*>(base + plan.scan_totals), stream)
                                     : launch_exclusive_scan(static_cast<uint64_t*>(counts.data), plan.offset_count,
                                                             reinterpret_cast<uint64_t*>(base + plan.scan_totals), stream);
      if (error != cudaSuccess) return error;
    }
    scatter<<<grid, kRadixBlockThreads, shared_bytes, stream>>>(pass, counts, plan.record_index_bytes, plan.wide_loads);
    if (error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

template <class U, int kDigitBits>
cudaError_t run_block_radix(const SortProblem& problem, const RadixStepsPlan& plan, void* workspace, cudaStream_t stream) {
  switch (plan.keys_per_thread) {
    case 1: return run_block_radix<U, kDigitBits, 1>(problem, plan, workspace, stream);
    case 4: return run_block_radix<U, kDigitBits, 4>(problem, plan, workspace, stream);
    case 8: return run_block_radix<U, kDigitBits, 8>(problem, plan, workspace, stream);
    case 16: return run_block_radix<U, kDigitBits, 16>(problem, plan, workspace, stream);
    default: return cudaErrorInvalidValue;
  }
}

// Instantiated once per key width in block_radix_u8.cu, block_radix_u16.cu, block_radix_u32.cu, block_radix_u64.cu.
template <class U>
cudaError_t launch_block_radix_width(const SortProblem& problem, const RadixStepsPlan& plan, void* workspace, cudaStream_t stream) {
  switch (plan.digit_bits) {
    case 1: return run_block_radix<U, 1>(problem, plan, workspace, stream);
    case 2: return run_block_radix<U, 2>(problem, plan, workspace, stream);
    case 4: return run_block_radix<U, 4>(problem, plan, workspace, stream);
    case 8: return run_block_radix<U, 8>(problem, plan, workspace, stream);
    default: return cudaErrorInvalidValue;
  }
}

extern template cudaError_t launch_block_radix_width<uint8_t>(const SortProblem&, const RadixStepsPlan&, void*, cudaStream_t);
extern template cudaError_t launch_block_radix_width<uint16_t>(const SortProblem&, const RadixStepsPlan&, void*, cudaStream_t);
extern template cudaError_t launch_block_radix_width<uint32_t>(const SortProblem&, const RadixStepsPlan&, void*, cudaStream_t);
extern template cudaError_t launch_block_radix_width<uint64_t>(const SortProblem&, const RadixStepsPlan&, void*, cudaStream_t);

}  // namespace gpusort
