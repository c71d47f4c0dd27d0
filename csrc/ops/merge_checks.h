// What the merging ops ask of their inputs on any device, and the problem they make of them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "../plan/merge_many_plan.h"
#include "../plan/merge_plan.h"
#include "../plan/row_layout.h"
#include "bridge.h"

namespace gpusort::ops {

// Rows along the last dim, in the order of the leading dims.
inline StridedRows rows_of_last_dim(const Tensor& tensor) {
  const std::vector<int64_t> sizes = sizes_of(tensor);
  const auto dims = static_cast<int64_t>(sizes.size());
  return make_strided_rows(sizes, strides_of(tensor), dims - 1, dims_but(dims - 1, dims));
}

// One device, and one dtype that has an order.
inline void check_keys(const Tensor& a, const Tensor& b, const char* a_name, const char* b_name) {
  check_same_device(b, a, b_name, a_name);
  if (!is_complex(dtype_of(a))) key_type_of(dtype_of(a), a_name);
  check(dtype_of(a) == dtype_of(b), PythonError::kType, a_name, " has dtype ", dtype_name(dtype_of(a)), " and ", b_name, " has dtype ",
        dtype_name(dtype_of(b)), "; they must be the same");
}

// Expanded tensors may be so long that their lengths do not add up in 64 bits.
inline void check_lengths_add_up(int64_t a_length, int64_t b_length, const char* a_name, const char* b_name) {
  check(a_length <= INT64_MAX - b_length, PythonError::kValue, a_name, " has ", a_length, " elements in its last dimension and ", b_name,
        " has ", b_length, "; they must be fewer than 2^63 together");
}

// Rank 1 or more, and equal leading dims. Returns the sizes of the merged tensor.
inline std::vector<int64_t> merged_sizes(const Tensor& a, const Tensor& b, const char* a_name, const char* b_name) {
  std::vector<int64_t> a_sizes = sizes_of(a), b_sizes = sizes_of(b);
  check(!a_sizes.empty() && !b_sizes.empty(), PythonError::kValue, a_sizes.empty() ? a_name : b_name,
        " has no dims; it must have one or more, the last being the sorted one");
  check(a_sizes.size() == b_sizes.size() && std::equal(a_sizes.begin(), a_sizes.end() - 1, b_sizes.begin()), PythonError::kValue, a_name,
        " has shape ", shape_text(a_sizes), " and ", b_name, " has shape ", shape_text(b_sizes), "; all dims but the last must be equal");
  check_lengths_add_up(a_sizes.back(), b_sizes.back(), a_name, b_name);
  a_sizes.back() += b_sizes.back();
  return a_sizes;
}

// The values that travel with the keys: on their device, of their shape, of one dtype.
inline void check_values(const Tensor& a_keys, const Tensor& a_values, const Tensor& b_keys, const Tensor& b_values) {
  check_same_device(a_values, a_keys, "a_values", "a_keys");
  check_same_device(b_values, a_keys, "b_values", "a_keys");
  check(sizes_of(a_values) == sizes_of(a_keys), PythonError::kValue, "a_values has shape ", shape_text(a_values.sizes()),
        " and a_keys has shape ", shape_text(a_keys.sizes()), "; they must be equal");
  check(sizes_of(b_values) == sizes_of(b_keys), PythonError::kValue, "b_values has shape ", shape_text(b_values.sizes()),
        " and b_keys has shape ", shape_text(b_keys.sizes()), "; they must be equal");
  check(dtype_of(a_values) == dtype_of(b_values), PythonError::kType, "a_values has dtype ", dtype_name(dtype_of(a_values)),
        " and b_values has dtype ", dtype_name(dtype_of(b_values)), "; they must be the same");
}

inline void check_co_rank(const Tensor& k, const Tensor& a, const Tensor& b) {
  check(dtype_of(k) == ScalarType::Long, PythonError::kType, "k has dtype ", dtype_name(dtype_of(k)), "; it must be torch.int64");
  check_same_device(k, a, "k", "a");
  check_keys(a, b, "a", "b");
  check(a.dim() == 1 && b.dim() == 1, PythonError::kValue, "a has shape ", shape_text(a.sizes()), " and b has shape ",
        shape_text(b.sizes()), "; both must have one dim");
  check_lengths_add_up(a.size(0), b.size(0), "a", "b");
}

inline MergeKernel checked_merge_kernel(const std::string& name) {
  MergeKernel kernel = MergeKernel::kAuto;
  check(parse_merge_kernel(name, kernel), PythonError::kValue, "kernel is '", name,
        "'; allowed are 'auto', 'sequential', 'basic', 'tiled' and 'circular'");
  return kernel;
}

// `place` is that of the first element that comes before its predecessor, counted over all rows; -1: there is none.
inline void check_rows_sorted(int64_t place, const Tensor& tensor, bool descending, const char* name) {
  if (place < 0) return;
  std::vector<int64_t> sizes = sizes_of(tensor), coordinates(sizes.size());
  for (size_t dim = sizes.size(); dim-- > 0; place /= sizes[dim]) coordinates[dim] = place % sizes[dim];
  fail(PythonError::kValue, name, " is not sorted in ", descending ? "descending" : "ascending",
       " order along its last dimension: the element at ", shape_text(coordinates), " is out of place");
}

// Sizes and order; the pointers are the caller's. Complex keys are merged by their code words.
inline MergeProblem merge_problem_of(const Tensor& a, const Tensor& b, bool descending) {
  MergeProblem problem;
  problem.key = is_complex(dtype_of(a)) ? KeyType{element_bytes_of(a), KeyKind::kUnsigned, 0} : key_type_of(dtype_of(a), "a");
  problem.descending = descending;
  const StridedRows rows = rows_of_last_dim(a);
  problem.rows = rows.rows;
  problem.a_length = rows.length;
  problem.b_length = b.size(b.dim() - 1);
  return problem;
}

// ---- merge_many ---------------------------------------------------------------------------------------------------------------------

// What shapes and dtypes say; what the offsets hold is looked at where they are.
inline void check_merge_many(const Tensor& runs, const Tensor& offsets) {
  if (!is_complex(dtype_of(runs))) key_type_of(dtype_of(runs), "runs");
  check(runs.dim() == 1, PythonError::kValue, "runs has shape ", shape_text(runs.sizes()), "; it must have one dim");
  check(dtype_of(offsets) == ScalarType::Long, PythonError::kType, "offsets has dtype ", dtype_name(dtype_of(offsets)),
        "; it must be torch.int64");
  const int64_t fewest = runs.size(0) > 0 ? 2 : 1;
  check(offsets.dim() == 1 && offsets.size(0) >= fewest, PythonError::kValue, "offsets has shape ", shape_text(offsets.sizes()),
        "; it must have one dim and ", fewest, " or more elements, one more than there are runs");
  check_same_device(offsets, runs, "offsets", "runs");
}

struct MergeManyResult {
  Tensor values;
  std::optional<Tensor> indices;
};

inline MergeManyResult allocate_merge_many(const Tensor& runs, bool want_indices) {
  const std::vector<int64_t> sizes = sizes_of(runs), strides = contiguous_strides(sizes);
  MergeManyResult result{allocate(runs, sizes, strides, dtype_code_of(runs)), std::nullopt};
  if (want_indices) result.indices = allocate(runs, sizes, strides, index_dtype_code(8));
  return result;
}

// Sizes and order; the pointers are the caller's. Complex keys are merged by their code words.
inline MergeManyProblem merge_many_problem_of(const Tensor& runs, const Tensor& offsets, bool descending) {
  MergeManyProblem problem;
  problem.key = is_complex(dtype_of(runs)) ? KeyType{8, KeyKind::kUnsigned, 0} : key_type_of(dtype_of(runs), "runs");
  problem.descending = descending;
  problem.length = runs.size(0);
  problem.runs = offsets.size(0) - 1;
  return problem;
}

}  // namespace gpusort::ops
