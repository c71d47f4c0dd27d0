// Complex keys as code words, and fetching by position: what a sort of complex numbers needs around the sort of its words.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gpusort {

// complex64: one word each, codes[i]. complex128: the low words codes[0, count), then the high words codes[count, 2 count).
cudaError_t launch_complex_codes(const void* keys, bool double_precision, int64_t count, uint64_t* codes, cudaStream_t stream);

// out[row][i] = source[row][indices[row][i]], as torch.take_along_dim. element_bytes: 4, 8, 16; index_bytes: 4, 8.
cudaError_t launch_take_along_rows(const void* source, int element_bytes, const void* indices, int index_bytes, int64_t rows, int64_t length,
                                   void* out, cudaStream_t stream);

}  // namespace gpusort
