// See fetch_rows.h. Threads copy the largest units that the rows' length and the addresses allow, so that a row's neighbours in a warp read
// neighbouring addresses.
#include "fetch_rows.h"

#include <algorithm>

namespace gpusort {
namespace {

constexpr int kThreads = 256;

template <class Unit>
__global__ void __launch_bounds__(kThreads)
    fetch_rows_kernel(const Unit* source, int64_t units_per_row, const int64_t* indices, int64_t rows, Unit* out) {
  const int64_t units = rows * units_per_row, step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < units; i += step) {
    const int64_t row = i / units_per_row;
    out[i] = source[indices[row] * units_per_row + (i - row * units_per_row)];
  }
}

template <class Unit>
cudaError_t launch(const void* source, int64_t row_bytes, const int64_t* indices, int64_t rows, void* out, cudaStream_t stream) {
  const int64_t units_per_row = row_bytes / static_cast<int64_t>(sizeof(Unit));
  const int64_t blocks = std::min<int64_t>((rows * units_per_row + kThreads - 1) / kThreads, 1 << 30);
  fetch_rows_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(static_cast<const Unit*>(source), units_per_row, indices, rows,
                                                                            static_cast<Unit*>(out));
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_fetch_rows(const void* source, int64_t row_bytes, const int64_t* indices, int64_t rows, void* out, cudaStream_t stream) {
  if (rows * row_bytes == 0) return cudaSuccess;
  const uint64_t mixed = reinterpret_cast<uintptr_t>(source) | reinterpret_cast<uintptr_t>(out) | static_cast<uint64_t>(row_bytes);
  if (mixed % 16 == 0) return launch<uint4>(source, row_bytes, indices, rows, out, stream);
  if (mixed % 8 == 0) return launch<uint64_t>(source, row_bytes, indices, rows, out, stream);
  if (mixed % 4 == 0) return launch<uint32_t>(source, row_bytes, indices, rows, out, stream);
  if (mixed % 2 == 0) return launch<uint16_t>(source, row_bytes, indices, rows, out, stream);
  return launch<uint8_t>(source, row_bytes, indices, rows, out, stream);
}

}  // namespace gpusort
