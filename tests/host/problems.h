// Sorting problems as plans see them: shapes, and which results are wanted. There is no data behind the pointers.
#pragma once

#include <cstdint>

#include "../../csrc/plan/sort_problem.h"

inline char wanted_keys, wanted_indices;

// index_bytes 0: no indices are wanted.
inline gpusort::SortProblem make_problem(int key_bytes, int64_t rows, int64_t length, bool keys = true, int index_bytes = 8) {
  gpusort::SortProblem problem;
  problem.key.bytes = key_bytes;
  problem.rows = rows;
  problem.length = length;
  problem.end_bit = key_bytes * 8;
  problem.keys_out = keys ? &wanted_keys : nullptr;
  problem.indices_out = index_bytes != 0 ? &wanted_indices : nullptr;
  problem.index_bytes = index_bytes == 0 ? 8 : index_bytes;
  return problem;
}
