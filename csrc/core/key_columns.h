// Several key columns as one wide unsigned integer, cut into words of 64 bits: what a lexicographic sort compares.
//
// Every column has a code (core/key_order.h, core/complex_code.h) whose numeric order is the column's order, its own direction included.
// Codes written one after the other, the primary column first, each with a fixed number of bits, are one wide number whose order is that
// of the columns. Word 0 holds its top 64 bits; a column may lie across two words.
//
//   bit of the wide number   0 .......... 63 | 64 ........ 127 | 128 ...
//                            primary | second | third ...
//
// A column takes the bits of its dtype, or fewer where its smallest and its largest code are known: code - smallest in as many bits as
// largest - smallest has. Both keep the order, so both may be used for the same data.
#pragma once

#include <cstdint>

#include "complex_code.h"
#include "host_device.h"
#include "key_order.h"

namespace gpusort {

enum class ColumnKind : uint8_t { kReal, kComplex64, kComplex128High, kComplex128Low };

// One column. Element i lies `i * stride` elements behind `data`.
struct KeyColumn {
  const void* data = nullptr;
  int64_t stride = 1;
  ColumnKind kind = ColumnKind::kReal;
  uint8_t bytes = 4;         // of a real key; 8 for the others, whose codes are words
  KeyOrder<uint64_t> order;  // of the key's own width, in the low bits; for complex columns only the complement counts

  GPUSORT_HD int bits() const { return bytes * 8; }
};

template <class U>
GPUSORT_HD uint64_t code_of_width(const KeyOrder<uint64_t>& wide, const void* data, int64_t place) {
  KeyOrder<U> order;
  order.positive_flip = static_cast<U>(wide.positive_flip);
  order.negative_flip = static_cast<U>(wide.negative_flip);
  order.lowest = static_cast<U>(wide.lowest);
  order.clamp = static_cast<U>(wide.clamp);
  order.zero = static_cast<U>(wide.zero);
  order.complement = static_cast<U>(wide.complement);
  return order.code(static_cast<const U*>(data)[place]);
}

GPUSORT_HD uint64_t column_code(const KeyColumn& column, const void* data, int64_t element) {
  const int64_t place = element * column.stride;
  if (column.kind == ColumnKind::kComplex64) {
    const auto* parts = static_cast<const uint32_t*>(data) + 2 * place;
    return complex64_code(parts[0], parts[1]) ^ column.order.complement;
  }
  if (column.kind != ColumnKind::kReal) {
    const auto* parts = static_cast<const uint64_t*>(data) + 2 * place;
    const WideCode code = complex128_code(parts[0], parts[1]);
    return (column.kind == ColumnKind::kComplex128High ? code.high : code.low) ^ column.order.complement;
  }
  switch (column.bytes) {
    case 1: return code_of_width<uint8_t>(column.order, data, place);
    case 2: return code_of_width<uint16_t>(column.order, data, place);
    case 4: return code_of_width<uint32_t>(column.order, data, place);
    default: return column.order.code(static_cast<const uint64_t*>(data)[place]);
  }
}

constexpr int kMaxKeyColumns = 24;  // kernels take them by value

// All columns, the primary one first: `period` given ones, repeated every `repeat_bytes` (the columns of a matrix) until `count`.
struct KeyColumns {
  KeyColumn column[kMaxKeyColumns];
  int period = 0;
  int64_t count = 0;
  int64_t repeat_bytes = 0;

  GPUSORT_HD const KeyColumn& operator[](int64_t c) const { return column[c < period ? c : c % period]; }
  GPUSORT_HD const void* data(int64_t c) const {
    return c < period ? column[c].data : static_cast<const char*>(column[c % period].data) + c / period * repeat_bytes;
  }
  GPUSORT_HD uint64_t code(int64_t c, int64_t element) const { return column_code((*this)[c], data(c), element); }

  int64_t bits() const {  // by dtype
    int64_t period_bits = 0, rest_bits = 0;
    for (int c = 0; c < period; ++c) period_bits += column[c].bits();
    for (int c = 0; c < count % period; ++c) rest_bits += column[c].bits();
    return count / period * period_bits + rest_bits;
  }
  int64_t words() const { return (bits() + 63) / 64; }

  // The first column with a part in `word`, and the bit at which it begins, when every column takes the bits of its dtype.
  void find_word(int64_t word, int64_t* first, int64_t* begin) const {
    int64_t period_bits = 0;
    for (int c = 0; c < period; ++c) period_bits += column[c].bits();
    *first = word * 64 / period_bits * period;
    *begin = word * 64 / period_bits * period_bits;
    while (*begin + (*this)[*first].bits() <= word * 64) *begin += (*this)[(*first)++].bits();
  }
};

// The part of `word` that a code of `width` bits beginning at bit `begin` of the wide number has.
GPUSORT_HD uint64_t part_of_word(uint64_t code, int64_t begin, int width, int64_t word) {
  const int64_t left = 64 * (word + 1) - begin - width;  // bits of the word behind the code
  if (left >= 0) return left < 64 ? code << left : 0;
  return left > -64 ? code >> -left : 0;
}

// One word of one element, when every column takes the bits of its dtype; first and begin are find_word's.
GPUSORT_HD uint64_t word_by_dtype(const KeyColumns& columns, int64_t word, int64_t first, int64_t begin, int64_t element) {
  uint64_t value = 0;
  for (int64_t c = first; c < columns.count && begin < 64 * (word + 1); ++c) {
    const int width = columns[c].bits();
    value |= part_of_word(columns.code(c, element), begin, width, word);
    begin += width;
  }
  return value;
}

}  // namespace gpusort
