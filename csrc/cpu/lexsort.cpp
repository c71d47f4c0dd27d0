// Columns packed into words of 64 bits (core/key_columns.h), which are sorted one after the other, least significant first. Every sort is
// stable, so what ties in a word keeps the order of the words behind it, as in any LSD sort. Columns that fit one word together take one
// sort.
#include "lexsort.h"

#include <cstring>

#include "scratch.h"
#include "sort_rows.h"

namespace gpusort::cpu {
void lexsort(const std::vector<KeyColumns>& groups, int64_t rows, int64_t length, int64_t* indices_out, const Parallel& parallel) {
  const int64_t count = rows * length;
  if (count == 0) return;
  Scratch word_memory, step_memory;
  auto* const words = word_memory.get<uint64_t>(count);
  int64_t* step = nullptr;  // positions by the last word alone, after the first sort
  SortProblem problem;
  problem.key = {8, KeyKind::kUnsigned, 0};
  problem.rows = rows;
  problem.length = length;
  problem.end_bit = 64;
  problem.keys_in = words;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    const KeyColumns& columns = *group;
    for (int64_t word = columns.words() - 1; word >= 0; --word) {
      int64_t first, begin;
      columns.find_word(word, &first, &begin);
      const bool first_sort = step == nullptr;
      for_each_index(count, parallel, [&](int64_t i) {
        const int64_t element = first_sort ? i : i - i % length + indices_out[i];
        words[i] = word_by_dtype(columns, word, first, begin, element);
      });
      if (first_sort) {
        problem.indices_out = indices_out;
        sort_rows(problem, SortMethod::kAuto, parallel);
        step = step_memory.get<int64_t>(count);
        continue;
      }
      problem.indices_out = step;
      sort_rows(problem, SortMethod::kAuto, parallel);
      for_each_index(count, parallel, [&](int64_t i) { step[i] = indices_out[i - i % length + step[i]]; });
      std::memcpy(indices_out, step, static_cast<size_t>(count) * sizeof(int64_t));
    }
  }
}

void fetch_rows(const void* source, int64_t source_stride, int64_t row_bytes, const int64_t* indices, int64_t rows, void* out,
                const Parallel& parallel) {
  for_each_index(rows, parallel, [&](int64_t row) {
    std::memcpy(static_cast<char*>(out) + row * row_bytes, static_cast<const char*>(source) + indices[row] * source_stride,
                static_cast<size_t>(row_bytes));
  });
}

}  // namespace gpusort::cpu
