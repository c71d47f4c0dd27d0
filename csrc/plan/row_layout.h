// Which elements of a strided tensor form the rows of a sort, and where the results lie.
//
// A sort along `dim` sees rows x length elements. Rows are numbered by walking the other dims from the result's largest stride to its
// smallest, in the input and in the result alike, so one row number names the same row in both. A tensor that is dense in memory, in
// whatever dim order, then has its rows one after the other whenever `dim` is its fastest dim, and needs no copy.
//
// The result's strides follow torch.sort: those of the input if it is dense and does not overlap itself, else dense ones in the order of
// the input's strides (at::infer_dense_strides, whose insertion sort treats a stride of 0 as unordered).
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "../core/host_device.h"

namespace gpusort {

// Dims of size 1 are dropped, so every dim at least doubles the elements: 40 dims are 2^40 rows, beyond any memory.
constexpr int kMaxRowDims = 40;

// rows x length elements at strides, all in elements. Element e of row r lies at offset(r) + e * length_stride. A POD: kernels take it by
// value.
struct StridedRows {
  int dims = 0;                     // of the row number; the last one varies fastest
  int64_t sizes[kMaxRowDims] = {};  // 2 or more each
  int64_t strides[kMaxRowDims] = {};
  int64_t rows = 1;
  int64_t length = 1;
  int64_t length_stride = 1;

  GPUSORT_HD int64_t offset(int64_t row) const {
    int64_t result = 0;
    for (int i = dims - 1; i > 0; --i) {
      result += row % sizes[i] * strides[i];
      row /= sizes[i];
    }
    return dims > 0 ? result + row * strides[0] : 0;
  }

  // The elements lie one after the other, row after row.
  GPUSORT_HD bool contiguous() const {
    return rows * length == 0 || ((length == 1 || length_stride == 1) && (dims == 0 || (dims == 1 && strides[0] == length)));
  }
};

struct RowLayout {
  std::vector<int64_t> output_strides;  // of values and indices, one per dim of the tensor
  StridedRows input;
  StridedRows output;
};

// Elements lie in one dense block, each at its own address (torch's is_non_overlapping_and_dense).
inline bool is_dense(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  std::vector<size_t> order;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] > 1) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (const size_t i : order) {
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

// Dense strides in the order of `strides`.
inline std::vector<int64_t> infer_dense_strides(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  const int dims = static_cast<int>(sizes.size());
  std::vector<int> order(dims);  // fastest dim first
  std::iota(order.rbegin(), order.rend(), 0);
  // Positive when dim a is slower than dim b, negative when faster, 0 when the strides do not tell.
  const auto compare = [&](int a, int b) {
    if (strides[a] == 0 || strides[b] == 0) return 0;
    if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
    return sizes[a] > sizes[b] ? 1 : 0;
  };
  for (int i = 1; i < dims; ++i) {
    int moving = i;
    for (int before = i - 1; before >= 0; --before) {
      const int comparison = compare(order[before], order[moving]);
      if (comparison < 0) break;
      if (comparison > 0) {
        std::swap(order[before], order[moving]);
        moving = before;
      }
    }
  }
  std::vector<int64_t> dense(dims);
  int64_t stride = 1;
  for (const int dim : order) {
    dense[dim] = stride;
    if (sizes[dim] > 1) stride *= sizes[dim];
  }
  return dense;
}

inline std::vector<int64_t> output_strides_of(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  return is_dense(sizes, strides) ? strides : infer_dense_strides(sizes, strides);
}

// The rows along `dim`; the other dims are walked in `order`, slowest first. Neighbours that step evenly become one dim.
inline StridedRows make_strided_rows(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, int64_t dim,
                                     const std::vector<int>& order) {
  StridedRows result;
  if (!sizes.empty()) {
    result.length = sizes[dim];
    result.length_stride = strides[dim];
  }
  for (const int i : order) result.rows *= sizes[i];
  if (result.rows * result.length == 0) return result;
  for (const int i : order) {
    if (sizes[i] == 1) continue;
    if (result.dims > 0 && result.strides[result.dims - 1] == sizes[i] * strides[i]) {
      result.sizes[result.dims - 1] *= sizes[i];
      result.strides[result.dims - 1] = strides[i];
      continue;
    }
    if (result.dims == kMaxRowDims) throw std::runtime_error("ValueError: more than " + std::to_string(kMaxRowDims) + " strided dims");
    result.sizes[result.dims] = sizes[i];
    result.strides[result.dims++] = strides[i];
  }
  return result;
}

// Elements lie in the order of their coordinates.
inline bool is_contiguous(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return expected > 0;
}

// `dim` is wrapped already: 0 <= dim < max(1, number of dims).
inline RowLayout make_row_layout(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, int64_t dim) {
  RowLayout layout;
  if (dim + 1 == static_cast<int64_t>(sizes.size()) && is_contiguous(sizes, strides)) {
    // What the general way below comes to, without its work: small calls are made often.
    layout.output_strides = strides;
    layout.input.length = sizes[dim];
    for (int64_t i = 0; i < dim; ++i) layout.input.rows *= sizes[i];
    if (layout.input.rows > 1) {
      layout.input.dims = 1;
      layout.input.sizes[0] = layout.input.rows;
      layout.input.strides[0] = layout.input.length;
    }
    layout.output = layout.input;
    return layout;
  }
  layout.output_strides = output_strides_of(sizes, strides);
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(sizes.size()); ++i) {
    if (i != dim) order.push_back(i);
  }
  const std::vector<int64_t>& output_strides = layout.output_strides;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return output_strides[a] > output_strides[b]; });
  layout.input = make_strided_rows(sizes, strides, dim, order);
  layout.output = make_strided_rows(sizes, output_strides, dim, order);
  return layout;
}

}  // namespace gpusort
