// Lexicographic sort by several key columns on the CPU. See lexsort.cpp for the method.
#pragma once

#include <cstdint>
#include <vector>

#include "../core/key_columns.h"
#include "parallel.h"

namespace gpusort::cpu {

// The indices (positions within the row) that sort each of `rows` rows of `length` elements by all columns, stably. `groups` hold the
// columns, the primary ones first; element e of row r is element r * length + e of each column. Throws std::bad_alloc, and frees
// everything, when scratch memory is not to be had.
void lexsort(const std::vector<KeyColumns>& groups, int64_t rows, int64_t length, int64_t* indices_out, const Parallel& parallel);

// out row r = source row indices[r]; rows of `row_bytes`, in the source `source_stride` bytes apart.
void fetch_rows(const void* source, int64_t source_stride, int64_t row_bytes, const int64_t* indices, int64_t rows, void* out,
                const Parallel& parallel);

}  // namespace gpusort::cpu
