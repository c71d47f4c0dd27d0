// Complex keys as code words, and fetching by position: what a sort of complex numbers needs around the sort of its words.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "../../plan/sort_problem.h"

namespace gpusort {

// complex64: one word each, codes[i]. complex128: the low words codes[0, count), then the high words codes[count, 2 count).
cudaError_t launch_complex_codes(const void* keys, bool double_precision, int64_t count, uint64_t* codes, cudaStream_t stream);

// out[row][i] = source[row][indices[row][i]], as torch.take_along_dim. element_bytes: 1, 2, 4, 8, 16; index_bytes: 4, 8.
cudaError_t launch_take_along_rows(const void* source, int element_bytes, const void* indices, int index_bytes, int64_t rows,
                                   int64_t length, void* out, cudaStream_t stream);

// out[row][i] = cat(a[row], b[row])[positions[row][i]]. element_bytes: 1, 2, 4, 8, 16.
cudaError_t launch_take_from_two_rows(const void* a, int64_t a_length, const void* b, int64_t b_length, int element_bytes,
                                      const int64_t* positions, int64_t rows, void* out, cudaStream_t stream);

// As launch_co_rank (cuda/merge/merge.h), for complex128 keys, whose codes are two words.
cudaError_t launch_complex128_co_rank(const MergeProblem& problem, const int64_t* ranks, int64_t rank_count, int64_t* counts_out,
                                      cudaStream_t stream);

}  // namespace gpusort
