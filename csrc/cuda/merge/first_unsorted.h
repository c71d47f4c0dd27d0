// Whether rows are sorted. See first_unsorted.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "../../plan/sort_problem.h"

namespace gpusort {

// Writes to `*place` (int64) where the first element lies, counted over all rows, that comes before its predecessor in its row; -1 if every
// row is sorted. `complex` keys are of 8 or 16 bytes (key.bytes) and need no code words.
cudaError_t launch_first_unsorted(const KeyType& key, bool complex, bool descending, int64_t rows, int64_t length, const void* keys,
                                  void* place, cudaStream_t stream);

}  // namespace gpusort
