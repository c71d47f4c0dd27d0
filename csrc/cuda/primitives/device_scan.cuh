// Exclusive sum over a whole array, in place: a multi-block scan.
//
// Reduce-then-scan (Blelloch 1990; Sengupta, Harris, Zhang, Owens, "Scan primitives for GPU computing", 2007), three launches:
//   1. every block adds up its tile                       reads n
//   2. one block scans the tiles' totals                  n / 4096 items
//   3. every block scans its tile, from its total on      reads n, writes n
// Blocks never wait for each other, so it is right on any scheduler. The production sort needs one read less (chained scan with look-back).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../../plan/steps_plan.h"
#include "block_scan.cuh"

namespace gpusort {

constexpr int kScanThreads = 256;
constexpr int kScanItemsPerThread = kScanTile / kScanThreads;
constexpr int kScanTotalsThreads = 1024;

// A thread's 16 neighbours in shared memory would all share one bank with the next thread's; one word of padding after 16 spreads them.
__device__ __forceinline__ int scan_slot(int item) {
  return item + item / kScanItemsPerThread;
}

template <class T>
__global__ void __launch_bounds__(kScanThreads) scan_reduce_kernel(const T* data, int64_t count, T* tile_totals) {
  __shared__ BlockScanStorage<T> storage;
  const int64_t begin = blockIdx.x * kScanTile;
  T sum = 0;
#pragma unroll
  for (int item = 0; item < kScanItemsPerThread; ++item) {
    const int64_t at = begin + item * kScanThreads + threadIdx.x;
    if (at < count) sum += data[at];
  }
  T total;
  block_exclusive_scan(sum, total, storage);
  if (threadIdx.x == 0) tile_totals[blockIdx.x] = total;
}

template <class T>
__global__ void __launch_bounds__(kScanTotalsThreads) scan_totals_kernel(T* tile_totals, int64_t tiles) {
  __shared__ BlockScanStorage<T> storage;
  T carry = 0;
  for (int64_t begin = 0; begin < tiles; begin += kScanTotalsThreads) {
    const int64_t at = begin + threadIdx.x;
    const T value = at < tiles ? tile_totals[at] : T{0};
    T total;
    const T before = block_exclusive_scan(value, total, storage);
    if (at < tiles) tile_totals[at] = carry + before;
    carry += total;
    __syncthreads();
  }
}

template <class T>
__global__ void __launch_bounds__(kScanThreads) scan_tiles_kernel(T* data, int64_t count, const T* tile_totals) {
  __shared__ BlockScanStorage<T> storage;
  __shared__ T tile[kScanTile + kScanTile / kScanItemsPerThread];
  const int64_t begin = blockIdx.x * kScanTile;
#pragma unroll
  for (int item = 0; item < kScanItemsPerThread; ++item) {
    const int position = item * kScanThreads + threadIdx.x;
    tile[scan_slot(position)] = begin + position < count ? data[begin + position] : T{0};
  }
  __syncthreads();
  T sum = 0;
#pragma unroll
  for (int item = 0; item < kScanItemsPerThread; ++item) sum += tile[scan_slot(threadIdx.x * kScanItemsPerThread + item)];
  T total;
  T running = tile_totals[blockIdx.x] + block_exclusive_scan(sum, total, storage);
#pragma unroll
  for (int item = 0; item < kScanItemsPerThread; ++item) {
    T& slot = tile[scan_slot(threadIdx.x * kScanItemsPerThread + item)];
    const T value = slot;
    slot = running;
    running += value;
  }
  __syncthreads();
#pragma unroll
  for (int item = 0; item < kScanItemsPerThread; ++item) {
    const int position = item * kScanThreads + threadIdx.x;
    if (begin + position < count) data[begin + position] = tile[scan_slot(position)];
  }
}

// `tile_totals` has room for ceil(count / kScanTile) items.
template <class T>
cudaError_t launch_exclusive_scan(T* data, int64_t count, T* tile_totals, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  const int64_t tiles = steps_ceil_div(count, kScanTile);
  const unsigned blocks = static_cast<unsigned>(tiles);
  scan_reduce_kernel<T><<<blocks, kScanThreads, 0, stream>>>(data, count, tile_totals);
  if (cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  scan_totals_kernel<T><<<1, kScanTotalsThreads, 0, stream>>>(tile_totals, tiles);
  if (cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  scan_tiles_kernel<T><<<blocks, kScanThreads, 0, stream>>>(data, count, tile_totals);
  return cudaGetLastError();
}

}  // namespace gpusort
