// Puts records in order that lie in bins, one bin behind the other, so that only records of one bin may be out of order.
//
// Blocks of four records are sorted, and merged with the one before and the one behind by turns: odd-even transposition sort of blocks
// (Baudet, Stevenson, "Optimal sorting algorithms for parallel computers", 1978), which sorts as many blocks as it takes turns. The s
// records of a bin lie in at most (s + 2) / 4 + 1 blocks, and records of other bins are in order with them already. So two turns do for
// bins of up to five records, one more for each four. A thread merges two blocks in registers by Batcher's odd-even merge ("Sorting
// networks and their applications", 1968).
//
// About 30 instructions a record, and the results can be written by neighbours; ranking each among the records of its bin takes 85.
#pragma once

#include <cstdint>

#include "../primitives/shared_memory.cuh"

namespace gpusort {

// Records are (index, key). Windows of eight that neighbouring threads read at a time are in different banks. The address is a multiple of
// 64, and there is room for kWindowPads records behind the last, which are larger than any.
struct BinWindows {
  static constexpr int kWindow = 8;

  uint32_t records;  // shared address

  __device__ __forceinline__ uint32_t address(uint32_t place) const { return records + (place << 3 ^ (place & 0x30)); }

  __device__ __forceinline__ static void put_in_order(uint2& a, uint2& b) {
    const bool turned = (static_cast<uint64_t>(b.y) << 32 | b.x) < (static_cast<uint64_t>(a.y) << 32 | a.x);
    const uint2 low = turned ? b : a, high = turned ? a : b;
    a = low;
    b = high;
  }

  __device__ __forceinline__ static void sort_block(uint2& a, uint2& b, uint2& c, uint2& d) {
    put_in_order(a, b);
    put_in_order(c, d);
    put_in_order(a, c);
    put_in_order(b, d);
    put_in_order(b, c);
  }

  __device__ __forceinline__ static void merge_blocks(uint2 (&window)[kWindow]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) put_in_order(window[i], window[i + 4]);
    put_in_order(window[2], window[4]);
    put_in_order(window[3], window[5]);
#pragma unroll
    for (int i = 1; i < 7; i += 2) put_in_order(window[i], window[i + 1]);
  }

  // The window that begins at `first`, a multiple of four.
  __device__ __forceinline__ void load(uint32_t first, uint2 (&window)[kWindow]) const {
#pragma unroll
    for (int k = 0; k < kWindow; k += 2) {
      uint4 pair;
      load_shared(address(first + k), pair);
      window[k] = make_uint2(pair.x, pair.y);
      window[k + 1] = make_uint2(pair.z, pair.w);
    }
  }

  __device__ __forceinline__ void store(uint32_t first, const uint2 (&window)[kWindow]) const {
#pragma unroll
    for (int k = 0; k < kWindow; k += 2) {
      store_shared(address(first + k), make_uint4(window[k].x, window[k].y, window[k + 1].x, window[k + 1].y));
    }
  }

  // `size` records, of which no bin has more than `most`. All threads call, behind a barrier; ends with one.
  template <int kThreads>
  __device__ __forceinline__ void sort(uint32_t size, uint32_t most) const {
    constexpr uint32_t kStride = kThreads * kWindow;
#pragma unroll 1
    for (uint32_t first = threadIdx.x * kWindow; first < size; first += kStride) {
      uint2 window[kWindow];
      load(first, window);
      sort_block(window[0], window[1], window[2], window[3]);
      sort_block(window[4], window[5], window[6], window[7]);
      merge_blocks(window);
      store(first, window);
    }
    __syncthreads();
#pragma unroll 1
    for (uint32_t turns = (most + 2) / 4, from = 4; turns > 0; --turns, from ^= 4) {
#pragma unroll 1
      for (uint32_t first = from + threadIdx.x * kWindow; first < size; first += kStride) {
        uint2 window[kWindow];
        load(first, window);
        merge_blocks(window);
        store(first, window);
      }
      __syncthreads();
    }
  }
};

constexpr int kWindowPads = 8;  // as far as a window may reach beyond the last record

}  // namespace gpusort
