// See high_word_ties.h.
//
// First kernel: each thread looks at four keys and their neighbours, and sorts the runs that begin among them by insertion, which keeps
// equal keys in the order of their indices. While it does, others may read its keys, but only to compare high words, and those are equal
// all over the run. H200, 2^26 random keys: one in 64 has a partner, 187 us, of which 125 are the read.
// Second kernel: runs too long for that, each by a block with Batcher's merge exchange (Knuth, volume 3, algorithm 5.2.2 M), which sorts
// any number of items in place. Indices decide between equal keys; without an index equal keys have equal bits on this way.
// The sample that chose this way has ruled out that long runs are many, so this is about being right, not about speed.
#include "high_word_ties.h"

#include <cuda_runtime.h>

#include "radix_control.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 256;
constexpr int kKeysPerThread = 4;
constexpr int kBlocksPerSm = 6;  // all resident at once
constexpr int kLongThreads = 1024;

struct NoIndex {};

// The items of the outputs from `first` on. Of int64 indices the lower halves alone: the upper ones are zero, or the tables'
// (borrowed_indices.cuh).
template <class Index>
struct TiedItems {
  static constexpr uint64_t kWords = sizeof(Index) / 4;
  const KeyOrder<uint64_t>& order;
  uint64_t* keys;
  uint32_t* indices;

  __device__ __forceinline__ TiedItems(const PassArguments<uint64_t>& arguments, uint32_t first)
      : order(arguments.order), keys(arguments.keys_out + first), indices(static_cast<uint32_t*>(arguments.indices_out) + first * kWords) {}

  __device__ __forceinline__ uint32_t& index(uint32_t i) const { return indices[i * kWords]; }
  __device__ __forceinline__ static constexpr bool indexed() { return !std::is_same_v<Index, NoIndex>; }
  __device__ __forceinline__ uint64_t code(uint32_t i) const { return order.code(keys[i]); }
  __device__ __forceinline__ uint32_t high(uint32_t i) const { return static_cast<uint32_t>(code(i) >> 32); }

  // Sorts [begin, end) by insertion.
  __device__ __forceinline__ void insert(uint32_t begin, uint32_t end) const {
    for (uint32_t next = begin + 1; next < end; ++next) {
      const uint64_t key = keys[next];
      const uint64_t key_code = order.code(key);
      if (code(next - 1) <= key_code) continue;
      uint32_t own_index = 0;
      if constexpr (indexed()) own_index = index(next);
      uint32_t hole = next;
      do {
        keys[hole] = keys[hole - 1];
        if constexpr (indexed()) index(hole) = index(hole - 1);
        --hole;
      } while (hole > begin && code(hole - 1) > key_code);
      keys[hole] = key;
      if constexpr (indexed()) index(hole) = own_index;
    }
  }

  __device__ __forceinline__ void compare_exchange(uint32_t a, uint32_t b) const {
    const uint64_t a_key = keys[a], b_key = keys[b];
    const uint64_t a_code = order.code(a_key), b_code = order.code(b_key);
    bool exchange = a_code > b_code;
    if constexpr (indexed()) exchange |= a_code == b_code && index(a) > index(b);
    if (!exchange) return;
    keys[a] = b_key;
    keys[b] = a_key;
    if constexpr (indexed()) {
      const uint32_t a_index = index(a);
      index(a) = index(b);
      index(b) = a_index;
    }
  }
};

