// Turns tiles of a strided tensor by square blocks: for matrices whose lines all begin at 16-byte boundaries.
//
// A thread loads kBlock x kBlock elements as kBlock vectors, which are the block's lines as they are read; its columns, which are the lines
// as they are written, are already in its registers. They go to shared memory as vectors again, so that a warp can write long pieces of
// few lines. A quarter of the loads, stores and addresses of a copy by elements (strided_copy.cu), whose instructions take nearly as long
// as the memory does. Vectors lie exchanged within their line of shared memory by the number of their block: neighbouring blocks would
// otherwise meet in the same banks.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

#include "../primitives/dependent_launch.cuh"
#include "turned_tile.cuh"

namespace gpusort {

constexpr int kTurningThreads = 256;

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) TurnedVector {
  using Bits = std::conditional_t<sizeof(T) * kCount == 16, uint4, std::conditional_t<sizeof(T) * kCount == 8, uint2, uint32_t>>;
  T at[kCount];

  // As one instruction: an assignment is split into elements.
  __device__ __forceinline__ void store(T* to) const { __stwb(reinterpret_cast<Bits*>(to), *reinterpret_cast<const Bits*>(at)); }
};

template <class Strided, class Packed, int kLengths, int kRows, bool kGather>
struct TurnedBlocks {
  using From = std::conditional_t<kGather, Strided, Packed>;
  using To = std::conditional_t<kGather, Packed, Strided>;  // may be wider when scattering: positions are widened on their way
  static constexpr int kBlock = sizeof(From) == 8 ? 2 : 4;
  static constexpr int kStored = sizeof(To) * kBlock > 16 ? 16 / sizeof(To) : kBlock;  // elements that are written at a time
  static constexpr int kIn = kGather ? kRows : kLengths;                               // of a line that is read
  static constexpr int kOut = kGather ? kLengths : kRows;                              // of a line that is written
  static constexpr int kInBlocks = kIn / kBlock, kOutBlocks = kOut / kBlock;
  static constexpr int kUnits = kInBlocks * kOutBlocks / kTurningThreads;  // blocks to a thread
  static constexpr int kExchanged = kOutBlocks < 8 ? kOutBlocks : 8;       // 8 vectors of 16 bytes are all banks
  using Vector = TurnedVector<From, kBlock>;
  static_assert(kUnits * kTurningThreads == kInBlocks * kOutBlocks, "every thread has as many blocks");

  Vector lines[kIn][kOutBlocks];

  static __device__ __forceinline__ int exchanged(int in_block, int out_block) { return out_block ^ in_block % kExchanged; }

  // `ins`, `outs`: of the tile, multiples of kBlock.
  __device__ __forceinline__ void turn(const From* from, int64_t from_pitch, To* to, int64_t to_pitch, int ins, int outs) {
    const int thread = static_cast<int>(threadIdx.x);
    Vector held[kUnits][kBlock];
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const int in = (u * kTurningThreads + thread) % kInBlocks * kBlock, out = (u * kTurningThreads + thread) / kInBlocks * kBlock;
      if (in < ins && out < outs) {
#pragma unroll
        for (int j = 0; j < kBlock; ++j) held[u][j] = *reinterpret_cast<const Vector*>(from + (out + j) * from_pitch + in);
      }
    }
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const int in_block = (u * kTurningThreads + thread) % kInBlocks, out_block = (u * kTurningThreads + thread) / kInBlocks;
#pragma unroll
      for (int i = 0; i < kBlock; ++i) {
        Vector turned;
#pragma unroll
        for (int j = 0; j < kBlock; ++j) turned.at[j] = held[u][j].at[i];
        lines[in_block * kBlock + i][exchanged(in_block, out_block)] = turned;
      }
    }
    __syncthreads();
    constexpr int kStores = kIn * kOut / kStored / kTurningThreads, kPerLine = kOut / kStored, kPerVector = kBlock / kStored;
    using Part = TurnedVector<From, kStored>;
