// See bool_keys.h.
//
//   count   each block counts the True keys of its share, and looks whether their bytes are all 1
//   write   every block adds up what the blocks before it have, and all have. Usually bytes are 0 and 1 alone: then it writes a share of
//           the output, which is two runs. Else it writes a share of the zeros, and reads its share of the keys again: the True ones are
//           gathered in shared memory, tile by tile, and go behind those of the blocks before it
//
// Cost: one read and one write of the keys; where other bytes than 0 and 1 occur, one read more.
#include "bool_keys.h"

#include <cuda_runtime.h>

#include "../primitives/block_scan.cuh"
#include "../primitives/dependent_launch.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = kBoolKeysThreads;
constexpr int kRounds = kBoolKeysRounds;
constexpr uint32_t kTileVectors = kThreads * kRounds;
constexpr uint32_t kOtherBytes = 1u << 31;  // beside a block's count: some byte is neither 0 nor 1

struct BoolKeysArguments {
  const uint8_t* keys_in = nullptr;
  uint8_t* keys_out = nullptr;
  uint32_t length = 0;
  bool descending = false;
  uint64_t vectors_per_block = 0;
  uint32_t* block_counts = nullptr;
};

__device__ __forceinline__ uint32_t misalignment(const uint8_t* row) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(row) & 15);
}

// Bit 7 of each byte that is not 0.
__device__ __forceinline__ uint32_t true_bytes(uint32_t four) {
  return ((four & 0x7f7f7f7fu) + 0x7f7f7f7fu | four) & 0x80808080u;
}

// A row as vectors from the 16-byte boundary at or before its first key, and the share of this block.
struct InputShare {
  const uint8_t* row;
  uint32_t length;
  uint32_t misaligned;
  uint64_t begin, end;

  __device__ __forceinline__ InputShare(const BoolKeysArguments& arguments)
      : row(arguments.keys_in), length(arguments.length), misaligned(misalignment(row)) {
    const uint64_t vectors = (static_cast<uint64_t>(length) + misaligned + 15) / 16;
    begin = min(blockIdx.x * arguments.vectors_per_block, vectors);
    end = min(begin + arguments.vectors_per_block, vectors);
  }

  // What lies outside the row reads as False.
  __device__ __forceinline__ uint4 load(uint64_t vector) const {
    const int64_t first = static_cast<int64_t>(vector * 16) - misaligned;
    if (first >= 0 && first + 16 <= length) return __ldcs(reinterpret_cast<const uint4*>(row + first));
    uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      if (first + i >= 0 && first + i < length) words[i / 4] |= static_cast<uint32_t>(row[first + i]) << i % 4 * 8;
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }
};

__global__ void __launch_bounds__(kThreads, 2) count_true_kernel(const __grid_constant__ BoolKeysArguments arguments) {
  start_after_predecessor();
  __shared__ uint32_t sums[2];
  if (threadIdx.x < 2) sums[threadIdx.x] = 0;
  __syncthreads();
  const InputShare share(arguments);
  uint32_t count = 0, bytes = 0;  // 128 times as many; all bytes, one over the other
  auto add = [&](const uint4& vector) {
#pragma unroll
    for (uint32_t four : {vector.x, vector.y, vector.z, vector.w}) {
      count = __dp4a(true_bytes(four), 0x01010101u, count);
      bytes |= four;
    }
  };
  constexpr int kBatch = 4;  // loads in flight
  uint64_t vector = share.begin + threadIdx.x;
  for (; vector + (kBatch - 1) * kThreads < share.end; vector += kBatch * kThreads) {
    uint4 batch[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) batch[b] = share.load(vector + b * kThreads);
#pragma unroll
    for (int b = 0; b < kBatch; ++b) add(batch[b]);
  }
#pragma unroll 1
  for (; vector < share.end; vector += kThreads) add(share.load(vector));
  count = __reduce_add_sync(~0u, count / 128);
  bytes = __reduce_or_sync(~0u, bytes);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&sums[0], count);
    atomicOr(&sums[1], bytes);
  }
  __syncthreads();
  if (threadIdx.x == 0) arguments.block_counts[blockIdx.x] = sums[0] | ((sums[1] & 0xfefefefeu) != 0 ? kOtherBytes : 0);
}

