// The first read of low_bytes.h: the low bytes of all codes are copied, and counted as byte_sort.cu counts bytes. A block takes
// neighbouring groups of tiles, and writes before each tile, and at the end of the group, what it has counted of the group by then.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "byte_digits.cuh"
#include "digit_histogram.h"
#include "radix_control.cuh"

namespace gpusort {

constexpr int kLowByteCounterBytes = 2 * 256 * 32 * 4;

template <class Key, int kThreads>
struct LowByteCounter {
  static constexpr int kKeys = 4;  // of a thread at a time
  static constexpr int kVectors = kKeys * sizeof(Key) / 16;
  static constexpr int kBatch = 4 / kVectors;  // steps whose keys are loaded together
  static constexpr uint32_t kStepKeys = kThreads * kKeys;
  static constexpr uint32_t kCounterWords = 256 * 32;

  const HistogramArguments<Key>& arguments;
  const LowByteTables& tables;
  uint32_t* const sets;  // two of 256 x 32 counters
  const uint32_t thread = threadIdx.x;
  const Key reference;
  const bool aligned;
  Key difference = 0;
  uint32_t total = 0;  // of code thread / kEach, in the group until now
  uint4 loaded[kBatch][kVectors];

  __device__ LowByteCounter(const HistogramArguments<Key>& a, uint32_t* shared_counters)
      : arguments(a),
        tables(a.low_bytes),
        sets(shared_counters),
        reference(a.keys[0]),
        aligned(reinterpret_cast<uintptr_t>(a.keys) % 16 == 0) {}

  // A step: some keys of a tile.
  struct Step {
    uint32_t tile, first;  // of the tile's keys
  };
  __device__ __forceinline__ Step after(Step step) const {
    step.first += kStepKeys;
    return step.first < tables.tile_items ? step : Step{step.tile + 1, 0};
  }
  // This thread's first key of a step, and how many it has there.
  __device__ __forceinline__ uint32_t position_of(const Step& step) const {
    return step.tile * tables.tile_items + step.first + thread * kKeys;
  }
  __device__ __forceinline__ uint32_t keys_of(const Step& step) const {
    const uint32_t position = position_of(step);
    if (step.first + thread * kKeys >= tables.tile_items || position >= arguments.length) return 0;
    return min(static_cast<uint32_t>(arguments.length) - position, uint32_t{kKeys});
  }

  __device__ __forceinline__ void load(const Step& step, uint4 (&vectors)[kVectors]) const {
    if (!aligned || keys_of(step) != kKeys) return;
    const uint4* from = reinterpret_cast<const uint4*>(arguments.keys + position_of(step));
#pragma unroll
    for (int k = 0; k < kVectors; ++k) vectors[k] = __ldcs(from + k);
  }

  // The low bytes of four keys, as those of their codes.
  __device__ __forceinline__ uint32_t bytes_of(const Key (&key)[kKeys]) const {
    const uint32_t first = __byte_perm(static_cast<uint32_t>(key[0]), static_cast<uint32_t>(key[1]), 0x0040);
    const uint32_t second = __byte_perm(static_cast<uint32_t>(key[2]), static_cast<uint32_t>(key[3]), 0x0040);
    return __byte_perm(first, second, 0x5410) ^ (static_cast<uint32_t>(arguments.codec.flip) & 0xff) * 0x01010101u;
  }