#pragma unroll
    for (int s = 0; s < kStores; ++s) {
      const int in = (s * kTurningThreads + thread) / kPerLine, part = (s * kTurningThreads + thread) % kPerLine;
      if (in < ins && part * kStored < outs) {
        const Vector* vector = &lines[in][exchanged(in / kBlock, part / kPerVector)];
        const Part read = reinterpret_cast<const Part*>(vector)[part % kPerVector];
        TurnedVector<To, kStored> stored;
#pragma unroll
        for (int j = 0; j < kStored; ++j) stored.at[j] = read.at[j];
        stored.store(to + in * to_pitch + part * kStored);
      }
    }
  }
};

template <class Strided, class Packed>
struct TurnedArguments {
  StridedRows rows;
  TurnedAxis axis;
  int64_t first_tile;
  Strided* strided;
  Packed* packed;
};

template <class Strided, class Packed, int kLengths, int kRows, bool kGather>
__global__ void __launch_bounds__(kTurningThreads) turn_blocks_kernel(const __grid_constant__ TurnedArguments<Strided, Packed> arguments) {
  start_after_predecessor();
  __shared__ TurnedBlocks<Strided, Packed, kLengths, kRows, kGather> blocks;
  const StridedRows& rows = arguments.rows;
  const TurnedTile tile = find_turned_tile<kLengths, kRows, kGather>(rows, arguments.axis, arguments.first_tile + blockIdx.x);
  Strided* strided = arguments.strided + tile.strided;
  Packed* packed = arguments.packed + tile.packed;
  if constexpr (kGather) {
    blocks.turn(strided, rows.length_stride, packed, tile.row_pitch, tile.rows, tile.lengths);
  } else {
    blocks.turn(packed, tile.row_pitch, strided, rows.length_stride, tile.lengths, tile.rows);
  }
}

template <class Key, class Position, class PackedPosition>
struct TurnedResultArguments {
  StridedRows rows;
  TurnedAxis axis;
  const Key* packed_keys;
  Key* keys;
  const PackedPosition* packed_positions;
  Position* positions;
};

// Scatters the keys and the positions of a sort in one launch: what the rows' sort wrote last, of both, is still in the L2 cache.
template <class Key, class Position, class PackedPosition, int kLengths, int kRows>
__global__ void __launch_bounds__(kTurningThreads)
    turn_results_kernel(const __grid_constant__ TurnedResultArguments<Key, Position, PackedPosition> arguments) {
  start_after_predecessor();
  __shared__ TurnedBlocks<Key, Key, kLengths, kRows, false> keys;
  __shared__ TurnedBlocks<Position, PackedPosition, kLengths, kRows, false> positions;
  const StridedRows& rows = arguments.rows;
  const TurnedTile tile = find_turned_tile<kLengths, kRows, false>(rows, arguments.axis, blockIdx.x);
  keys.turn(arguments.packed_keys + tile.packed, tile.row_pitch, arguments.keys + tile.strided, rows.length_stride, tile.lengths,
            tile.rows);
  positions.turn(arguments.packed_positions + tile.packed, tile.row_pitch, arguments.positions + tile.strided, rows.length_stride,
                 tile.lengths, tile.rows);
}

// Do all lines, strided and packed, begin at multiples of 16 bytes and of a block, and hold whole blocks?
inline bool turns_by_blocks(const StridedRows& rows, int turned, const void* strided, const void* packed) {
  constexpr int kBlock = 4;  // the largest
  if ((reinterpret_cast<uintptr_t>(strided) | reinterpret_cast<uintptr_t>(packed)) % 16 != 0) return false;
  if (rows.strides[turned] != 1 || rows.sizes[turned] % kBlock != 0 || rows.length % kBlock != 0 || rows.length_stride % kBlock != 0) {
    return false;
  }
  for (int i = 0; i < rows.dims; ++i) {
    if (i != turned && rows.strides[i] % kBlock != 0) return false;
  }
  return true;
}

}  // namespace gpusort
