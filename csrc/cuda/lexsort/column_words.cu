// The words of the key columns, and positions composed: what a lexicographic sort does between its sorts of words.
//
// All are bound by memory: each thread asks for several elements at once.
#include <algorithm>

#include "column_codes.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 256;
constexpr int kItems = 4;         // elements of a thread at once
constexpr int kBlocksPerSm = 32;  // at most: a kernel that is called off shall be gone soon

unsigned block_count(const LexsortArguments& m) {
  const int64_t needed = (m.numel() + kThreads * kItems - 1) / (kThreads * kItems);
  return static_cast<unsigned>(std::min<int64_t>(needed, m.sm_count * kBlocksPerSm));
}

struct WordsArguments {
  int64_t word;
  int64_t first_column, first_begin;  // of the key by dtype
  Positions order;
  uint64_t* words;
  uint32_t* half_words;  // instead of words
  const uint32_t* called_off;
};

__global__ void __launch_bounds__(kThreads)
    column_words_kernel(const __grid_constant__ LexsortArguments m, const __grid_constant__ WordsArguments w) {
  if (w.called_off != nullptr && *w.called_off != 0) return;
  const bool idle = m.entries != nullptr && w.word >= m.control->words;  // behind the last word all keys are equal
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
    if (!idle) load_words(m, w.word, w.first_column, w.first_begin, element, value);
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
                                                           int64_t length, bool one_row, const uint32_t* called_off) {
  if (called_off != nullptr && *called_off != 0) return;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads * kItems;
  for (int64_t begin = static_cast<int64_t>(blockIdx.x) * kThreads * kItems + threadIdx.x; begin < numel; begin += step) {
    First found[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int64_t place = begin + k * kThreads;
      if (place >= numel) continue;
      const int64_t row_begin = one_row ? 0 : place / length * length;
      found[k] = first[row_begin + static_cast<int64_t>(second[place])];
    }
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (begin + k * kThreads < numel) composed[begin + k * kThreads] = static_cast<Composed>(found[k]);
    }
  }
}

template <class Order, class Composed>
cudaError_t compose(const LexsortArguments& m, Positions first, Positions second, Positions composed, const uint32_t* called_off,
                    cudaStream_t stream) {
  compose_kernel<<<block_count(m), kThreads, 0, stream>>>(static_cast<const Order*>(first.data), static_cast<const Order*>(second.data),
                                                          static_cast<Composed*>(composed.data), m.numel(), m.length, m.rows == 1,
                                                          called_off);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_column_words(const LexsortArguments& arguments, int64_t word, Positions order, void* words, int bytes,
                                const uint32_t* called_off, cudaStream_t stream) {
  WordsArguments w = {};
  w.word = word;
  arguments.columns.find_word(word, &w.first_column, &w.first_begin);
  w.order = order;
  if (bytes == 8) {
    w.words = static_cast<uint64_t*>(words);
  } else {
    w.half_words = static_cast<uint32_t*>(words);
  }
  w.called_off = called_off;
  column_words_kernel<<<block_count(arguments), kThreads, 0, stream>>>(arguments, w);
  return cudaGetLastError();
}

cudaError_t launch_compose(const LexsortArguments& arguments, Positions first, Positions second, Positions composed,
                           const uint32_t* called_off, cudaStream_t stream) {
  if (first.bytes == 8) return compose<int64_t, int64_t>(arguments, first, second, composed, called_off, stream);
  if (composed.bytes == 4) return compose<int32_t, int32_t>(arguments, first, second, composed, called_off, stream);
  return compose<int32_t, int64_t>(arguments, first, second, composed, called_off, stream);
}

}  // namespace gpusort
