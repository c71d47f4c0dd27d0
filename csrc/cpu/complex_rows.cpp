// Sorts complex numbers by their codes (core/complex_code.h). A complex64 has one 64-bit word. A complex128 has two, sorted one after the
// other, least significant first: the second sort is stable, so what ties in the high word keeps the order of the low one, as in any LSD
// sort.
#include "complex_rows.h"

#include "../core/complex_code.h"
#include "scratch.h"
#include "sort_rows.h"

namespace gpusort::cpu {
namespace {

// Positions (within each row) of the words in stable order.
void sort_words(const SortProblem& shape, const uint64_t* words, int64_t* positions, SortMethod request, const Parallel& parallel) {
  SortProblem problem;
  problem.key = {8, KeyKind::kUnsigned, 0};
  problem.descending = shape.descending;
  problem.rows = shape.rows;
  problem.length = shape.length;
  problem.end_bit = 64;
  problem.keys_in = words;
  problem.indices_out = positions;
  sort_rows(problem, request, parallel);
}

// A complex number as memory: copying it must not touch its bits.
template <class Part>
struct Complex {
  Part real, imag;
};

template <class Part>
void write_results(const SortProblem& problem, const int64_t* positions, const Parallel& parallel) {
  const auto* values = static_cast<const Complex<Part>*>(problem.keys_in);
  auto* values_out = static_cast<Complex<Part>*>(problem.keys_out);
  for_each_index(problem.numel(), parallel, [&](int64_t i) {
    if (values_out != nullptr) values_out[i] = values[i - i % problem.length + positions[i]];
    if (problem.indices_out == nullptr) return;
    if (problem.index_bytes == 8) {
      static_cast<int64_t*>(problem.indices_out)[i] = positions[i];
    } else {
      static_cast<int32_t*>(problem.indices_out)[i] = static_cast<int32_t>(positions[i]);
    }
  });
}

}  // namespace

void encode_complex(const void* values, int64_t count, int value_bytes, void* codes, const Parallel& parallel) {
  if (value_bytes == 8) {
    const auto* from = static_cast<const Complex<uint32_t>*>(values);
    auto* to = static_cast<uint64_t*>(codes);
    for_each_index(count, parallel, [from, to](int64_t i) { to[i] = complex64_code(from[i].real, from[i].imag); });
  } else {
    const auto* from = static_cast<const Complex<uint64_t>*>(values);
    auto* to = static_cast<WideCode*>(codes);
    for_each_index(count, parallel, [from, to](int64_t i) { to[i] = complex128_code(from[i].real, from[i].imag); });
  }
}

void sort_complex_rows(const SortProblem& problem, SortMethod request, const Parallel& parallel) {
  const int64_t count = problem.numel();
  if (count == 0) return;
  Scratch word_memory, position_memory;
  auto* words = word_memory.get<uint64_t>(count);
  auto* positions = position_memory.get<int64_t>(count);
  if (problem.key.bytes == 8) {
    encode_complex(problem.keys_in, count, 8, words, parallel);
    sort_words(problem, words, positions, request, parallel);
    write_results<uint32_t>(problem, positions, parallel);
    return;
  }
  const auto* values = static_cast<const Complex<uint64_t>*>(problem.keys_in);
  const auto code = [values](int64_t i) { return complex128_code(values[i].real, values[i].imag); };
  const auto row_start = [&problem](int64_t i) { return i - i % problem.length; };
  for_each_index(count, parallel, [&](int64_t i) { words[i] = code(i).low; });
  sort_words(problem, words, positions, request, parallel);

  for_each_index(count, parallel, [&](int64_t i) { words[i] = code(row_start(i) + positions[i]).high; });
  Scratch high_memory;
  auto* by_high = high_memory.get<int64_t>(count);
  sort_words(problem, words, by_high, request, parallel);
  auto* composed = word_memory.get<int64_t>(count);
  for_each_index(count, parallel, [&](int64_t i) { composed[i] = positions[row_start(i) + by_high[i]]; });
  write_results<uint64_t>(problem, composed, parallel);
}

}  // namespace gpusort::cpu
