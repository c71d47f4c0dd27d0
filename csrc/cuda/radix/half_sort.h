// Stable sort of one row of 16-bit keys with their indices: a least-significant-digit radix sort of two digits, or of one.
//
//   histogram   one read counts both bytes of the codes, and finds out whether the keys are sorted. Every block takes the same sample of
//               keys; where that holds at most 256 patterns, each key is looked up among them too
//   first pass  sorted keys are copied. Few patterns, and every key one of them: one partition by the rank of the pattern's code, from the
//               keys to the outputs. Else a partition by the low byte
//   last pass   a partition by the high byte
//
// Between the passes an element is its index, 4 bytes, and its key as it was read, 2 bytes: codes (core/key_order.h) are computed where
// they are needed, so zeros keep their sign and NaNs their payload without a further kernel. What the passes are like: half_tile.cuh.
//
// Traffic: 2 (histogram) + 2 + 6 (first) + 6 + 10 (last) bytes an element with int64 indices; few patterns 2 + 2 + 10.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/half_sort_plan.h"

namespace gpusort {

// Needs plan.used, and indices aligned to 16 bytes.
cudaError_t launch_half_sort(const SortProblem& problem, const HalfSortPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
