// Between a strided tensor and contiguous rows. See strided_copy.cpp.
#pragma once

#include "../plan/row_layout.h"
#include "parallel.h"

namespace gpusort::cpu {

// rows[r * length + e] = element e of row r of `strided`; elements of 1, 2, 4, 8 or 16 bytes.
void gather_rows(const StridedRows& layout, const void* strided, void* rows, int element_bytes, const Parallel& parallel);

// The reverse.
void scatter_rows(const StridedRows& layout, const void* rows, void* strided, int element_bytes, const Parallel& parallel);

}  // namespace gpusort::cpu
