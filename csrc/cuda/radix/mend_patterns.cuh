// Brings zeros of both signs, and NaNs of several patterns, into the order of the input: the last kernel of counting_sort_16.cu.
//
// The sort has written them in some order, which is right if the counts show one pattern of each class; then this kernel has nothing to do.
// Otherwise block b knows from the counts of the blocks before it where the zeros and NaNs of share b go. If few vectors hold any, the
// counting has listed them: their numbers are sorted by a bitonic network (Batcher, "Sorting networks and their applications", 1968), and
// they are read again. Else all of the share is read again, and its zeros and NaNs are gathered, tile by tile.
//
// Blocks may start before the runs are written, and write only after that. What they read before, the row and what the counting and the
// numbering have found, was complete when the kernel that writes the runs began; it is read past the L1 cache, which may hold what was
// there in an earlier sort.
#pragma once

#include <cuda_runtime.h>

#include "../../plan/counting_plan.h"
#include "../primitives/block_scan.cuh"
#include "../primitives/dependent_launch.cuh"
#include "counting_arguments.h"
#include "key_vector.cuh"

namespace gpusort {

constexpr int kMendThreads = 1024;
constexpr uint32_t kListWindows = kMostListed + 2;
constexpr int kMendRounds = 2;  // vectors of a thread in a tile
constexpr uint32_t kMendTileVectors = kMendThreads * kMendRounds;
constexpr uint32_t kMendTileKeys = kMendTileVectors * kKeysPerVector;

struct MendArguments {
  KeyShares shares;
  uint32_t length = 0;
  ClassFindings findings;
  const CountingControl* control = nullptr;
  uint16_t* keys_out = nullptr;
};

struct MendMemory {
  BlockScanStorage<uint32_t> scan;
  BlockScanStorage<uint32_t> scans[2];
  uint32_t codes_meet;      // as the numbering has it
  uint32_t class_begin[2];  // the same
  uint2 own;                // zeros and NaNs of the share
  uint32_t listed;          // its vectors that hold some
  union {
    uint32_t list[kListWindows];                        // windows of the share that hold zeros or NaNs
    alignas(16) uint16_t gathered[kMendTileKeys + 24];  // zeros and NaNs of a tile, each where a vector of the output begins
  };
};

struct MendBlock {
  const MendArguments& arguments;
  MendMemory& memory;
  uint32_t begin[2];  // in the sorted row: where the next zero and the next NaN go

  __device__ __forceinline__ bool is_zero(uint32_t pattern) const { return (pattern & 0x7fff) == 0; }
  __device__ __forceinline__ bool is_nan(uint32_t pattern) const { return (pattern & 0x7fff) > arguments.findings.infinity; }

  // The row as windows of 16 bytes from the boundary at or before its first key: the head, if there is one, the vectors, the tail.
  __device__ __forceinline__ uint32_t windows_before_vectors() const { return arguments.shares.head == 0 ? 0 : 1; }

  // A window, and which of its keys belong to the row.
  __device__ __forceinline__ uint32_t load_window(uint32_t window, uint4& keys) const {
    const KeyShares& shares = arguments.shares;
    const int64_t first = int64_t{window} * kKeysPerVector - (shares.head == 0 ? 0 : kKeysPerVector - shares.head);
    const uint16_t* at = shares.row + first;
    if (first >= 0 && first + kKeysPerVector <= arguments.length) {
      keys = __ldcg(reinterpret_cast<const uint4*>(at));
      return 0xff;
    }
    uint32_t words[4] = {0, 0, 0, 0}, valid = 0;
#pragma unroll
    for (int i = 0; i < kKeysPerVector; ++i) {
      if (first + i < 0 || first + i >= arguments.length) continue;
      words[i / 2] |= static_cast<uint32_t>(__ldcg(at + i)) << i % 2 * 16;
      valid |= 1u << i;
    }
    keys = make_uint4(words[0], words[1], words[2], words[3]);
    return valid;
  }

  // Bits of the zeros, and from bit 16 on of the NaNs.
  __device__ __forceinline__ uint32_t classify(const uint4& keys, uint32_t valid) const {
    uint32_t zeros = 0, nans = 0;
#pragma unroll
    for (int i = 0; i < kKeysPerVector; ++i) {
      const uint32_t pattern = key_of_vector<uint16_t>(keys, i);
      zeros |= (is_zero(pattern) ? 1u : 0u) << i;
      nans |= (is_nan(pattern) ? 1u : 0u) << i;
    }
    return zeros & valid | (nans & valid) << 16;
  }
  __device__ __forceinline__ static uint32_t counts(uint32_t classes) {
    return __popc(classes & 0xffff) | __popc(classes >> 16) << 16;
  }

