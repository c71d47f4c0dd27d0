// Encodes complex keys (core/complex_code.h) and fetches elements by position. One thread an element; the fetch is bound by its random
// reads.
#include "complex_keys.h"

#include <algorithm>
#include <climits>

#include "../../core/co_rank.h"
#include "../../core/complex_code.h"

namespace gpusort {
namespace {

constexpr int kThreads = 256;

unsigned block_count(int64_t count) {
  return static_cast<unsigned>(std::min<int64_t>((count + kThreads - 1) / kThreads, INT_MAX));
}

struct ComplexFloat {
  uint32_t real, imag;
};

struct ComplexDouble {
  uint64_t real, imag;
};

__global__ void __launch_bounds__(kThreads) complex64_codes_kernel(const ComplexFloat* keys, int64_t count, uint64_t* codes) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    codes[i] = complex64_code(keys[i].real, keys[i].imag);
  }
}

__global__ void __launch_bounds__(kThreads) complex128_codes_kernel(const ComplexDouble* keys, int64_t count, uint64_t* codes) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    const WideCode code = complex128_code(keys[i].real, keys[i].imag);
    codes[i] = code.low;
    codes[count + i] = code.high;
  }
}

// Where the row of element i begins. One row needs no division, and 64-bit ones are slow.
__device__ __forceinline__ int64_t row_begin(int64_t i, int64_t count, int64_t length) {
  if (count == length) return 0;
  if (count <= UINT32_MAX) return static_cast<uint32_t>(i) / static_cast<uint32_t>(length) * static_cast<uint32_t>(length);
  return i / length * length;
}

template <class T, class Index>
__global__ void __launch_bounds__(kThreads)
    take_along_rows_kernel(const T* source, const Index* indices, int64_t count, int64_t length, T* out) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    out[i] = source[row_begin(i, count, length) + static_cast<int64_t>(indices[i])];
  }
}

template <class T>
void launch_take(const void* source, const void* indices, int index_bytes, int64_t count, int64_t length, void* out, cudaStream_t stream) {
  if (index_bytes == 8) {
    take_along_rows_kernel<T, int64_t><<<block_count(count), kThreads, 0, stream>>>(
        static_cast<const T*>(source), static_cast<const int64_t*>(indices), count, length, static_cast<T*>(out));
  } else {
    take_along_rows_kernel<T, int32_t><<<block_count(count), kThreads, 0, stream>>>(
        static_cast<const T*>(source), static_cast<const int32_t*>(indices), count, length, static_cast<T*>(out));
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    take_from_two_rows_kernel(const T* a, int64_t a_length, const T* b, int64_t b_length, const int64_t* positions, int64_t count, T* out) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    const int64_t row = i / (a_length + b_length);
    const int64_t position = positions[i];
    out[i] = position < a_length ? a[row * a_length + position] : b[row * b_length + position - a_length];
  }
}

__global__ void __launch_bounds__(kThreads)
    complex128_co_rank_kernel(const ComplexDouble* a, int64_t a_length, const ComplexDouble* b, int64_t b_length, bool descending,
                              const int64_t* ranks, int64_t rank_count, int64_t* counts) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  const auto less = [descending](const ComplexDouble& x, const ComplexDouble& y) {
    const WideCode x_code = complex128_code(x.real, x.imag), y_code = complex128_code(y.real, y.imag);
    return descending ? y_code < x_code : x_code < y_code;
  };
  for (int64_t t = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; t < rank_count; t += step) {
    const int64_t rank = min(max(ranks[t], int64_t{0}), a_length + b_length);
    counts[t] = co_rank<int64_t>(rank, a, a_length, b, b_length, less);
  }
}

template <class T>
void launch_take_from_two(const void* a, int64_t a_length, const void* b, int64_t b_length, const int64_t* positions, int64_t count,
                          void* out, cudaStream_t stream) {
  take_from_two_rows_kernel<T><<<block_count(count), kThreads, 0, stream>>>(static_cast<const T*>(a), a_length, static_cast<const T*>(b),
                                                                            b_length, positions, count, static_cast<T*>(out));
}

}  // namespace

cudaError_t launch_take_from_two_rows(const void* a, int64_t a_length, const void* b, int64_t b_length, int element_bytes,
                                      const int64_t* positions, int64_t rows, void* out, cudaStream_t stream) {
  const int64_t count = rows * (a_length + b_length);
  if (count == 0) return cudaSuccess;
  switch (element_bytes) {
    case 1: launch_take_from_two<uint8_t>(a, a_length, b, b_length, positions, count, out, stream); break;
    case 2: launch_take_from_two<uint16_t>(a, a_length, b, b_length, positions, count, out, stream); break;
    case 4: launch_take_from_two<uint32_t>(a, a_length, b, b_length, positions, count, out, stream); break;
    case 8: launch_take_from_two<uint64_t>(a, a_length, b, b_length, positions, count, out, stream); break;
    case 16: launch_take_from_two<ComplexDouble>(a, a_length, b, b_length, positions, count, out, stream); break;
    default: return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

cudaError_t launch_complex128_co_rank(const MergeProblem& problem, const int64_t* ranks, int64_t rank_count, int64_t* counts_out,
                                      cudaStream_t stream) {
  if (rank_count == 0) return cudaSuccess;
  complex128_co_rank_kernel<<<block_count(rank_count), kThreads, 0, stream>>>(
      static_cast<const ComplexDouble*>(problem.a_keys), problem.a_length, static_cast<const ComplexDouble*>(problem.b_keys),
      problem.b_length, problem.descending, ranks, rank_count, counts_out);
  return cudaGetLastError();
}

cudaError_t launch_complex_codes(const void* keys, bool double_precision, int64_t count, uint64_t* codes, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  if (double_precision) {
    complex128_codes_kernel<<<block_count(count), kThreads, 0, stream>>>(static_cast<const ComplexDouble*>(keys), count, codes);
  } else {
    complex64_codes_kernel<<<block_count(count), kThreads, 0, stream>>>(static_cast<const ComplexFloat*>(keys), count, codes);
  }
  return cudaGetLastError();
}

cudaError_t launch_take_along_rows(const void* source, int element_bytes, const void* indices, int index_bytes, int64_t rows,
                                   int64_t length, void* out, cudaStream_t stream) {
  const int64_t count = rows * length;
  if (count == 0) return cudaSuccess;
  switch (element_bytes) {
    case 1: launch_take<uint8_t>(source, indices, index_bytes, count, length, out, stream); break;
    case 2: launch_take<uint16_t>(source, indices, index_bytes, count, length, out, stream); break;
    case 4: launch_take<uint32_t>(source, indices, index_bytes, count, length, out, stream); break;
    case 8: launch_take<uint64_t>(source, indices, index_bytes, count, length, out, stream); break;
    case 16: launch_take<ComplexDouble>(source, indices, index_bytes, count, length, out, stream); break;
    default: return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

}  // namespace gpusort
