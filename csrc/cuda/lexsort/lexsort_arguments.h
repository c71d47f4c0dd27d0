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
  int sm_count = 1;
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

// ---- column_ranges.cu

// Fills in the entries of all columns and the words of the narrowed key, and calls off the sort by the leading word where too much would
// tie.
cudaError_t launch_column_ranges(const LexsortArguments& arguments, cudaStream_t stream);

// ---- column_words.cu. `called_off`: null, or a word on the device; where it is not 0 nothing is written.

// words[place] = the word of the element at order[place]: of the narrowed key where there are entries, else of the key by dtype. `bytes`
// 4: its upper half.
cudaError_t launch_column_words(const LexsortArguments& arguments, int64_t word, Positions order, void* words, int bytes,
                                const uint32_t* called_off, cudaStream_t stream);

// composed[place] = first[second[place]], both within rows; composed may be second.
cudaError_t launch_compose(const LexsortArguments& arguments, Positions first, Positions second, Positions composed,
                           const uint32_t* called_off, cudaStream_t stream);

// ---- mend_runs.cu

// After the sort by the leading word: orders every run of equal words, or decides that the chain has to.
cudaError_t launch_mend_runs(const LexsortArguments& arguments, const uint64_t* sorted_words, int64_t* indices, int64_t* long_runs,
                             int blocks, cudaStream_t stream);

}  // namespace gpusort
