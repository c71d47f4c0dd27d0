// Do the high words of 64-bit keys tell nearly all different keys apart? Then four passes and a repair of the few ties sort them
// (high_word_ties.h).
//
// Keys at random positions go into a hash table in shared memory, which tells how many of them share their high word with a different key;
// equal keys are no ties. With s samples of n keys that have t such partners each on average, s * s * t / (2 * n) meetings are expected:
// with s = 2 * sqrt(n) two for each partner. Positions are independent, not spread evenly: neighbours that share a high word would never
// meet otherwise. Random keys meet with a chance of 3 %. At most 8192 samples, so that the table is half empty.
#pragma once

#include <cstdint>

#include "../../plan/radix_plan.h"
#include "digit_histogram.h"
#include "radix_control.cuh"

namespace gpusort {

constexpr uint32_t kMostSampledTies = 1;

// `table` is cleared shared memory, 2 * kMostHighWordSamples entries: codes, some of whose bits are turned round, or a key of zeros would
// look like an empty entry. `ties` is a word of shared memory. A block calls when the histogram is complete.
template <int kThreads>
__device__ __forceinline__ void choose_high_word_first(const HistogramArguments<uint64_t>& arguments, unsigned long long* table,
                                                       uint32_t* ties) {
  constexpr int kBatch = 4;  // loads in flight
  constexpr uint32_t kSlots = 2 * kMostHighWordSamples;
  constexpr uint64_t kTurned = 0x9e3779b97f4a7c15;
  if (threadIdx.x == 0) *ties = 0;
  __syncthreads();
  uint32_t met = 0;
#pragma unroll 1
  for (uint32_t batch = 0; batch < arguments.high_word_samples; batch += kBatch * kThreads) {
    uint64_t key[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const uint32_t sample = batch + k * kThreads + threadIdx.x;
      uint32_t hash = (sample + 1) * 0x9e3779b1u;
      hash = (hash ^ hash >> 15) * 0x85ebca77u;
      hash = (hash ^ hash >> 13) * 0xc2b2ae3du;
      hash ^= hash >> 16;
      if (sample < arguments.high_word_samples) key[k] = arguments.keys[hash * arguments.length >> 32];
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      if (batch + k * kThreads + threadIdx.x >= arguments.high_word_samples) continue;
      const unsigned long long entry = arguments.codec.code(key[k]) ^ kTurned;
      const uint32_t high = static_cast<uint32_t>(entry >> 32);
      for (uint32_t slot = (high ^ high >> 15) * 0x9e3779b1u >> 5;; ++slot) {
        unsigned long long* place = table + slot % kSlots;
        unsigned long long there = *const_cast<volatile unsigned long long*>(place);  // a common key comes here often
        if (there == 0) there = atomicCAS(place, 0ull, entry);
        if (there == 0 || there == entry) break;
        if (there >> 32 == high) {
          ++met;
          break;
        }
      }
    }
  }
  if (met != 0) atomicAdd(ties, met);
  __syncthreads();
  if (threadIdx.x != 0) return;
  RadixControl* control = arguments.control;
  if (*ties <= kMostSampledTies && control->unsorted != 0 && control->live_bits[0] != 0 && control->live_bits[1] != 0) {
    control->high_word_first = 1;
  }
}

}  // namespace gpusort
