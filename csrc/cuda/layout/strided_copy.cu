// Strided tensor <-> packed rows.
//
// Two forms, chosen by which axis is the fastest in the strided tensor:
//   along   the length axis steps least: consecutive threads take consecutive elements of a row, on both sides.
//   across  some row axis steps least (sorting a matrix along dim 0): square tiles of that axis and the length axis are turned in shared
//           memory, so that both the strided and the packed side are touched in runs. The classic tiled transpose (Ruetsch and
//           Micikevicius, "Optimizing Matrix Transpose in CUDA", 2009), with one column of padding against bank conflicts.
// Every element is read once and written once.
#include <algorithm>
#include <climits>

#include "strided_copy.h"

namespace gpusort {
namespace {

struct Bytes16 {  // complex128: aligned to its parts only
  uint64_t words[2];
};

constexpr int kThreads = 256;

template <class T, bool kGather>
__global__ void __launch_bounds__(kThreads) copy_along_kernel(StridedRows rows, T* strided, T* packed) {
  const int64_t total = rows.rows * rows.length;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < total; i += step) {
    const int64_t row = i / rows.length;
    T* element = strided + rows.offset(row) + (i - row * rows.length) * rows.length_stride;
    if (kGather) {
      packed[i] = *element;
    } else {
      *element = packed[i];
    }
  }
}

// The row axis that is turned against the length axis, and the rest of the row number.
struct TurnedAxis {
  int64_t size = 1;
  int64_t stride = 0;    // in the strided tensor
  int64_t row_step = 1;  // between its neighbours in row numbers
  int64_t size_tiles = 1;
  int64_t length_tiles = 1;
};

template <class T, int kTile, bool kGather>
__global__ void __launch_bounds__(kThreads) copy_across_kernel(StridedRows rows, TurnedAxis axis, int64_t tiles, T* strided, T* packed) {
  __shared__ T tile[kTile][kTile + 1];  // [length axis][turned axis]
  const int lane = threadIdx.x % kTile;
  const int line = threadIdx.x / kTile;
  constexpr int kLines = kThreads / kTile;
  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    // Length tiles vary fastest, then tiles of the turned axis, then the other rows.
    const int64_t length_start = t % axis.length_tiles * kTile;
    const int64_t rest = t / axis.length_tiles;
    const int64_t axis_start = rest % axis.size_tiles * kTile;
    const int64_t others = rest / axis.size_tiles;
    const int64_t slow = others / axis.row_step;
    const int64_t first_row = slow * axis.row_step * axis.size + (others - slow * axis.row_step);
    const int64_t base = rows.offset(first_row);
    const auto strided_at = [&](int64_t a, int64_t e) { return strided + base + a * axis.stride + e * rows.length_stride; };
    const auto packed_at = [&](int64_t a, int64_t e) { return packed + (first_row + a * axis.row_step) * rows.length + e; };

    for (int k = line; k < kTile; k += kLines) {
      const int64_t a = axis_start + (kGather ? lane : k);
      const int64_t e = length_start + (kGather ? k : lane);
      if (a < axis.size && e < rows.length) tile[kGather ? k : lane][kGather ? lane : k] = kGather ? *strided_at(a, e) : *packed_at(a, e);
    }
    __syncthreads();
    for (int k = line; k < kTile; k += kLines) {
      const int64_t a = axis_start + (kGather ? k : lane);
      const int64_t e = length_start + (kGather ? lane : k);
      if (a < axis.size && e < rows.length) *(kGather ? packed_at(a, e) : strided_at(a, e)) = tile[kGather ? lane : k][kGather ? k : lane];
    }
    __syncthreads();
  }
}

template <class T, bool kGather>
cudaError_t launch(const StridedRows& rows, T* strided, T* packed, cudaStream_t stream) {
  if (rows.rows * rows.length == 0) return cudaSuccess;
  int turned = -1;
  for (int i = 0; i < rows.dims; ++i) {
    if (rows.strides[i] > 0 && (turned < 0 || rows.strides[i] < rows.strides[turned])) turned = i;  // stride 0: the cache serves it
  }
  const bool across = turned >= 0 && rows.length > 1 && rows.strides[turned] < rows.length_stride;
  if (!across) {
    const int64_t blocks = (rows.rows * rows.length + kThreads - 1) / kThreads;
    copy_along_kernel<T, kGather>
        <<<static_cast<unsigned>(std::min<int64_t>(blocks, INT_MAX)), kThreads, 0, stream>>>(rows, strided, packed);
    return cudaGetLastError();
  }
  constexpr int kTile = sizeof(T) == 16 ? 32 : 64;  // 33 KB of shared memory at 8 bytes
  TurnedAxis axis;
  axis.size = rows.sizes[turned];
  axis.stride = rows.strides[turned];
  for (int i = turned + 1; i < rows.dims; ++i) axis.row_step *= rows.sizes[i];
  axis.size_tiles = (axis.size + kTile - 1) / kTile;
  axis.length_tiles = (rows.length + kTile - 1) / kTile;
  const int64_t tiles = axis.size_tiles * axis.length_tiles * (rows.rows / axis.size);
  copy_across_kernel<T, kTile, kGather>
      <<<static_cast<unsigned>(std::min<int64_t>(tiles, INT_MAX)), kThreads, 0, stream>>>(rows, axis, tiles, strided, packed);
  return cudaGetLastError();
}

template <bool kGather>
cudaError_t dispatch(const StridedRows& rows, int element_bytes, void* strided, void* packed, cudaStream_t stream) {
  switch (element_bytes) {
    case 1: return launch<uint8_t, kGather>(rows, static_cast<uint8_t*>(strided), static_cast<uint8_t*>(packed), stream);
    case 2: return launch<uint16_t, kGather>(rows, static_cast<uint16_t*>(strided), static_cast<uint16_t*>(packed), stream);
    case 4: return launch<uint32_t, kGather>(rows, static_cast<uint32_t*>(strided), static_cast<uint32_t*>(packed), stream);
    case 8: return launch<uint64_t, kGather>(rows, static_cast<uint64_t*>(strided), static_cast<uint64_t*>(packed), stream);
    case 16: return launch<Bytes16, kGather>(rows, static_cast<Bytes16*>(strided), static_cast<Bytes16*>(packed), stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t launch_gather_rows(const StridedRows& rows, int element_bytes, const void* strided, void* packed, cudaStream_t stream) {
  return dispatch<true>(rows, element_bytes, const_cast<void*>(strided), packed, stream);
}

cudaError_t launch_scatter_rows(const StridedRows& rows, int element_bytes, const void* packed, void* strided, cudaStream_t stream) {
  return dispatch<false>(rows, element_bytes, strided, const_cast<void*>(packed), stream);
}

}  // namespace gpusort
