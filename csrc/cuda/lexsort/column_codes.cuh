// Codes and words of several elements at once, column by column, so that a thread waits once for all of them.
#pragma once

#include "lexsort_arguments.h"

namespace gpusort {

// The codes of one column; element[k] < 0 has none.
template <class U, int kItems>
__device__ __forceinline__ void load_real_codes(const KeyColumn& column, const void* data, const int64_t (&element)[kItems],
                                                uint64_t (&code)[kItems]) {
  U key[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    key[k] = 0;
    if (element[k] >= 0) key[k] = static_cast<const U*>(data)[element[k] * column.stride];
  }
#pragma unroll
  for (int k = 0; k < kItems; ++k) code[k] = code_of_width<U>(column.order, key + k, 0);
}

template <int kItems>
__device__ __forceinline__ void load_codes(const KeyColumns& columns, int64_t c, const int64_t (&element)[kItems],
                                           uint64_t (&code)[kItems]) {
  const KeyColumn& column = columns[c];
  const void* data = columns.data(c);
  if (column.kind != ColumnKind::kReal) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) code[k] = element[k] >= 0 ? column_code(column, data, element[k]) : 0;
  } else if (column.bytes == 8) {
    load_real_codes<uint64_t, kItems>(column, data, element, code);
  } else if (column.bytes == 4) {
    load_real_codes<uint32_t, kItems>(column, data, element, code);
  } else if (column.bytes == 2) {
    load_real_codes<uint16_t, kItems>(column, data, element, code);
  } else {
    load_real_codes<uint8_t, kItems>(column, data, element, code);
  }
}

// `word` of the wide key of each element: narrowed where there are entries, else by dtype, where `c` and `begin` are find_word's.
template <int kItems>
__device__ __forceinline__ void load_words(const LexsortArguments& m, int64_t word, int64_t c, int64_t begin,
                                           const int64_t (&element)[kItems], uint64_t (&value)[kItems]) {
  const bool narrowed = m.entries != nullptr;
  if (narrowed) c = m.entries[word].first_of_word;
#pragma unroll
  for (int k = 0; k < kItems; ++k) value[k] = 0;
#pragma unroll 1
  for (; c < m.columns.count; ++c) {
    int width = m.columns[c].bits();
    uint64_t smallest = 0;
    if (narrowed) {
      begin = m.entries[c].begin;
      width = static_cast<int>(m.entries[c].width);
      smallest = m.entries[c].smallest();
    }
    if (begin >= 64 * (word + 1)) break;
    if (width > 0) {
      uint64_t code[kItems];
      load_codes(m.columns, c, element, code);
#pragma unroll
      for (int k = 0; k < kItems; ++k) value[k] |= part_of_word(code[k] - smallest, begin, width, word);
    }
    begin += width;
  }
}

}  // namespace gpusort
