// The first read of low_bytes.h: the low bytes of all codes are copied, and counted as byte_sort.cu counts bytes. A block takes groups of
// tiles, and writes before each tile, and at the end of the group, what it has counted by then.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "byte_digits.cuh"
#include "digit_histogram.h"
#include "radix_control.cuh"

namespace gpusort {

constexpr int kLowByteCounterBytes = 256 * 32 * 4;

template <class Key, int kThreads>
struct LowByteCounter {
  static constexpr int kKeys = 4;  // of a thread at a time
  static constexpr int kVectors = kKeys * sizeof(Key) / 16;
  static constexpr int kAhead = 16 / sizeof(Key) * 2;  // steps whose keys are loaded ahead
  static constexpr uint32_t kStepKeys = kThreads * kKeys;

  const HistogramArguments<Key>& arguments;
  const LowByteTables& tables;
  const LaneCounters counters;
  const uint32_t thread = threadIdx.x;
  const Key reference;
  const bool aligned;
  Key difference = 0;
  uint4 loaded[kAhead][kVectors];

  __device__ LowByteCounter(const HistogramArguments<Key>& a, uint32_t* shared_counters)
      : arguments(a),
        tables(a.low_bytes),
        counters{shared_counters},
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

  __device__ __forceinline__ void count(const Step& step, const uint4 (&vectors)[kVectors]) {
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

  // All that has been counted in the group until now.
  __device__ __forceinline__ void write_counts(uint32_t* table) const {
    __syncthreads();
    constexpr uint32_t kEach = kThreads / 256, kWords = 32 / kEach;
    const uint32_t code = thread / kEach;
    uint32_t sum = 0;
#pragma unroll
    for (uint32_t k = 0; k < kWords; ++k) sum += counters.counters[code * 32 + thread % kEach * kWords + (k + code) % kWords];
#pragma unroll
    for (uint32_t distance = 1; distance < kEach; distance *= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    if (thread % kEach == 0) table[code] = sum;
    __syncthreads();
  }

  __device__ __forceinline__ void run() {
#pragma unroll 1
    for (uint32_t group = blockIdx.x; group < tables.groups; group += gridDim.x) {
      const uint32_t begin = group * tables.tiles_per_group, end = min(begin + tables.tiles_per_group, tables.tiles);
      Step ahead{begin, 0}, step = ahead;
#pragma unroll
      for (int k = 0; k < kAhead; ++k, ahead = after(ahead)) {
        if (ahead.tile < end) load(ahead, loaded[k]);
      }
      for (uint32_t i = thread; i < 256 * 32 / 4; i += kThreads) reinterpret_cast<uint4*>(counters.counters)[i] = make_uint4(0, 0, 0, 0);
#pragma unroll 1
      while (step.tile < end) {
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
          if (step.tile < end) {
            if (step.first == 0) write_counts(tables.tile_tables + step.tile * uint64_t{256});
            count(step, loaded[k]);
            step = after(step);
            if (ahead.tile < end) load(ahead, loaded[k]);
            ahead = after(ahead);
          }
        }
      }
      write_counts(tables.group_tables + group * uint64_t{256});
    }
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
