// What every row kernel is given: one struct of pointers, sizes and the order.
#pragma once

#include <cstdint>

#include "../../core/key_order.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

template <class U>
struct RowArguments {
  const U* keys_in = nullptr;
  U* keys_out = nullptr;            // null: not wanted
  int64_t* indices_wide = nullptr;  // at most one of the three is wanted
  int32_t* indices_narrow = nullptr;
  uint16_t* indices_short = nullptr;
  int64_t rows = 0;
  int length = 0;
  bool quads = false;        // four keys at a time: length is a multiple of 4 and the keys are aligned for it
  bool quad_stores = false;  // the same of the outputs
  bool descending = false;
  bool is_float = false;  // the value maps apply (float32, float64)
  KeyOrder<U> order;
};

template <class U>
RowArguments<U> make_row_arguments(const SortProblem& problem) {
  RowArguments<U> arguments;
  arguments.keys_in = static_cast<const U*>(problem.keys_in);
  arguments.keys_out = static_cast<U*>(problem.keys_out);
  if (problem.index_bytes == 8) {
    arguments.indices_wide = static_cast<int64_t*>(problem.indices_out);
  } else if (problem.index_bytes == 4) {
    arguments.indices_narrow = static_cast<int32_t*>(problem.indices_out);
  } else {
    arguments.indices_short = static_cast<uint16_t*>(problem.indices_out);
  }
  arguments.rows = problem.rows;
  arguments.length = static_cast<int>(problem.length);
  constexpr uintptr_t kQuadBytes = sizeof(U) * 4 < 16 ? sizeof(U) * 4 : 16;
  const auto aligned = [](const void* pointer, uintptr_t bytes) { return reinterpret_cast<uintptr_t>(pointer) % bytes == 0; };
  arguments.quads = problem.length % 4 == 0 && aligned(problem.keys_in, kQuadBytes);
  arguments.quad_stores = problem.length % 4 == 0 && aligned(problem.keys_out, kQuadBytes) && aligned(problem.indices_out, 16);
  arguments.descending = problem.descending;
  arguments.is_float = problem.key.kind == KeyKind::kFloat && sizeof(U) >= 4;
  arguments.order = problem.key.order<U>(problem.descending);
  return arguments;
}

// The same rows from `row` on.
template <class U>
RowArguments<U> rows_from(RowArguments<U> arguments, int64_t row) {
  const int64_t skipped = row * arguments.length;
  arguments.keys_in += skipped;
  if (arguments.keys_out) arguments.keys_out += skipped;
  if (arguments.indices_wide) arguments.indices_wide += skipped;
  if (arguments.indices_narrow) arguments.indices_narrow += skipped;
  if (arguments.indices_short) arguments.indices_short += skipped;
  arguments.rows -= row;
  return arguments;
}

}  // namespace gpusort
