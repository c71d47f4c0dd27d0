// The first read of the sort of 16-bit keys with indices (half_sort.h).
//
// Its control words and bins are cleared by a small kernel, on whose end it waits before it adds to them.
//
// Every lane counts in a bank of its own, so the atomics of a warp never meet, whatever the data. The sample is the same in all blocks, so
// all come to the same set of patterns without a word between them.
#include <cuda_runtime.h>

#include <atomic>

#include "../primitives/dependent_launch.cuh"
#include "../primitives/kernel_setup.h"
#include "half_arguments.h"
#include "half_patterns.cuh"
#include "key_vector.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 1024;
constexpr int kBatch = 4;    // 16-byte loads in flight per thread
constexpr int kSamples = 4;  // of each thread
constexpr int kPerVector = 8;
constexpr uint32_t kTableBytes = kHalfBins * 32 * 4;
// Shared memory: counters of low bytes, of high bytes, of patterns | the patterns | sums
constexpr uint32_t kSet = 3 * kTableBytes;
constexpr uint32_t kSums = kSet + PatternSet::kBytes;
static_assert(kSums + 256 == kHalfHistogramSharedBytes, "the plan and the kernel agree");

// kFew: patterns are looked up and counted too.
template <bool kFew>
struct HalfCounter {
  const HalfArguments& arguments;
  const uint32_t own;  // shared address of this lane's first counter
  const PatternSet set;
  bool unsorted = false, missing = false;

  __device__ __forceinline__ HalfCounter(const HalfArguments& a, uint32_t shared)
      : arguments(a), own(shared + threadIdx.x % 32 * 4), set(shared + kSet) {}

  __device__ __forceinline__ uint32_t code_at(uint32_t position) const { return arguments.codec.code(arguments.keys_in[position]); }

  __device__ __forceinline__ void count(uint32_t bits, uint32_t code) {
    add_shared(own + (code << 7 & 0x7f80), 1);
    add_shared(own + kTableBytes + (code >> 1 & 0x7f80), 1);
    if constexpr (kFew) {
      const uint32_t word = set.word_of(bits);
      if (PatternSet::has(word, bits))
        add_shared(own + 2 * kTableBytes + (set.number_of(word, bits) << 7), 1);
      else
        missing = true;
    }
  }

  __device__ __forceinline__ void count_one(uint32_t position) {
    const uint32_t code = code_at(position);
    count(arguments.keys_in[position], code);
    if (position + 1 < arguments.length) unsorted |= code > code_at(position + 1);
  }

  __device__ __forceinline__ void count_vector(const uint4& vector, uint32_t position) {
    uint32_t code[kPerVector];
#pragma unroll
    for (int k = 0; k < kPerVector; ++k) {
      const uint16_t bits = key_of_vector<uint16_t>(vector, k);
      code[k] = arguments.codec.code(bits);
      count(bits, code[k]);
    }
    if (unsorted) return;
#pragma unroll
    for (int k = 0; k + 1 < kPerVector; ++k) unsorted |= code[k] > code[k + 1];
    if (position + kPerVector < arguments.length) unsorted |= code[kPerVector - 1] > code_at(position + kPerVector);
  }

  // The block's share of the keys.
  __device__ __forceinline__ void count_keys() {
    const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(arguments.keys_in) & 15) / 2;
    const uint32_t head = min((kPerVector - misaligned) % kPerVector, arguments.length);
    const uint32_t vectors = (arguments.length - head) / kPerVector, tail = head + vectors * kPerVector;
    const uint32_t begin = static_cast<uint32_t>(static_cast<uint64_t>(vectors) * blockIdx.x / gridDim.x);
    const uint32_t end = static_cast<uint32_t>(static_cast<uint64_t>(vectors) * (blockIdx.x + 1) / gridDim.x);
    const uint4* aligned = reinterpret_cast<const uint4*>(arguments.keys_in + head);
    uint32_t v = begin + threadIdx.x;
    const uint32_t last = 31 - threadIdx.x % 32 + (kBatch - 1) * kThreads;  // from v to the last of the warp
    for (; v + last < end; v += kBatch * kThreads) {
      uint4 batch[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) batch[b] = __ldcs(aligned + v + b * kThreads);
#pragma unroll
      for (int b = 0; b < kBatch; ++b) count_vector(batch[b], head + (v + b * kThreads) * kPerVector);
      unsorted = __any_sync(~0u, unsorted);  // then no lane compares any more
    }
    for (; v < end; v += kThreads) count_vector(__ldcs(aligned + v), head + v * kPerVector);
    if (blockIdx.x != 0) return;
    if (threadIdx.x < head) count_one(threadIdx.x);
    if (threadIdx.x < arguments.length - tail) count_one(tail + threadIdx.x);
  }

  __device__ __forceinline__ void report(uint32_t shared) const {
    constexpr uint32_t kBins = (kFew ? 3 : 2) * kHalfBins;
    const uint32_t thread = threadIdx.x;
    __syncthreads();
    if (thread < kBins) {
      uint32_t sum = 0;
#pragma unroll 8
      for (uint32_t bank = 0; bank < 32; ++bank) {  // rotated, so that the 32 threads of a warp read 32 banks
        sum += load_shared(shared + thread * 128 + (bank + thread) % 32 * 4);
      }
      if (sum != 0) atomicAdd(arguments.bins + thread, sum);
    }
    if (__any_sync(~0u, unsorted) && thread % 32 == 0) atomicOr(&arguments.control->unsorted, 1u);
    if (__any_sync(~0u, missing) && thread % 32 == 0) atomicOr(&arguments.control->missing, 1u);
  }
};

