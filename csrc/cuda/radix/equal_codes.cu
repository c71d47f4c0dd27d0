// See equal_codes.h.
//
// A stable partition of two classes, zeros and clamped keys (NaNs, True), out of each row: blocks take contiguous ranges of tiles, a tile
// being a part of one row. The first kernel marks the tiles that have keys of the classes, and counts each block's in the last row of its
// range. The second one knows from these counts where in its class each of its keys stands, gathers the keys of a marked tile in shared
// memory and writes them there; where a class begins in the sorted row is found by a search for its code, 32 places at a time. Other blocks
// may write meanwhile, but nobody changes a code. Cost when there is something to do: a read of the input, a read of the tiles that are
// marked, one write of the keys of both classes.
#include "equal_codes.h"

#include <cuda_runtime.h>

#include "key_vector.cuh"
#include "radix_control.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kRounds = 4;  // vectors of each thread in a tile
constexpr uint32_t kTileBytes = kThreads * kRounds * 16;

// Which keys of one vector belong to the classes: one bit each.
struct ClassMasks {
  uint32_t zeros = 0;
  uint32_t clamped = 0;
};

// The tiles, and how they are shared out. The first tile of a row begins at the 16-byte boundary at or before the row.
template <class Key>
struct InputTiles {
  static constexpr int kPerVector = 16 / sizeof(Key);
  static constexpr uint32_t kItems = kTileBytes / sizeof(Key);

  const PassArguments<Key>& arguments;
  Key magnitude;  // the bits but for a float's sign
  Key most;       // keys in no class: (magnitude - 1) is smaller. Others may be in one
  uint64_t per_row;
  uint64_t begin, end;  // of this block

  __device__ __forceinline__ explicit InputTiles(const PassArguments<Key>& a) : arguments(a) {
    per_row = (static_cast<uint64_t>(a.length) + kPerVector - 1) / kItems + 1;
    const KeyOrder<Key>& order = arguments.order;
    magnitude = static_cast<Key>(static_cast<Key>(~Key{0}) >> (order.zero != 0 ? 1 : 0));
    most = static_cast<Key>(order.clamp - order.zero - 1);
    begin = begin_of_block(blockIdx.x);
    end = begin_of_block(blockIdx.x + 1);
  }

  __device__ __forceinline__ uint64_t begin_of_block(uint32_t block) const { return per_row * arguments.rows * block / gridDim.x; }
  __device__ __forceinline__ const Key* row(uint64_t number) const { return arguments.keys_in + number * arguments.length; }

  __device__ __forceinline__ uint32_t misalignment(const Key* row) const {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(row) & 15) / sizeof(Key);
  }

  // Position in the row of the first key of this thread's vector; may lie before the row.
  __device__ __forceinline__ int64_t vector_position(uint64_t tile, const Key* row, int round) const {
    const uint64_t first = tile % per_row * kItems + (round * kThreads + threadIdx.x) * kPerVector;
    return static_cast<int64_t>(first) - misalignment(row);
  }

  // Does the tile lie in its row as a whole?
  __device__ __forceinline__ bool inside(uint64_t tile, const Key* row) const {
    const int64_t first = static_cast<int64_t>(tile % per_row * kItems) - misalignment(row);
    return first >= 0 && first + kItems <= arguments.length;
  }

  // What is known before: may the tile have keys of the classes?
  __device__ __forceinline__ bool suspected(uint64_t tile, const SuspectSpans& suspects) const {
    if (suspects.marks == nullptr) return true;
    const uint64_t before = misalignment(arguments.keys_in) == 0 ? 0 : 16;  // bytes of the tiles before the first span
    const uint64_t first = tile * kTileBytes;
    if (first < before) return true;
    const uint64_t first_span = (first - before) / suspects.bytes, last_span = (first - before + kTileBytes - 1) / suspects.bytes;
    return last_span >= suspects.spans || (suspects.marks[first_span] | suspects.marks[last_span]) != 0;
  }

  __device__ __forceinline__ void classify(Key bits, int i, ClassMasks& masks) const {
    const KeyOrder<Key>& order = arguments.order;
    const Key ordered = order.to_ordered(bits);
    if (order.zero != 0 && static_cast<Key>(order.zero - ordered) <= 1) masks.zeros |= 1u << i;
    if (ordered >= order.clamp) masks.clamped |= 1u << i;
  }

  __device__ __forceinline__ ClassMasks masks_of(const uint4& vector) const {
    ClassMasks masks;
    bool any = false;
#pragma unroll
    for (int i = 0; i < kPerVector; ++i) any |= static_cast<Key>((key_of_vector<Key>(vector, i) & magnitude) - 1) >= most;
    if (!any) return masks;
#pragma unroll
    for (int i = 0; i < kPerVector; ++i) classify(key_of_vector<Key>(vector, i), i, masks);
    return masks;
  }

  // This thread's vectors, and which of their keys belong to the classes.
  __device__ __forceinline__ void read(uint64_t tile, const Key* row, uint4 (&vectors)[kRounds], ClassMasks (&masks)[kRounds]) const {
    if (inside(tile, row)) {
#pragma unroll
      for (int round = 0; round < kRounds; ++round)
        vectors[round] = *reinterpret_cast<const uint4*>(row + vector_position(tile, row, round));
#pragma unroll
      for (int round = 0; round < kRounds; ++round) masks[round] = masks_of(vectors[round]);
    } else {
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        const int64_t position = vector_position(tile, row, round);
        masks[round] = ClassMasks{};
#pragma unroll 1
        for (int i = 0; i < kPerVector; ++i) {
          if (position + i >= 0 && position + i < arguments.length) classify(row[position + i], i, masks[round]);
        }
      }
    }
  }
};

