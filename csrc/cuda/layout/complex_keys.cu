// Encodes complex keys (core/complex_code.h) and fetches elements by position. One thread an element; the fetch is bound by its random reads.
#include "complex_keys.h"

#include <algorithm>
#include <climits>

#include "../../core/complex_code.h"

namespace gpusort {
namespace {

constexpr int kThreads = 256;

unsigned block_count(int64_t count) { return static_cast<unsigned>(std::min<int64_t>((count + kThreads - 1) / kThreads, INT_MAX)); }

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

template <class T, class Index>
__global__ void __launch_bounds__(kThreads)
    take_along_rows_kernel(const T* source, const Index* indices, int64_t count, int64_t length, T* out) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    out[i] = source[i / length * length + static_cast<int64_t>(indices[i])];
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

}  // namespace

cudaError_t launch_complex_codes(const void* keys, bool double_precision, int64_t count, uint64_t* codes, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  if (double_precision) {
    complex128_codes_kernel<<<block_count(count), kThreads, 0, stream>>>(static_cast<const ComplexDouble*>(keys), count, codes);
  } else {
    complex64_codes_kernel<<<block_count(count), kThreads, 0, stream>>>(static_cast<const ComplexFloat*>(keys), count, codes);
  }
  return cudaGetLastError();
}

cudaError_t launch_take_along_rows(const void* source, int element_bytes, const void* indices, int index_bytes, int64_t rows, int64_t length,
                                   void* out, cudaStream_t stream) {
  const int64_t count = rows * length;
  if (count == 0) return cudaSuccess;
  switch (element_bytes) {
    case 4: launch_take<uint32_t>(source, indices, index_bytes, count, length, out, stream); break;
    case 8: launch_take<uint64_t>(source, indices, index_bytes, count, length, out, stream); break;
    case 16: launch_take<ComplexDouble>(source, indices, index_bytes, count, length, out, stream); break;
    default: return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

}  // namespace gpusort
