// The lexicographic ops, the same on every device: arguments are checked and become groups of key columns.
#pragma once

#include <torch/csrc/stable/library.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../core/key_columns.h"
#include "../plan/row_layout.h"
#include "bridge.h"

namespace gpusort::ops {

// Rows along `dim`, the other dims in their order.
inline StridedRows rows_along(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, int64_t dim) {
  std::vector<int> others;
  for (int i = 0; i < static_cast<int>(sizes.size()); ++i) {
    if (i != dim) others.push_back(i);
  }
  return make_strided_rows(sizes, strides, dim, others);
}

struct LexsortShape {
  std::vector<int64_t> sizes;
  int64_t dim = 0;
  StridedRows result;  // contiguous as a tensor
};

inline void check_has_order(const Tensor& key, const char* name) {
  if (!is_complex(dtype_of(key))) key_type_of(dtype_of(key), name);
}

inline LexsortShape checked_lexsort(const std::vector<Tensor>& keys, int64_t dim, const std::vector<bool>& descending) {
  check(!keys.empty(), PythonError::kValue, "keys is empty; it must hold one tensor or more");
  check(descending.size() == keys.size(), PythonError::kValue, "descending has ", descending.size(), " elements, but there are ",
        keys.size(), " keys; it must be one bool or one per key");
  LexsortShape shape;
  shape.sizes = sizes_of(keys[0]);
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string name = "keys[" + std::to_string(i) + "]";
    check_same_device(keys[i], keys[0], name.c_str(), "keys[0]");
    check(sizes_of(keys[i]) == shape.sizes, PythonError::kValue, "keys[0] has shape ", shape_text(shape.sizes), " and ", name,
          " has shape ", shape_text(keys[i].sizes()), "; they must be equal");
    check_has_order(keys[i], name.c_str());
  }
  shape.dim = wrap_dim(dim, static_cast<int64_t>(shape.sizes.size()));
  shape.result = rows_along(shape.sizes, contiguous_strides(shape.sizes), shape.dim);
  return shape;
}

template <class U>
KeyOrder<uint64_t> widened(const KeyOrder<U>& order) {
  KeyOrder<uint64_t> wide;
  wide.positive_flip = order.positive_flip;
  wide.negative_flip = order.negative_flip;
  wide.lowest = order.lowest;
  wide.clamp = order.clamp;
  wide.zero = order.zero;
  wide.complement = order.complement;
  return wide;
}

// How many entries of KeyColumns::column a tensor takes.
inline int key_columns_of(ScalarType dtype) {
  return dtype == ScalarType::ComplexDouble ? 2 : 1;
}

// Puts the column behind the others.
inline void append_column(KeyColumns& columns, const void* data, int64_t stride, ScalarType dtype, bool descending) {
  KeyColumn column;
  column.data = data;
  column.stride = stride;
  if (is_complex(dtype)) {
    const bool wide = dtype == ScalarType::ComplexDouble;
    column.bytes = 8;
    column.order.complement = descending ? ~uint64_t{0} : 0;
    column.kind = wide ? ColumnKind::kComplex128High : ColumnKind::kComplex64;
    columns.column[columns.period++] = column;
    column.kind = ColumnKind::kComplex128Low;
    if (wide) columns.column[columns.period++] = column;
  } else {
    const KeyType key = key_type_of(dtype, "keys");
    column.bytes = static_cast<uint8_t>(key.bytes);
    switch (key.bytes) {
      case 1: column.order = widened(key.order<uint8_t>(descending)); break;
      case 2: column.order = widened(key.order<uint16_t>(descending)); break;
      case 4: column.order = widened(key.order<uint32_t>(descending)); break;
      default: column.order = key.order<uint64_t>(descending);
    }
    columns.column[columns.period++] = column;
  }
  columns.count = columns.period;
}

// Columns of a matrix, the first one primary. No column: one that is equal everywhere, at `zero`.
inline KeyColumns matrix_columns(const Tensor& matrix, bool descending, const void* zero) {
  KeyColumns columns;
  if (matrix.size(1) == 0) {
    append_column(columns, zero, 0, ScalarType::Byte, descending);
    return columns;
  }
  const auto strides = matrix.strides();
  append_column(columns, matrix.const_data_ptr(), strides[0], dtype_of(matrix), descending);
  columns.count = columns.period * matrix.size(1);
  columns.repeat_bytes = strides[1] * static_cast<int64_t>(aoti_torch_dtype_element_size(dtype_code_of(matrix)));
  return columns;
}

inline void check_sort_rows(const Tensor& self) {
  check(self.dim() == 2, PythonError::kValue, "input has shape ", shape_text(self.sizes()), "; it must have two dims, rows and columns");
  check_has_order(self, "input");
}

template <Tensor (*kLexsort)(const std::vector<Tensor>&, const LexsortShape&, const std::vector<bool>&),
          std::tuple<Tensor, Tensor> (*kSortRows)(const Tensor&, bool)>
struct LexsortOps {
  static Tensor lexsort(std::vector<Tensor> keys, int64_t dim, std::optional<std::vector<bool>> descending) {
    const std::vector<bool> directions = descending.value_or(std::vector<bool>(keys.size(), false));
    return kLexsort(keys, checked_lexsort(keys, dim, directions), directions);
  }

  static std::tuple<Tensor, Tensor> sort_rows(const Tensor& self, bool descending) {
    check_sort_rows(self);
    return kSortRows(self, descending);
  }

  static void register_in(torch::stable::detail::StableLibrary& library) {
    library.impl("lexsort", TORCH_BOX(&LexsortOps::lexsort));
    library.impl("sort_rows", TORCH_BOX(&LexsortOps::sort_rows));
  }
};

}  // namespace gpusort::ops
