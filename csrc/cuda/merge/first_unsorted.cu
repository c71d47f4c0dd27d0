// Looks for the first element that comes before its predecessor: one read of the keys, one thread a pair of neighbours, and an atomic
// minimum for each pair that is out of order.
#include "first_unsorted.h"

#include <algorithm>
#include <climits>

#include "../../core/complex_code.h"

namespace gpusort {
namespace {

constexpr int kThreads = 256;

template <class U>
struct KeyLess {
  using Key = U;
  KeyOrder<U> order;
  GPUSORT_HD bool operator()(U a, U b) const { return order.less(a, b); }
};

template <class Part>
struct ComplexKey {
  Part real, imag;
};

struct Complex64Less {
  using Key = ComplexKey<uint32_t>;
  bool descending;
  GPUSORT_HD bool operator()(const Key& a, const Key& b) const {
    const uint64_t a_code = complex64_code(a.real, a.imag), b_code = complex64_code(b.real, b.imag);
    return descending ? b_code < a_code : a_code < b_code;
  }
};

struct Complex128Less {
  using Key = ComplexKey<uint64_t>;
  bool descending;
  GPUSORT_HD bool operator()(const Key& a, const Key& b) const {
    const WideCode a_code = complex128_code(a.real, a.imag), b_code = complex128_code(b.real, b.imag);
    return descending ? b_code < a_code : a_code < b_code;
  }
};

// *place starts as the largest unsigned number, which reads as -1.
template <class Less>
__global__ void __launch_bounds__(kThreads)
    first_unsorted_kernel(const typename Less::Key* keys, int64_t count, int64_t length, Less less, unsigned long long* place) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    if (i > 0 && less(keys[i], keys[i - 1]) && i % length != 0) atomicMin(place, static_cast<unsigned long long>(i));
  }
}

template <class Less>
cudaError_t search(const void* keys, int64_t count, int64_t length, const Less& less, void* place, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(std::min<int64_t>((count + kThreads - 1) / kThreads, INT_MAX));
  first_unsorted_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const typename Less::Key*>(keys), count, length, less,
                                                         static_cast<unsigned long long*>(place));
  return cudaGetLastError();
}

template <class U>
cudaError_t search_keys(const KeyType& key, bool descending, const void* keys, int64_t count, int64_t length, void* place,
                        cudaStream_t stream) {
  return search(keys, count, length, KeyLess<U>{key.order<U>(descending)}, place, stream);
}

}  // namespace

cudaError_t launch_first_unsorted(const KeyType& key, bool complex, bool descending, int64_t rows, int64_t length, const void* keys,
                                  void* place, cudaStream_t stream) {
  const cudaError_t status = cudaMemsetAsync(place, 0xff, sizeof(int64_t), stream);
  const int64_t count = rows * length;
  if (status != cudaSuccess || count == 0) return status;
  if (complex && key.bytes == 8) return search(keys, count, length, Complex64Less{descending}, place, stream);
  if (complex) return search(keys, count, length, Complex128Less{descending}, place, stream);
  switch (key.bytes) {
    case 1: return search_keys<uint8_t>(key, descending, keys, count, length, place, stream);
    case 2: return search_keys<uint16_t>(key, descending, keys, count, length, place, stream);
    case 4: return search_keys<uint32_t>(key, descending, keys, count, length, place, stream);
    case 8: return search_keys<uint64_t>(key, descending, keys, count, length, place, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace gpusort