template <bool kFew>
__device__ __forceinline__ void count_and_report(const HalfArguments& arguments, uint32_t shared) {
  HalfCounter<kFew> counter(arguments, shared);
  counter.count_keys();
  counter.report(shared);
}

struct Cleared {
  uint4* vectors = nullptr;
  uint32_t count = 0;
};

// What the histogram adds to. A kernel instead of a memset, so that the histogram takes its sample meanwhile. It begins when all that came
// before it has ended, so the histogram may read keys and clear tables without waiting.
__global__ void half_clear_kernel(const __grid_constant__ Cleared cleared) {
  let_successor_start();
  for (uint32_t i = threadIdx.x; i < cleared.count; i += blockDim.x) cleared.vectors[i] = make_uint4(0, 0, 0, 0);
}

__global__ void __launch_bounds__(kThreads, 1) half_histogram_kernel(const __grid_constant__ HalfArguments arguments) {
  extern __shared__ __align__(16) uint8_t memory[];
  if (arguments.called_off != nullptr && __ldcg(arguments.called_off) != 0) {
    wait_for_predecessor();
    return;
  }
  const uint32_t shared = shared_address(memory), thread = threadIdx.x;
  const PatternSet set(shared + kSet);
  uint32_t sample[kSamples];  // read past the L1 cache, which may hold lines of older keys: all blocks must see the same sample
  const uint32_t stride = max(arguments.length / (kSamples * kThreads), 1u);
#pragma unroll
  for (int k = 0; k < kSamples; ++k) sample[k] = __ldcg(arguments.keys_in + min((k * kThreads + thread) * stride, arguments.length - 1));
  for (uint32_t at = thread * 16; at < kSet + kPatternWords * 4; at += kThreads * 16) clear_shared_16_bytes(shared + at);
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * kThreads;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * kThreads + thread; i < arguments.look_back_vectors; i += step)
    reinterpret_cast<uint4*>(arguments.look_back[0])[i] = make_uint4(0, 0, 0, 0);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kSamples; ++k) set.add(sample[k]);
  __syncthreads();
  const bool few = set.count<kThreads>(shared + kSums) <= kMostPatterns;
  start_after_predecessor();  // control words and bins are clear
  if (!few) {
    count_and_report<false>(arguments, shared);
    return;
  }
  if (blockIdx.x == 0) {
    for (uint32_t i = thread; i < kPatternWords; i += kThreads) arguments.patterns[i] = load_shared(set.bits + i * 4);
    if (thread == 0) arguments.control->few = 1;
  }
  count_and_report<true>(arguments, shared);
}

}  // namespace

cudaError_t launch_half_histogram(const HalfArguments& arguments, int64_t cleared_bytes, int grid, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  cudaError_t error = allow_shared_memory(half_histogram_kernel, kHalfHistogramSharedBytes, prepared);
  if (error != cudaSuccess) return error;
  const Cleared cleared{reinterpret_cast<uint4*>(arguments.control), static_cast<uint32_t>(cleared_bytes / 16)};
  error = launch_after_predecessor<half_clear_kernel>(cleared, {1, 256, 0, false}, stream);
  if (error != cudaSuccess) return error;
  const LaunchShape shape = {static_cast<unsigned>(grid), kThreads, kHalfHistogramSharedBytes, true};
  return launch_after_predecessor<half_histogram_kernel>(arguments, shape, stream);
}

}  // namespace gpusort
