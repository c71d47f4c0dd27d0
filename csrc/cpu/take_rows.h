// Fetching by position on the CPU. See take_rows.cpp.
#pragma once

#include <cstdint>

#include "../plan/row_layout.h"
#include "parallel.h"

namespace gpusort::cpu {

// out[r][e] = source[r][indices[r][e]], bit for bit. The three have the same rows and lengths; elements are of 1, 2, 4, 8 or 16 bytes,
// indices of 4 or 8. False if an index is outside its row; the rest of `out` is then left as it was.
bool take_rows(const StridedRows& source_layout, const void* source, int element_bytes, const StridedRows& index_layout,
               const void* indices, int index_bytes, const StridedRows& out_layout, void* out, const Parallel& parallel);

}  // namespace gpusort::cpu
