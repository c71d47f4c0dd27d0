// What the kernels of a lexicographic sort are given, and the launches around its sorts.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "../../plan/lexsort_plan.h"

namespace gpusort {

struct LexsortArguments {
  KeyColumns columns;
  int64_t rows = 1;
  int64_t length = 0;
  LexsortControl* control = nullptr;  // kLeading
  ColumnEntry* entries = nullptr;     // kLeading: one per column

  GPUSORT_HD int64_t numel() const { return rows * length; }
  GPUSORT_HD int64_t row_begin(int64_t place) const { return rows == 1 ? 0 : place / length * length; }
};

// Positions within the rows, of 4 or 8 bytes; null: 0, 1, 2, ...
struct Positions {
  void* data = nullptr;
  int bytes = 4;

  GPUSORT_HD int64_t operator[](int64_t place) const {
    return bytes == 4 ? static_cast<const int32_t*>(data)[place] : static_cast<const int64_t*>(data)[place];
  }
};

// ---- column_words.cu

// Fills in the entries of all columns and the words of the narrowed key.
cudaError_t launch_column_ranges(const LexsortArguments& arguments, int blocks, cudaStream_t stream);

// words[place] = the word of the element at order[place]: of the narrowed key where there are entries, else of the key by dtype. `bytes`
// 4: its upper half.
cudaError_t launch_column_words(const LexsortArguments& arguments, int64_t word, Positions order, void* words, int bytes,
                                bool part_of_chain, cudaStream_t stream);

// composed[place] = first[second[place]], both within rows; composed may be second.
cudaError_t launch_compose(const LexsortArguments& arguments, Positions first, Positions second, Positions composed, cudaStream_t stream);

// ---- mend_runs.cu

// After the sort by the leading word: orders every run of equal words, or decides that the chain has to.
cudaError_t launch_mend_runs(const LexsortArguments& arguments, const uint64_t* sorted_words, int64_t* indices, int64_t* long_runs,
                             int blocks, cudaStream_t stream);

// ---- run_numbers.cu

// numbers[element] = where its run begins, for every element.
cudaError_t launch_run_numbers(const LexsortArguments& arguments, const uint64_t* sorted_words, const int64_t* indices, uint32_t* numbers,
                               cudaStream_t stream);

// fetched[place] = numbers[order[place]].
cudaError_t launch_fetch_run_numbers(const LexsortArguments& arguments, const uint32_t* numbers, Positions order, uint32_t* fetched,
                                     cudaStream_t stream);

}  // namespace gpusort
