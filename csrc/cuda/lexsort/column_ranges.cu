// Ranges of the key columns, and what samples of them tell: how a large lexicographic sort by more than one word begins.
//
//   sample_ranges   a sample of each column that the leading word would hold by dtype. Where all of them fill their dtype nearly, narrowing
//                   them gains nothing: all columns keep the bits of their dtype, and nobody reads them for their ranges
//   ranges          else the smallest and the largest code of every column
//   sample_ties     a sample of the leading words of the narrowed key. Where many of them meet, runs of equal leading words would be too
//                   long to be mended: the sort by the leading word is called off, and the chain does it all
//
// Samples decide about speed alone.
#include <algorithm>
#include <atomic>

#include "../primitives/kernel_setup.h"
#include "column_codes.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 256;
constexpr int kItems = 4;   // elements of a thread at once
constexpr int kRounds = 4;  // of them for each column in turn
constexpr int kChunk = kThreads * kItems * kRounds;
constexpr int kRangeBlocksPerSm = 8;
constexpr int kSampleThreads = 1024;
constexpr int kSamples = 8192;
constexpr int kSampleItems = kSamples / kSampleThreads;
constexpr int kTableWords = 2 * kSamples;
constexpr int kSpareBits = 2;            // of a column's dtype that its sample may leave unused
constexpr int64_t kSampledRun = 24;      // mean length of a run by which the chain is as fast
constexpr int64_t kFewestMeetings = 12;  // fewer may be chance
constexpr unsigned kAllLanes = ~0u;

__device__ __forceinline__ uint64_t warp_max(uint64_t value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value = max(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}

// Most warps find what others have noted already and need no atomic.
__device__ __forceinline__ void note_largest(uint64_t* largest, uint64_t value) {
  auto* word = reinterpret_cast<unsigned long long*>(largest);
  if (value > __ldcg(word)) atomicMax(word, static_cast<unsigned long long>(value));
}

// By one warp: where each column begins in the narrowed key.
__device__ void lay_out_columns(const LexsortArguments& m) {
  const int lane = threadIdx.x;
  int64_t bits = 0;
  for (int64_t first = 0; first < m.columns.count; first += 32) {
    const int64_t c = first + lane;
    int width = 0;
    if (c < m.columns.count) {
      const uint64_t largest = __ldcg(reinterpret_cast<unsigned long long*>(&m.entries[c].largest));
      const uint64_t smallest = ~__ldcg(reinterpret_cast<unsigned long long*>(&m.entries[c].largest_complement));
      width = 64 - __clzll(static_cast<long long>(largest - smallest));
    }
    int end = width;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int before = __shfl_up_sync(kAllLanes, end, distance);
      if (lane >= distance) end += before;
    }
    if (c < m.columns.count) {
      const int64_t begin = bits + end - width;
      m.entries[c].begin = begin;
      m.entries[c].width = width;
      const int64_t word = (begin + 63) / 64;  // the one that can begin in the column
      if (64 * word < bits + end) m.entries[word].first_of_word = c;
    }
    bits += __shfl_sync(kAllLanes, end, 31);
  }
  if (lane == 0) m.control->words = (bits + 63) / 64;
}

__device__ __forceinline__ uint64_t scrambled(uint64_t value) {
  value = (value ^ value >> 32) * 0x9e3779b97f4a7c15u;
  return value ^ value >> 29;
}

// The samples of this thread: one from each of kSamples neighbouring stretches of `count` elements. -1: none, there are fewer.
__device__ __forceinline__ void choose_samples(int64_t count, int64_t (&element)[kSampleItems]) {
  const int64_t samples = min(count, static_cast<int64_t>(kSamples));
#pragma unroll
  for (int k = 0; k < kSampleItems; ++k) {
    const int64_t sample = k * kSampleThreads + threadIdx.x;
    element[k] = -1;
    if (sample >= samples) continue;
    const int64_t begin = sample * count / samples, end = (sample + 1) * count / samples;
    element[k] = begin + static_cast<int64_t>(scrambled(sample + 1) % static_cast<uint64_t>(end - begin));
  }
}

