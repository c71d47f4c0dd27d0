// Complex keys on the CPU, by way of their codes. See complex_rows.cpp.
#pragma once

#include "../plan/sort_problem.h"
#include "parallel.h"
#include "sort_method.h"

namespace gpusort::cpu {

// codes[i] = the order-preserving code of values[i]: uint64_t of complex64 (value_bytes 8), WideCode of complex128 (16).
void encode_complex(const void* values, int64_t count, int value_bytes, void* codes, const Parallel& parallel);

// As sort_rows, for complex numbers of problem.key.bytes (8 or 16) in NumPy's order, whole keys only.
void sort_complex_rows(const SortProblem& problem, SortMethod request, const Parallel& parallel);

}  // namespace gpusort::cpu