// What the first kernel leaves to the second one.
struct Findings {
  uint2* block_counts;  // of both classes
  uint8_t* tile_marks;  // 1: has keys of the classes
};

// The sum of `value` over the block, for all threads; `sums` has one word per warp.
__device__ __forceinline__ uint32_t block_sum(uint32_t value, uint32_t* sums) {
  value = __reduce_add_sync(~0u, value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  uint32_t sum = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) sum += sums[warp];
  return sum;
}

template <class Key>
__global__ void __launch_bounds__(kThreads)
    count_classes_kernel(const __grid_constant__ PassArguments<Key> arguments, const SuspectSpans suspects, const Findings findings) {
  __shared__ uint32_t sums[kWarps];
  if (arguments.control->other_patterns == 0) return;
  const InputTiles<Key> tiles(arguments);
  uint64_t current = ~uint64_t{0};
  uint2 counts = make_uint2(0, 0);
  for (uint64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const uint64_t number = tile / tiles.per_row;
    if (number != current) counts = make_uint2(0, 0);
    current = number;
    bool any = false;
    if (tiles.suspected(tile, suspects)) {
      uint4 vectors[kRounds];
      ClassMasks masks[kRounds];
      tiles.read(tile, tiles.row(number), vectors, masks);
      const uint2 before = counts;
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        counts.x += __popc(masks[round].zeros);
        counts.y += __popc(masks[round].clamped);
      }
      any = __syncthreads_or(counts.x != before.x || counts.y != before.y) != 0;
    }
    if (threadIdx.x == 0) findings.tile_marks[tile] = any;
  }
  counts.x = block_sum(counts.x, sums);
  counts.y = block_sum(counts.y, sums);
  if (threadIdx.x == 0) findings.block_counts[blockIdx.x] = counts;
}

// How many keys of a sorted row have a smaller code. All lanes of a warp call.
template <class Key>
__device__ uint32_t count_before(const KeyOrder<Key>& order, const Key* keys, uint32_t length, Key code) {
  const uint32_t lane = threadIdx.x % 32;
  uint32_t low = 0, high = length;  // keys before `low` are smaller, keys from `high` on are not
  while (low < high) {
    const uint32_t step = (high - low - 1) / 32 + 1;
    const uint32_t probe = low + lane * step;
    const uint32_t smaller = __popc(__ballot_sync(~0u, probe < high && order.code(keys[probe]) < code));  // the first so many lanes
    high = min(high, low + smaller * step);
    if (smaller != 0) low += (smaller - 1) * step + 1;
  }
  return low;
}