__global__ void __launch_bounds__(kSampleThreads) sample_ranges_kernel(const __grid_constant__ LexsortArguments m) {
  __shared__ uint64_t largest_of_warp[kSampleThreads / 32], largest_complement_of_warp[kSampleThreads / 32];
  int64_t element[kSampleItems];
  choose_samples(m.numel(), element);
  int bits = 0;
  for (int64_t c = 0; c < m.columns.count && bits < 64; ++c) {
    uint64_t code[kSampleItems];
    load_codes(m.columns, c, element, code);
    uint64_t largest = 0, largest_complement = 0;
#pragma unroll
    for (int k = 0; k < kSampleItems; ++k) {
      if (element[k] < 0) continue;
      largest = max(largest, code[k]);
      largest_complement = max(largest_complement, ~code[k]);
    }
    largest = warp_max(largest);
    largest_complement = warp_max(largest_complement);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
      largest_of_warp[threadIdx.x / 32] = largest;
      largest_complement_of_warp[threadIdx.x / 32] = largest_complement;
    }
    __syncthreads();
    largest = warp_max(largest_of_warp[threadIdx.x % 32]);
    largest_complement = warp_max(largest_complement_of_warp[threadIdx.x % 32]);
    const int width = 64 - __clzll(static_cast<long long>(largest - ~largest_complement));
    if (width + kSpareBits < m.columns[c].bits()) return;
    bits += m.columns[c].bits();
  }
  for (int64_t c = threadIdx.x; c < m.columns.count; c += kSampleThreads) {
    m.entries[c].largest = ~uint64_t{0} >> (64 - m.columns[c].bits());
    m.entries[c].largest_complement = ~uint64_t{0};
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x < 32) lay_out_columns(m);
  if (threadIdx.x == 0) m.control->ranges_known = 1;
}

__global__ void __launch_bounds__(kThreads) column_ranges_kernel(const __grid_constant__ LexsortArguments m) {
  if (m.control->ranges_known != 0) return;
  __shared__ bool last;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kChunk;
  for (int64_t chunk = static_cast<int64_t>(blockIdx.x) * kChunk; chunk < m.numel(); chunk += step) {
#pragma unroll 1
    for (int64_t c = 0; c < m.columns.count; ++c) {
      uint64_t largest = 0, largest_complement = 0;
#pragma unroll 1
      for (int round = 0; round < kRounds; ++round) {
        int64_t element[kItems];
#pragma unroll
        for (int k = 0; k < kItems; ++k) {
          element[k] = chunk + (round * kItems + k) * kThreads + threadIdx.x;
          if (element[k] >= m.numel()) element[k] = -1;
        }
        uint64_t code[kItems];
        load_codes(m.columns, c, element, code);
#pragma unroll
        for (int k = 0; k < kItems; ++k) {
          if (element[k] < 0) continue;
          largest = max(largest, code[k]);
          largest_complement = max(largest_complement, ~code[k]);
        }
      }
      largest = warp_max(largest);
      largest_complement = warp_max(largest_complement);
      if (threadIdx.x % 32 == 0) {
        note_largest(&m.entries[c].largest, largest);
        note_largest(&m.entries[c].largest_complement, largest_complement);
      }
    }
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&m.control->blocks_done, 1u) + 1 == gridDim.x;
  __syncthreads();
  if (last && threadIdx.x < 32) {
    __threadfence();
    lay_out_columns(m);
  }
}

// Of two samples with the same word the second one meets the first in a table. S samples of n places in runs of r meet S * S * r / 2n
// times. Rows are thought to be alike: the first one is looked at.
__global__ void __launch_bounds__(kSampleThreads) sample_ties_kernel(const __grid_constant__ LexsortArguments m) {
  if (m.control->words <= 1) return;
  extern __shared__ unsigned long long table[];
  for (int i = threadIdx.x; i < kTableWords; i += kSampleThreads) table[i] = 0;
  int64_t element[kSampleItems];
  uint64_t value[kSampleItems];
  choose_samples(m.length, element);
  load_words(m, 0, 0, 0, element, value);
  __syncthreads();
  int met = 0;
#pragma unroll
  for (int k = 0; k < kSampleItems; ++k) {
    bool meets = false;
    if (element[k] >= 0) {
      const auto word = static_cast<unsigned long long>(max(value[k], uint64_t{1}));  // 0: nothing there
      for (uint32_t place = static_cast<uint32_t>(scrambled(word)) % kTableWords;; place = (place + 1) % kTableWords) {
        const unsigned long long there = atomicCAS(table + place, 0ull, word);
        meets = there == word;
        if (meets || there == 0) break;
      }
    }
    met += __syncthreads_count(meets);
  }
  const int64_t samples = min(m.length, static_cast<int64_t>(kSamples));
  if (threadIdx.x == 0 && met > max(kFewestMeetings, kSampledRun * samples * samples / (2 * m.length))) m.control->lead_called_off = 1;
}

}  // namespace

cudaError_t launch_column_ranges(const LexsortArguments& arguments, cudaStream_t stream) {
  sample_ranges_kernel<<<1, kSampleThreads, 0, stream>>>(arguments);
  cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  const int64_t chunks = (arguments.numel() + kChunk - 1) / kChunk;
  const unsigned grid = static_cast<unsigned>(std::min<int64_t>(chunks, arguments.sm_count * kRangeBlocksPerSm));
  column_ranges_kernel<<<grid, kThreads, 0, stream>>>(arguments);
  status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  static std::atomic<uint64_t> prepared{0};
  status = allow_shared_memory(sample_ties_kernel, kTableWords * 8, prepared);
  if (status != cudaSuccess) return status;
  sample_ties_kernel<<<1, kSampleThreads, kTableWords * 8, stream>>>(arguments);
  return cudaGetLastError();
}

}  // namespace gpusort