template <class Index>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    short_ties_kernel(const __grid_constant__ PassArguments<uint64_t> arguments, uint32_t* long_ties) {
  RadixControl* control = arguments.control;
  if (*control_word(control, offsetof(RadixControl, high_word_first), arguments.spacing) == 0) return;
  const TiedItems<Index> items(arguments, 0);
  const uint32_t length = arguments.length;
  const bool aligned = (reinterpret_cast<uintptr_t>(items.keys) & 15) == 0;
  const uint32_t groups = (length - 1) / kKeysPerThread + 1;
  for (uint32_t group = blockIdx.x * kThreads + threadIdx.x; group < groups; group += gridDim.x * kThreads) {
    const uint32_t first = group * kKeysPerThread;
    uint32_t high[kKeysPerThread + 2];  // with the neighbours
    const bool whole = length - first >= kKeysPerThread;
    if (whole && aligned) {
#pragma unroll
      for (int k = 0; k < kKeysPerThread; k += 2) {
        const ulonglong2 two = *reinterpret_cast<const ulonglong2*>(items.keys + first + k);
        high[k + 1] = static_cast<uint32_t>(arguments.order.code(two.x) >> 32);
        high[k + 2] = static_cast<uint32_t>(arguments.order.code(two.y) >> 32);
      }
    } else {
#pragma unroll
      for (int k = 0; k < kKeysPerThread; ++k) high[k + 1] = first + k < length ? items.high(first + k) : ~high[k];
    }
    high[0] = first > 0 ? items.high(first - 1) : ~high[1];
    const uint32_t after = first + kKeysPerThread;
    high[kKeysPerThread + 1] = whole && after < length ? items.high(after) : ~high[kKeysPerThread];
#pragma unroll
    for (int k = 1; k <= kKeysPerThread; ++k) {
      const uint32_t begin = first + k - 1;
      if (begin >= length || high[k] == high[k - 1] || high[k] != high[k + 1]) continue;
      uint32_t end = begin + 2;
      while (end < length && end - begin <= kMostShortTies && items.high(end) == high[k]) ++end;
      if (end - begin > kMostShortTies)
        long_ties[atomicAdd(control_word(control, offsetof(RadixControl, long_ties), arguments.spacing), 1u)] = begin;
      else
        items.insert(begin, end);
    }
  }
}

template <class Index>
__global__ void __launch_bounds__(kLongThreads)
    long_ties_kernel(const __grid_constant__ PassArguments<uint64_t> arguments, const uint32_t* long_ties) {
  const uint32_t runs = *control_word(arguments.control, offsetof(RadixControl, long_ties), arguments.spacing);
  for (uint32_t run = blockIdx.x; run < runs; run += gridDim.x) {
    const uint32_t begin = long_ties[run];
    const TiedItems<Index> items(arguments, begin);
    const uint32_t left = arguments.length - begin;
    const uint32_t high = items.high(0);
    uint32_t count = 0;  // of items in the run: the first that is not in it ends it
    for (bool ended = false; !ended; count += kLongThreads) {
      const uint32_t i = count + threadIdx.x;
      ended = __syncthreads_or(i >= left || items.high(i) != high) != 0;
    }
    // The last kLongThreads keys looked at hold the end. High words rise, so it is found by bisection.
    uint32_t low = count - kLongThreads;
    count = min(count, left);
    while (low < count) {
      const uint32_t middle = low + (count - low) / 2;
      if (items.high(middle) == high)
        low = middle + 1;
      else
        count = middle;
    }
    __syncthreads();  // all have the count before items move
    const uint32_t top = 1u << (31 - __clz(count - 1));
    for (uint32_t step = top; step > 0; step /= 2) {
      uint32_t rest = 0, distance = step;
      for (uint32_t reach = top;; reach /= 2) {
        for (uint32_t i = threadIdx.x; i + distance < count; i += kLongThreads) {
          if ((i & step) == rest) items.compare_exchange(i, i + distance);
        }
        __syncthreads();
        if (reach == step) break;
        distance = reach - step;
        rest = step;
      }
    }
  }
}

template <class Index>
cudaError_t launch(const PassArguments<uint64_t>& arguments, uint32_t* long_ties, int sm_blocks, cudaStream_t stream) {
  short_ties_kernel<Index><<<sm_blocks * kBlocksPerSm, kThreads, 0, stream>>>(arguments, long_ties);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) return error;
  long_ties_kernel<Index><<<sm_blocks, kLongThreads, 0, stream>>>(arguments, long_ties);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_high_word_ties(const PassArguments<uint64_t>& arguments, uint32_t* long_ties, int sm_blocks, cudaStream_t stream) {
  if (arguments.indices_out == nullptr) return launch<NoIndex>(arguments, long_ties, sm_blocks, stream);
  if (arguments.index_bytes == 4) return launch<uint32_t>(arguments, long_ties, sm_blocks, stream);
  return launch<int64_t>(arguments, long_ties, sm_blocks, stream);
}

}  // namespace gpusort