template <class Key>
__global__ void __launch_bounds__(kThreads, 2)
    write_classes_kernel(const __grid_constant__ PassArguments<Key> arguments, const Findings findings) {
  __shared__ uint32_t sums[kWarps];
  __shared__ uint32_t warp_counts[kRounds * kWarps];  // of one tile, in the order of the keys: zeros, and clamped keys from bit 16 on
  __shared__ uint32_t class_starts[2];
  __shared__ Key gathered[InputTiles<Key>::kItems];  // of one tile: zeros, then clamped keys
  static_assert(InputTiles<Key>::kItems < 65536, "two counts share a word");
  if (arguments.control->other_patterns == 0) return;
  const KeyOrder<Key>& order = arguments.order;
  const InputTiles<Key> tiles(arguments);
  const uint32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  uint64_t current = ~uint64_t{0};
  uint32_t next_zero = 0, next_clamped = 0;  // positions in the row
  for (uint64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    if (findings.tile_marks[tile] == 0) continue;
    const uint64_t number = tile / tiles.per_row;
    const Key* row = tiles.row(number);
    Key* row_out = arguments.keys_out + number * arguments.length;
    if (number != current) {
      uint2 before = make_uint2(0, 0);  // keys of this row in the ranges of blocks before this one
      const uint64_t row_begin = number * tiles.per_row;
      if (row_begin < tile) {
        for (uint32_t block = thread; block < blockIdx.x; block += kThreads) {
          if (tiles.begin_of_block(block + 1) <= row_begin) continue;
          before.x += findings.block_counts[block].x;
          before.y += findings.block_counts[block].y;
        }
      }
      if (warp < 2) {
        const Key code = order.code_of_ordered(warp == 0 ? order.zero : order.clamp);
        const uint32_t start = warp == 0 && order.zero == 0 ? 0 : count_before(order, row_out, arguments.length, code);
        if (lane == 0) class_starts[warp] = start;
      }
      before.x = block_sum(before.x, sums);
      before.y = block_sum(before.y, sums);
      next_zero = class_starts[0] + before.x;
      next_clamped = class_starts[1] + before.y;
      current = number;
    }
    uint4 vectors[kRounds];
    ClassMasks masks[kRounds];
    uint32_t own_before[kRounds];
    tiles.read(tile, row, vectors, masks);
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      const uint32_t count = __popc(masks[round].zeros) | __popc(masks[round].clamped) << 16;
      uint32_t sum = count;
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const uint32_t other = __shfl_up_sync(~0u, sum, distance);
        if (lane >= distance) sum += other;
      }
      own_before[round] = sum - count;
      if (lane == 31) warp_counts[round * kWarps + warp] = sum;
    }
    __syncthreads();
    uint32_t total = 0;
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      for (uint32_t other = 0; other < kWarps; ++other) {
        if (other == warp) own_before[round] += total;
        total += warp_counts[round * kWarps + other];
      }
    }
    const uint32_t zeros = total & 0xffff, clamped = total >> 16;
    const bool inside = tiles.inside(tile, row);
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      if ((masks[round].zeros | masks[round].clamped) == 0) continue;
      const int64_t position = tiles.vector_position(tile, row, round);
      uint32_t zero_at = own_before[round] & 0xffff, clamped_at = zeros + (own_before[round] >> 16);
#pragma unroll
      for (int i = 0; i < InputTiles<Key>::kPerVector; ++i) {
        const bool is_zero = masks[round].zeros >> i & 1, is_clamped = masks[round].clamped >> i & 1;
        if (!is_zero && !is_clamped) continue;
        const Key key = inside ? key_of_vector<Key>(vectors[round], i) : row[position + i];
        gathered[is_zero ? zero_at++ : clamped_at++] = key;
      }
    }
    __syncthreads();
    for (uint32_t i = thread; i < zeros; i += kThreads) row_out[next_zero + i] = gathered[i];
    for (uint32_t i = thread; i < clamped; i += kThreads) row_out[next_clamped + i] = gathered[zeros + i];
    next_zero += zeros;
    next_clamped += clamped;
    __syncthreads();  // the gathered keys and the counts are read before the next tile's are written
  }
}

}  // namespace

template <class Key>
cudaError_t launch_equal_codes(const PassArguments<Key>& arguments, const SuspectSpans& suspects, void* scratch, int blocks,
                               cudaStream_t stream) {
  const Findings findings{static_cast<uint2*>(scratch), reinterpret_cast<uint8_t*>(static_cast<uint2*>(scratch) + blocks)};
  count_classes_kernel<Key><<<blocks, kThreads, 0, stream>>>(arguments, suspects, findings);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) return error;
  write_classes_kernel<Key><<<blocks, kThreads, 0, stream>>>(arguments, findings);
  return cudaGetLastError();
}

template cudaError_t launch_equal_codes(const PassArguments<uint8_t>&, const SuspectSpans&, void*, int, cudaStream_t);
template cudaError_t launch_equal_codes(const PassArguments<uint16_t>&, const SuspectSpans&, void*, int, cudaStream_t);
template cudaError_t launch_equal_codes(const PassArguments<uint32_t>&, const SuspectSpans&, void*, int, cudaStream_t);
template cudaError_t launch_equal_codes(const PassArguments<uint64_t>&, const SuspectSpans&, void*, int, cudaStream_t);

}  // namespace gpusort
