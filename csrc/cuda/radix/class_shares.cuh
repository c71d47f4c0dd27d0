// What equal_codes.cu reads: the keys of every row, shared out to warps, and which of them are zeros or clamped (NaNs, True).
#pragma once

#include <cuda_runtime.h>

#include "key_vector.cuh"
#include "pass_arguments.h"

namespace gpusort {

constexpr int kClassThreads = 256;
constexpr int kClassWarps = kClassThreads / 32;

template <class Key>
struct ClassArguments {
  PassArguments<Key> pass;
  uint64_t per_row = 0;  // vectors, from the 16-byte boundary at or before the row
  uint64_t share = 0;    // vectors of a warp
  uint32_t warps = 0;
  uint32_t* starts = nullptr;     // of the classes in the sorted row, if it is the only one
  uint2* block_counts = nullptr;  // of both classes, in the last row of what a block takes
  uint2* warp_counts = nullptr;   // the same of a warp
  uint32_t* listed = nullptr;     // keys of both classes in a warp's share; kNotListed: they are of several rows
  Key* lists = nullptr;           // [warps][capacity]
  uint32_t capacity = 0;

  __host__ __device__ uint64_t vectors() const { return per_row * pass.rows; }
};

// Which keys of one vector belong to the classes: one bit each.
struct ClassMasks {
  uint32_t zeros = 0;
  uint32_t clamped = 0;
  __device__ __forceinline__ uint32_t counts() const { return __popc(zeros) | __popc(clamped) << 16; }
};

template <class Key>
struct ClassShare {
  static constexpr int kPerVector = 16 / sizeof(Key);
  static constexpr int kRounds = sizeof(Key) <= 2 ? 2 : 4;  // vectors of each lane that are loaded together
  static constexpr uint32_t kBatchVectors = 32 * kRounds;
  static constexpr uint32_t kOnes = sizeof(Key) == 1 ? 0x01010101 : 0x00010001, kTops = sizeof(Key) == 1 ? 0x80808080 : 0x80008000;

  const ClassArguments<Key>& arguments;
  const PassArguments<Key>& pass;
  Key magnitude;  // the bits but for a float's sign
  Key most;       // keys in no class: (magnitude - 1) is smaller. Others may be in one
  // Keys of 8 and 16 bits, several to a word: magnitudes carry into the top bit of their field if they are clamped. Of bytes that mean True
  // the top bit counts too.
  uint32_t clamp_step, clamp_bits;
  uint32_t warp;  // among all
  uint64_t begin, end;

  __device__ __forceinline__ explicit ClassShare(const ClassArguments<Key>& a) : arguments(a), pass(a.pass) {
    const KeyOrder<Key>& order = pass.order;
    magnitude = static_cast<Key>(static_cast<Key>(~Key{0}) >> (order.zero != 0 ? 1 : 0));
    most = static_cast<Key>(order.clamp - order.zero - 1);
    clamp_step = kTops - kOnes - kOnes * most;
    clamp_bits = order.zero != 0 ? 0 : kTops;
    warp = blockIdx.x * kClassWarps + threadIdx.x / 32;
    begin = begin_of(warp);
    end = begin_of(warp + 1);
  }

  __device__ __forceinline__ uint64_t begin_of(uint32_t warp_number) const {
    return min(warp_number * arguments.share, arguments.vectors());
  }
  __device__ __forceinline__ uint64_t row_of(uint64_t vector) const { return vector / arguments.per_row; }
  __device__ __forceinline__ bool in_one_row() const { return pass.rows == 1 || row_of(begin) == row_of(end - 1); }

  // Where zeros and clamped keys have bits set. A float's zeros are `zero` and the pattern before it.
  __device__ __forceinline__ bool is_zero(Key bits) const {
    const KeyOrder<Key>& order = pass.order;
    return order.zero != 0 && static_cast<Key>(order.zero - order.to_ordered(bits)) <= 1;
  }
  __device__ __forceinline__ bool is_clamped(Key bits) const { return pass.order.to_ordered(bits) >= pass.order.clamp; }

