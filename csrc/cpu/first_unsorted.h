// Whether rows are sorted. See first_unsorted.cpp.
#pragma once

#include <cstdint>

#include "../plan/sort_problem.h"
#include "parallel.h"

namespace gpusort::cpu {

// The place, counted over all rows, of the first element that comes before its predecessor in its row; -1 if every row is sorted.
// key.bytes may be 16 (unsigned, as WideCode).
int64_t first_unsorted(const KeyType& key, bool descending, int64_t rows, int64_t length, const void* keys, const Parallel& parallel);

}  // namespace gpusort::cpu