struct WriteMemory {
  BlockScanStorage<uint32_t> scan;
  uint32_t before, all, other;                           // True keys of the blocks before this one, of all; other bytes
  alignas(16) uint8_t gathered[kTileVectors * 16 + 16];  // True keys of a tile, aligned as their place in the output
};

struct WriteBlock {
  const BoolKeysArguments& arguments;
  WriteMemory& memory;

  __device__ __forceinline__ void add_counts() const {
    if (threadIdx.x == 0) memory.before = memory.all = memory.other = 0;
    __syncthreads();
    uint32_t before = 0, all = 0, other = 0;
    for (uint32_t block = threadIdx.x; block < gridDim.x; block += kThreads) {
      const uint32_t word = arguments.block_counts[block], count = word & ~kOtherBytes;
      other |= word & kOtherBytes;
      all += count;
      if (block < blockIdx.x) before += count;
    }
    before = __reduce_add_sync(~0u, before);
    all = __reduce_add_sync(~0u, all);
    other = __reduce_or_sync(~0u, other);
    if (threadIdx.x % 32 == 0) {
      atomicAdd(&memory.before, before);
      atomicAdd(&memory.all, all);
      atomicOr(&memory.other, other);
    }
    __syncthreads();
  }

  // A share of the output: `byte` where positions are in [from, to), `rest` elsewhere, or nothing.
  __device__ __forceinline__ void fill(uint32_t from, uint32_t to, uint32_t byte, uint32_t rest, bool fill_rest) const {
    uint8_t* keys = arguments.keys_out;
    const uint32_t misaligned = misalignment(keys);
    const uint64_t vectors = (static_cast<uint64_t>(arguments.length) + misaligned + 15) / 16;
    const uint64_t begin = blockIdx.x * arguments.vectors_per_block;
    const uint64_t end = blockIdx.x + 1 == gridDim.x ? vectors : min(begin + arguments.vectors_per_block, vectors);
#pragma unroll 2
    for (uint64_t vector = begin + threadIdx.x; vector < end; vector += kThreads) {
      const int64_t first = static_cast<int64_t>(vector * 16) - misaligned;
      const bool inside = first >= 0 && first + 16 <= arguments.length;
      const bool within = first >= from && first + 16 <= to, beyond = first + 16 <= from || first >= to;
      if (inside && (within || beyond)) {
        if (!within && !fill_rest) continue;
        const uint32_t four = (within ? byte : rest) * 0x01010101u;
        *reinterpret_cast<uint4*>(keys + first) = make_uint4(four, four, four, four);
        continue;
      }
#pragma unroll 1
      for (int64_t i = max(first, int64_t{0}); i < min(first + 16, static_cast<int64_t>(arguments.length)); ++i) {
        const bool here = i >= from && i < to;
        if (here || fill_rest) keys[i] = static_cast<uint8_t>(here ? byte : rest);
      }
    }
  }

  // From gathered[to % 16, ...], which is aligned like the output.
  __device__ __forceinline__ void copy_out(uint32_t from, uint32_t to, uint32_t count) const {
    const uint8_t* source = memory.gathered + from;
    uint8_t* target = arguments.keys_out + to;
    const uint32_t ragged = min((16 - misalignment(target)) % 16, count), vectors = (count - ragged) / 16, rest = (count - ragged) % 16;
    const uint32_t thread = threadIdx.x;
    if (thread < ragged) target[thread] = source[thread];
    for (uint32_t i = thread; i < vectors; i += kThreads)
      reinterpret_cast<uint4*>(target + ragged)[i] = reinterpret_cast<const uint4*>(source + ragged)[i];
    if (thread < rest) target[count - rest + thread] = source[count - rest + thread];
  }

