// Whole rows of a matrix by index.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gpusort {

// out row r = source row indices[r], for `rows` rows of `row_bytes`, one after the other in both.
cudaError_t launch_fetch_rows(const void* source, int64_t row_bytes, const int64_t* indices, int64_t rows, void* out, cudaStream_t stream);

}  // namespace gpusort
