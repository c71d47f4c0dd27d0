// A word of the narrowed key of one element (plan/lexsort_plan.h).
#pragma once

#include "lexsort_arguments.h"

namespace gpusort {

__device__ __forceinline__ uint64_t narrowed_word(const LexsortArguments& m, int64_t word, int64_t element) {
  uint64_t value = 0;
  for (int64_t c = m.entries[word].first_of_word; c < m.columns.count; ++c) {
    const ColumnEntry& entry = m.entries[c];
    if (entry.begin >= 64 * (word + 1)) break;
    if (entry.width == 0) continue;
    value |= part_of_word(m.columns.code(c, element) - entry.smallest(), entry.begin, static_cast<int>(entry.width), word);
  }
  return value;
}

}  // namespace gpusort