  __device__ __forceinline__ static uint32_t true_bits(const uint4& vector) {
    uint32_t bits = 0;
    int shift = 0;
#pragma unroll
    for (uint32_t four : {vector.x, vector.y, vector.z, vector.w}) {
      bits |= (true_bytes(four) >> 7) * 0x01020408u >> 24 << shift;  // byte i to bit 24 + i
      shift += 4;
    }
    return bits;
  }

  // The True keys of this block's share of the input, from position `to` on.
  __device__ __forceinline__ void write_true(uint32_t to) const {
    const InputShare share(arguments);
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint4 next[kRounds];
    auto load = [&](uint64_t from) {
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        const uint64_t vector = from + (warp * kRounds + round) * 32 + lane;
        next[round] = vector < share.end ? share.load(vector) : make_uint4(0, 0, 0, 0);
      }
    };
    load(share.begin);
#pragma unroll 1
    for (uint64_t tile = share.begin; tile < share.end; tile += kTileVectors) {
      uint4 vectors[kRounds];
      uint32_t bits[kRounds], before[kRounds], own = 0;
#pragma unroll
      for (int round = 0; round < kRounds; ++round) vectors[round] = next[round];
      load(tile + kTileVectors);
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        bits[round] = true_bits(vectors[round]);
        const uint32_t count = __popc(bits[round]), inclusive = warp_inclusive_scan(count);
        before[round] = own + inclusive - count;
        own += __shfl_sync(~0u, inclusive, 31);
      }
      uint32_t* totals = memory.scan.warp_totals;
      if (lane == 0) totals[warp] = own;
      __syncthreads();  // also: what was gathered before has been copied
      const uint32_t of_warps = warp_inclusive_scan(lane < kThreads / 32 ? totals[lane] : 0);
      const uint32_t count = __shfl_sync(~0u, of_warps, 31), before_warp = __shfl_sync(~0u, of_warps, warp) - own;
      const uint32_t from = misalignment(arguments.keys_out + to);
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        uint8_t* place = memory.gathered + from + before_warp + before[round];
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          const uint32_t word = i < 4 ? vectors[round].x : i < 8 ? vectors[round].y : i < 12 ? vectors[round].z : vectors[round].w;
          if (bits[round] >> i & 1) *place++ = static_cast<uint8_t>(word >> i % 4 * 8);
        }
      }
      __syncthreads();
      copy_out(from, to, count);
      to += count;
    }
  }
};

__global__ void __launch_bounds__(kThreads, 2) write_bools_kernel(const __grid_constant__ BoolKeysArguments arguments) {
  __shared__ WriteMemory memory;
  start_after_predecessor();
  const WriteBlock block{arguments, memory};
  block.add_counts();
  const uint32_t first_true = arguments.descending ? 0 : arguments.length - memory.all, end_true = first_true + memory.all;
  if (memory.other == 0) {
    block.fill(first_true, end_true, 1, 0, true);
    return;
  }
  if (arguments.descending)
    block.fill(end_true, arguments.length, 0, 0, false);
  else
    block.fill(0, first_true, 0, 0, false);
  block.write_true(first_true + memory.before);
}

}  // namespace

cudaError_t launch_bool_keys(const SortProblem& problem, const BoolKeysPlan& plan, void* workspace, cudaStream_t stream) {
  BoolKeysArguments arguments;
  arguments.keys_in = static_cast<const uint8_t*>(problem.keys_in);
  arguments.keys_out = static_cast<uint8_t*>(problem.keys_out);
  arguments.length = static_cast<uint32_t>(problem.length);
  arguments.descending = problem.descending;
  arguments.vectors_per_block = static_cast<uint64_t>(plan.vectors_per_block);
  arguments.block_counts = static_cast<uint32_t*>(workspace);
  const LaunchShape shape = {static_cast<unsigned>(plan.blocks), kThreads, 0, true};
  const cudaError_t error = launch_after_predecessor<count_true_kernel>(arguments, shape, stream);
  return error != cudaSuccess ? error : launch_after_predecessor<write_bools_kernel>(arguments, shape, stream);
}

}  // namespace gpusort