  // `size` is a power of two. All pairs rise: the first step of a run compares its ends inwards.
  __device__ __forceinline__ void sort_list(uint32_t size) const {
    uint32_t* list = memory.list;
#pragma unroll 1
    for (uint32_t run = 2; run <= size; run *= 2) {
#pragma unroll 1
      for (uint32_t distance = run / 2; distance > 0; distance /= 2) {
        __syncthreads();
        for (uint32_t pair = threadIdx.x; pair < size / 2; pair += kMendThreads) {
          const uint32_t low = (pair & ~(distance - 1)) * 2 | (pair & distance - 1);
          const uint32_t high = distance == run / 2 ? low ^ run - 1 : low + distance;
          const uint32_t a = list[low], b = list[high];
          if (b < a) {
            list[low] = b;
            list[high] = a;
          }
        }
      }
    }
    __syncthreads();
  }

  __device__ __forceinline__ void write_list(uint32_t listed) {
    const KeyShares& shares = arguments.shares;
    const uint32_t thread = threadIdx.x, before = windows_before_vectors();
    const bool has_head = blockIdx.x == 0 && shares.head != 0, has_tail = blockIdx.x + 1 == shares.blocks && shares.tail != 0;
    const uint32_t count = listed + has_head + has_tail;
    if (count == 0) return;
    const uint32_t size = count == 1 ? 1 : 2u << 31 - __clz(static_cast<int>(count - 1));
    const uint32_t* vectors = arguments.findings.lists + blockIdx.x * arguments.findings.capacity;
    for (uint32_t i = thread; i < size; i += kMendThreads) {
      uint32_t window = ~0u;  // after all others
      if (i < listed)
        window = __ldcg(vectors + i) + before;
      else if (i < count)
        window = has_head && i == listed ? 0 : shares.vectors + before;
      memory.list[i] = window;
    }
    sort_list(size);
    constexpr int kEach = kListWindows / kMendThreads;
    uint4 keys[kEach];
    uint32_t classes[kEach], own = 0, total;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const uint32_t i = thread * kEach + k;
      classes[k] = 0;
      if (i < count) classes[k] = classify(keys[k], load_window(memory.list[i], keys[k]));
      own += counts(classes[k]);
    }
    const uint32_t place = block_exclusive_scan(own, total, memory.scan);
    uint32_t zero_at = begin[0] + (place & 0xffff), nan_at = begin[1] + (place >> 16);
    start_after_predecessor();
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
#pragma unroll
      for (int i = 0; i < kKeysPerVector; ++i) {
        const uint16_t pattern = key_of_vector<uint16_t>(keys[k], i);
        if (classes[k] >> i & 1) arguments.keys_out[zero_at++] = pattern;
        if (classes[k] >> (16 + i) & 1) arguments.keys_out[nan_at++] = pattern;
      }
    }
  }

  __device__ __forceinline__ void load(uint32_t from, uint32_t end, uint4 (&keys)[kMendRounds], uint32_t (&valid)[kMendRounds]) const {
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int round = 0; round < kMendRounds; ++round) {
      const uint32_t window = from + (warp * kMendRounds + round) * 32 + lane;
      valid[round] = window < end ? load_window(window, keys[round]) : 0;
    }
  }

  // Copies keys from gathered[from % 8 == to % 8, ...] to the output.
  __device__ __forceinline__ void copy_out(uint32_t from, uint32_t to, uint32_t count) const {
    const uint16_t* source = memory.gathered + from;
    uint16_t* target = arguments.keys_out + to;
    const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(target) & 15) / 2;
    const uint32_t ragged = min((8 - misaligned) % 8, count), vectors = (count - ragged) / 8, rest = (count - ragged) % 8;
    const uint32_t thread = threadIdx.x;
    if (thread < ragged) target[thread] = source[thread];
    for (uint32_t i = thread; i < vectors; i += kMendThreads)
      reinterpret_cast<uint4*>(target + ragged)[i] = reinterpret_cast<const uint4*>(source + ragged)[i];
    if (thread < rest) target[count - rest + thread] = source[count - rest + thread];
  }

  __device__ __forceinline__ void write_share() {
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const KeyShares& shares = arguments.shares;
    const uint32_t before = windows_before_vectors();
    const bool last = blockIdx.x + 1 == shares.blocks;
    uint32_t first = blockIdx.x == 0 ? 0 : shares.first_vector(blockIdx.x) + before;
    const uint32_t end = shares.first_vector(blockIdx.x + 1) + before + (last ? 1 : 0);
    uint4 next[kMendRounds];
    uint32_t next_valid[kMendRounds];
    load(first, end, next, next_valid);
    start_after_predecessor();
    const uint32_t output = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(arguments.keys_out) & 15) / 2;