  __device__ __forceinline__ void count(const Step& step, const uint4 (&vectors)[kVectors], const LaneCounters& counters) {
    const uint32_t position = position_of(step), keys = keys_of(step);
    if (keys == 0) return;
    Key key[kKeys];
    if (aligned && keys == kKeys) {
      if constexpr (sizeof(Key) == 8) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          key[2 * k] = static_cast<uint64_t>(vectors[k].y) << 32 | vectors[k].x;
          key[2 * k + 1] = static_cast<uint64_t>(vectors[k].w) << 32 | vectors[k].z;
        }
      } else {
        key[0] = vectors[0].x, key[1] = vectors[0].y, key[2] = vectors[0].z, key[3] = vectors[0].w;
      }
    } else {
#pragma unroll
      for (int k = 0; k < kKeys; ++k) key[k] = k < keys ? arguments.keys[position + k] : reference;
    }
#pragma unroll
    for (int k = 0; k < kKeys; ++k) difference |= key[k] ^ reference;
    const uint32_t four = bytes_of(key);
    if (keys == kKeys) {
      counters.add_four(four);
      *reinterpret_cast<uint32_t*>(tables.bytes + position) = four;
    } else {
#pragma unroll
      for (int k = 0; k < kKeys; ++k) {
        if (k >= keys) continue;
        counters.add(byte_of(four, k));
        tables.bytes[position + k] = static_cast<uint8_t>(byte_of(four, k));
      }
    }
  }

  // Takes what all threads have counted in one set of counters into the totals, and clears it. The other set is used meanwhile, so one
  // barrier is enough. Each code's sum is made by kEach threads.
  static constexpr uint32_t kEach = kThreads / 256;
  __device__ __forceinline__ void take_counts(uint32_t* set) {
    constexpr uint32_t kVectorsEach = 8 / kEach;
    __syncthreads();
    const uint32_t code = thread / kEach;
    uint4* own = reinterpret_cast<uint4*>(set) + thread * kVectorsEach;
    uint32_t sum = 0;
#pragma unroll
    for (uint32_t k = 0; k < kVectorsEach; ++k) {
      uint4& four = own[(k + code) % kVectorsEach];
      sum += four.x + four.y + four.z + four.w;
      four = make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (uint32_t distance = 1; distance < kEach; distance *= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    total += sum;
  }
  __device__ __forceinline__ void write_total(uint32_t* tables_of_codes, uint32_t number) const {
    if (thread % kEach == 0) tables_of_codes[number * uint64_t{256} + thread / kEach] = total;
  }

  __device__ __forceinline__ void run() {
    const uint32_t begin = tables.groups * blockIdx.x / gridDim.x * tables.tiles_per_group;
    const uint32_t end = min(tables.groups * (blockIdx.x + 1) / gridDim.x * tables.tiles_per_group, tables.tiles);
    Step step{begin, 0};
    for (uint32_t i = thread; i < 2 * kCounterWords / 4; i += kThreads) reinterpret_cast<uint4*>(sets)[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    uint32_t* set = sets;
    // Before the tile, or the end. Groups begin with nothing.
    auto start_tile = [&](uint32_t tile) {
      if (tile != begin) {
        take_counts(set);
        set = set == sets ? sets + kCounterWords : sets;
      }
      if (tile % tables.tiles_per_group == 0 || tile == end) {
        if (tile != begin) write_total(tables.group_tables, (tile - 1) / tables.tiles_per_group);
        total = 0;
      }
      if (tile < end) write_total(tables.tile_tables, tile);
    };
#pragma unroll 1
    while (step.tile < end) {
      Step next = step;
#pragma unroll
      for (int k = 0; k < kBatch; ++k, next = after(next)) {
        if (next.tile < end) load(next, loaded[k]);
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        if (step.tile >= end) continue;
        if (step.first == 0) start_tile(step.tile);
        count(step, loaded[k], LaneCounters{set});
        step = after(step);
      }
    }
    if (begin < end) start_tile(end);
    const uint32_t low = __reduce_or_sync(~0u, static_cast<uint32_t>(difference));
    const uint32_t high = sizeof(Key) == 8 ? __reduce_or_sync(~0u, static_cast<uint32_t>(uint64_t{difference} >> 32)) : 0;
    if (thread % 32 == 0) {
      atomicOr(&arguments.control->live_bits[0], low);
      if (high != 0) atomicOr(&arguments.control->live_bits[1], high);
    }
    if (blockIdx.x == 0 && thread == 0) arguments.control->unsorted = 1;  // as was seen
  }
};

}  // namespace gpusort
