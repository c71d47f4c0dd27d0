// Ranges of the key columns, their words, and positions composed: what a lexicographic sort does around its sorts of words.
//
// All are bound by memory: each thread asks for several elements at once, column by column.
#include <algorithm>
#include <type_traits>

#include "lexsort_arguments.h"

namespace gpusort {
namespace {

constexpr int kThreads = 256;
constexpr int kItems = 4;  // elements to a thread
constexpr unsigned kAllLanes = ~0u;

unsigned block_count(int64_t numel, int items) {
  return static_cast<unsigned>(std::min<int64_t>((numel + kThreads * items - 1) / (kThreads * items), 1 << 30));
}

// The codes of one column; element[k] < 0 has none.
template <class U>
__device__ __forceinline__ void load_real_codes(const KeyColumn& column, const void* data, const int64_t (&element)[kItems],
                                                uint64_t (&code)[kItems]) {
  U key[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    key[k] = 0;
    if (element[k] >= 0) key[k] = static_cast<const U*>(data)[element[k] * column.stride];
  }
#pragma unroll
  for (int k = 0; k < kItems; ++k) code[k] = code_of_width<U>(column.order, key + k, 0);
}

__device__ __forceinline__ void load_codes(const KeyColumns& columns, int64_t c, const int64_t (&element)[kItems],
                                           uint64_t (&code)[kItems]) {
  const KeyColumn& column = columns[c];
  const void* data = columns.data(c);
  if (column.kind != ColumnKind::kReal) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) code[k] = element[k] >= 0 ? column_code(column, data, element[k]) : 0;
  } else if (column.bytes == 8) {
    load_real_codes<uint64_t>(column, data, element, code);
  } else if (column.bytes == 4) {
    load_real_codes<uint32_t>(column, data, element, code);
  } else if (column.bytes == 2) {
    load_real_codes<uint16_t>(column, data, element, code);
  } else {
    load_real_codes<uint8_t>(column, data, element, code);
  }
}

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

// By the first warp of the last block: where each column begins in the narrowed key.
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

__global__ void __launch_bounds__(kThreads) column_ranges_kernel(const __grid_constant__ LexsortArguments m) {
  __shared__ bool last;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads * kItems;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads * kItems + threadIdx.x; first - threadIdx.x < m.numel(); first += step) {
    int64_t element[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      element[k] = first + k * kThreads;
      if (element[k] >= m.numel()) element[k] = -1;
    }
#pragma unroll 1
    for (int64_t c = 0; c < m.columns.count; ++c) {
      uint64_t code[kItems];
      load_codes(m.columns, c, element, code);
      uint64_t largest = 0, largest_complement = 0;
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        if (element[k] < 0) continue;
        largest = max(largest, code[k]);
        largest_complement = max(largest_complement, ~code[k]);
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

struct WordsArguments {
  int64_t word;
  int64_t first_column, first_begin;  // of the key by dtype
  Positions order;
  uint64_t* words;
  uint32_t* half_words;  // instead of words
  bool part_of_chain;
};

__global__ void __launch_bounds__(kThreads)
    column_words_kernel(const __grid_constant__ LexsortArguments m, const __grid_constant__ WordsArguments w) {
  const bool narrowed = m.entries != nullptr;
  if (w.part_of_chain && narrowed && m.control->chain_called_off != 0) return;
  const bool idle = narrowed && w.word >= m.control->words;  // behind the last word all keys are equal
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads * kItems;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads * kItems + threadIdx.x; first < m.numel(); first += step) {
    int64_t element[kItems];
    uint64_t value[kItems] = {};
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int64_t place = first + k * kThreads;
      element[k] = place;
      if (place >= m.numel()) {
        element[k] = -1;
      } else if (w.order.data != nullptr && !idle) {
        element[k] = m.row_begin(place) + w.order[place];
      }
    }
    if (!idle) {
      int64_t begin = w.first_begin;
#pragma unroll 1
      for (int64_t c = narrowed ? m.entries[w.word].first_of_word : w.first_column; c < m.columns.count; ++c) {
        int width = m.columns[c].bits();
        uint64_t smallest = 0;
        if (narrowed) {
          begin = m.entries[c].begin;
          width = static_cast<int>(m.entries[c].width);
          smallest = m.entries[c].smallest();
        }
        if (begin >= 64 * (w.word + 1)) break;
        if (width > 0) {
          uint64_t code[kItems];
          load_codes(m.columns, c, element, code);
#pragma unroll
          for (int k = 0; k < kItems; ++k) value[k] |= part_of_word(code[k] - smallest, begin, width, w.word);
        }
        begin += width;
      }
    }
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (element[k] < 0) continue;
      const int64_t place = first + k * kThreads;
      if (w.words != nullptr) w.words[place] = value[k];
      if (w.half_words != nullptr) w.half_words[place] = static_cast<uint32_t>(value[k] >> 32);
    }
  }
}

template <class First, class Second, class Composed>
__global__ void __launch_bounds__(kThreads) compose_kernel(const First* first, const Second* second, Composed* composed, int64_t numel,
                                                           int64_t length, bool one_row, const LexsortControl* control) {
  if (control != nullptr && control->chain_called_off != 0) return;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t place = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; place < numel; place += step) {
    const int64_t row_begin = one_row ? 0 : place / length * length;
    composed[place] = static_cast<Composed>(first[row_begin + static_cast<int64_t>(second[place])]);
  }
}

template <class Order, class Composed>
cudaError_t compose(const LexsortArguments& m, Positions first, Positions second, Positions composed, cudaStream_t stream) {
  compose_kernel<<<block_count(m.numel(), 1), kThreads, 0, stream>>>(
      static_cast<const Order*>(first.data), static_cast<const Order*>(second.data), static_cast<Composed*>(composed.data), m.numel(),
      m.length, m.rows == 1, m.control);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_column_ranges(const LexsortArguments& arguments, int blocks, cudaStream_t stream) {
  const unsigned grid = std::min<unsigned>(block_count(arguments.numel(), kItems), static_cast<unsigned>(blocks));
  column_ranges_kernel<<<grid, kThreads, 0, stream>>>(arguments);
  return cudaGetLastError();
}

cudaError_t launch_column_words(const LexsortArguments& arguments, int64_t word, Positions order, void* words, int bytes,
                                bool part_of_chain, cudaStream_t stream) {
  WordsArguments w = {};
  w.word = word;
  arguments.columns.find_word(word, &w.first_column, &w.first_begin);
  w.order = order;
  if (bytes == 8) {
    w.words = static_cast<uint64_t*>(words);
  } else {
    w.half_words = static_cast<uint32_t*>(words);
  }
  w.part_of_chain = part_of_chain;
  column_words_kernel<<<block_count(arguments.numel(), kItems), kThreads, 0, stream>>>(arguments, w);
  return cudaGetLastError();
}

cudaError_t launch_compose(const LexsortArguments& arguments, Positions first, Positions second, Positions composed, cudaStream_t stream) {
  if (first.bytes == 8) return compose<int64_t, int64_t>(arguments, first, second, composed, stream);
  if (composed.bytes == 4) return compose<int32_t, int32_t>(arguments, first, second, composed, stream);
  return compose<int32_t, int64_t>(arguments, first, second, composed, stream);
}

}  // namespace gpusort