#pragma unroll 1
    for (; first < end; first += kMendTileVectors) {
      uint4 vectors[kMendRounds];
      uint32_t classes[kMendRounds], before_round[kMendRounds], own = 0;
#pragma unroll
      for (int round = 0; round < kMendRounds; ++round) {
        vectors[round] = next[round];
        classes[round] = classify(vectors[round], next_valid[round]);
      }
      load(first + kMendTileVectors, end, next, next_valid);
#pragma unroll
      for (int round = 0; round < kMendRounds; ++round) {
        const uint32_t inclusive = warp_inclusive_scan(counts(classes[round]));
        before_round[round] = own + inclusive - counts(classes[round]);
        own += __shfl_sync(~0u, inclusive, 31);
      }
      uint32_t* totals = memory.scan.warp_totals;
      if (lane == 0) totals[warp] = own;
      __syncthreads();  // also: the gathered keys of the tile before have been copied
      const uint32_t of_warps = warp_inclusive_scan(totals[lane]);
      const uint32_t total = __shfl_sync(~0u, of_warps, 31);
      const uint32_t before_warp = __shfl_sync(~0u, of_warps, warp) - own;
      const uint32_t zero_count = total & 0xffff, nan_count = total >> 16;
      const uint32_t zeros_from = (begin[0] + output) % 8;
      const uint32_t nans_from = (zeros_from + zero_count + 7) / 8 * 8 + (begin[1] + output) % 8;
#pragma unroll
      for (int round = 0; round < kMendRounds; ++round) {
        if (classes[round] == 0) continue;
        const uint32_t place = before_round[round] + before_warp;
        uint32_t zero_at = zeros_from + (place & 0xffff), nan_at = nans_from + (place >> 16);
#pragma unroll
        for (int i = 0; i < kKeysPerVector; ++i) {
          const uint16_t pattern = key_of_vector<uint16_t>(vectors[round], i);
          if (classes[round] >> i & 1) memory.gathered[zero_at++] = pattern;
          if (classes[round] >> (16 + i) & 1) memory.gathered[nan_at++] = pattern;
        }
      }
      __syncthreads();
      copy_out(zeros_from, begin[0], zero_count);
      copy_out(nans_from, begin[1], nan_count);
      begin[0] += zero_count;
      begin[1] += nan_count;
    }
  }
};

__global__ void __launch_bounds__(kMendThreads, 1) mend_patterns_kernel(const __grid_constant__ MendArguments arguments) {
  __shared__ __align__(16) MendMemory memory;
  const ClassFindings& findings = arguments.findings;
  // One thread asks for what all of them need: past the L1 cache every warp's question would go to the same sector of the L2 cache.
  if (threadIdx.x == 0) {
    memory.codes_meet = __ldcg(&arguments.control->codes_meet);
    memory.class_begin[0] = __ldcg(arguments.control->class_begin);
    memory.class_begin[1] = __ldcg(arguments.control->class_begin + 1);
    memory.own = __ldcg(findings.counts + blockIdx.x);
    memory.listed = __ldcg(findings.listed + blockIdx.x);
  }
  uint32_t zeros = 0, nans = 0;
  for (uint32_t block = threadIdx.x; block < blockIdx.x; block += kMendThreads) {
    const uint2 counts = __ldcg(findings.counts + block);
    zeros += counts.x;
    nans += counts.y;
  }
  __syncthreads();
  if (memory.codes_meet != 0 && memory.own.x + memory.own.y != 0) {
    const uint32_t listed = memory.listed;
    MendBlock block{arguments, memory, {memory.class_begin[0], memory.class_begin[1]}};
    uint32_t total;
    block_exclusive_scan(zeros, total, memory.scans[0]);
    block.begin[0] += total;
    block_exclusive_scan(nans, total, memory.scans[1]);
    block.begin[1] += total;
    // Of a share whose list is long enough, head and tail are looked at in any case.
    if (listed <= findings.capacity)
      block.write_list(listed);
    else
      block.write_share();
    return;
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) start_after_predecessor();  // the launch does not end before the one before it
}

}  // namespace gpusort