  // The vectors from `at` on, one of each lane in each round, up to `row_end`.
  __device__ __forceinline__ void load(uint64_t at, uint64_t row_end, uint64_t row, uint4 (&vectors)[kRounds],
                                       ClassMasks (&masks)[kRounds]) const {
    const Key* keys = pass.keys_in + row * pass.length;
    const int64_t misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(keys) & 15) / static_cast<int64_t>(sizeof(Key));
    const uint64_t lane = threadIdx.x % 32;
    uint32_t valid[kRounds];
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t vector = at + round * 32 + lane;
      const int64_t first = static_cast<int64_t>((vector - row * arguments.per_row) * kPerVector) - misaligned;
      valid[round] = 0;
      vectors[round] = make_uint4(0, 0, 0, 0);
      if (vector >= row_end) continue;
      if (first >= 0 && first + kPerVector <= pass.length) {
        vectors[round] = __ldg(reinterpret_cast<const uint4*>(keys + first));
        valid[round] = (1u << kPerVector) - 1;
      } else {
        uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < kPerVector; ++i) {
          if (first + i < 0 || first + i >= pass.length) continue;
          const Key key = keys[first + i];
          if constexpr (sizeof(Key) == 8) {
            words[2 * i] = static_cast<uint32_t>(key);
            words[2 * i + 1] = static_cast<uint32_t>(key >> 32);
          } else {
            words[i * sizeof(Key) / 4] |= static_cast<uint32_t>(key) << i * sizeof(Key) % 4 * 8;
          }
          valid[round] |= 1u << i;
        }
        vectors[round] = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      masks[round] = masks_of(vectors[round]);
      masks[round].zeros &= valid[round];
      masks[round].clamped &= valid[round];
    }
  }

  // The top bits of a word's fields as neighbours: the first is bit 0.
  __device__ __forceinline__ static uint32_t gathered_tops(uint32_t tops) {
    if constexpr (sizeof(Key) == 1)
      return (tops >> 7) * 0x01020408u >> 24;  // byte i to bit 24 + i
    else
      return tops >> 15 & 1 | tops >> 30;
  }

  __device__ __forceinline__ ClassMasks masks_of(const uint4& vector) const {
    ClassMasks masks;
    if constexpr (sizeof(Key) <= 2) {
      int shift = 0;
#pragma unroll
      for (uint32_t word : {vector.x, vector.y, vector.z, vector.w}) {
        const uint32_t magnitudes = word & ~kTops;
        const uint32_t clamped = (magnitudes + clamp_step | word & clamp_bits) & kTops;
        const uint32_t zeros = ~(magnitudes + (kTops - kOnes)) & kTops & ~clamp_bits;
        masks.zeros |= gathered_tops(zeros) << shift;
        masks.clamped |= gathered_tops(clamped) << shift;
        shift += kPerVector / 4;
      }
    } else {
      bool any = false;
#pragma unroll
      for (int i = 0; i < kPerVector; ++i) any |= static_cast<Key>((key_of_vector<Key>(vector, i) & magnitude) - 1) >= most;
      if (!any) return masks;
#pragma unroll
      for (int i = 0; i < kPerVector; ++i) {
        const Key key = key_of_vector<Key>(vector, i);
        masks.zeros |= (is_zero(key) ? 1u : 0u) << i;
        masks.clamped |= (is_clamped(key) ? 1u : 0u) << i;
      }
    }
    return masks;
  }

  // How many keys of the sorted row have a smaller code than the zeros (lanes below 16) and the clamped ones (others).
  __device__ __forceinline__ uint32_t search(const Key* sorted) const {
    const KeyOrder<Key>& order = pass.order;
    const uint32_t lane = threadIdx.x % 16, half = threadIdx.x & 16;
    const Key code = order.code_of_ordered(half == 0 ? order.zero : order.clamp);
    uint32_t low = 0, high = half == 0 && order.zero == 0 ? 0 : pass.length;  // keys before `low` are smaller, from `high` on not
    while (__any_sync(~0u, low < high)) {
      const uint32_t step = low < high ? (high - low - 1) / 16 + 1 : 1;
      const uint32_t probe = low + lane * step;
      const uint32_t smaller = __popc(__ballot_sync(~0u, probe < high && order.code(sorted[probe]) < code) >> half & 0xffff);
      if (low >= high) continue;
      high = min(high, low + smaller * step);
      if (smaller != 0) low += (smaller - 1) * step + 1;
    }
    return low;
  }
};

}  // namespace gpusort
