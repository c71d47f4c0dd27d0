// CUDA kernels of the sorting ops: strides to packed rows, a plan, one workspace, the launches, and back.
#include <torch/csrc/stable/library.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../cuda/layout/strided_copy.h"
#include "packed_rows_cuda.h"

namespace gpusort::ops {
namespace {

struct SortRequest {
  int64_t dim = -1;
  bool descending = false;
  bool want_values = true;
  bool want_indices = true;
  std::optional<ScalarType> index_dtype;
  SortAlgorithm algorithm = SortAlgorithm::kAuto;
  int64_t begin_bit = 0;
  std::optional<int64_t> end_bit;
};

struct SortResult {
  std::optional<Tensor> values;
  std::optional<Tensor> indices;
};

SortResult sort_on_device(const Tensor& self, const SortRequest& request) {
  const ScalarType dtype = self.scalar_type();
  const bool complex = is_complex(dtype);
  const std::vector<int64_t> sizes = sizes_of(self);
  const int64_t dim = wrap_dim(request.dim, static_cast<int64_t>(sizes.size()));

  SortProblem problem;
  problem.key = complex ? KeyType{8, KeyKind::kUnsigned, 0} : key_type_of(dtype, "input");
  const int element_bytes = dtype == ScalarType::ComplexDouble ? 16 : problem.key.bytes;
  problem.descending = request.descending;
  problem.begin_bit = static_cast<int>(request.begin_bit);
  problem.end_bit = static_cast<int>(request.end_bit.value_or(problem.key.bytes * 8));

  const CudaScope scope(self);
  const RowLayout layout = make_row_layout(sizes, strides_of(self), dim);
  problem.rows = layout.input.rows;
  problem.length = layout.input.length;
  problem.index_bytes = index_bytes_of(request.index_dtype, problem.length);

  SortResult result;
  if (request.want_values) result.values = allocate(self, sizes, layout.output_strides, dtype_code_of(self));
  if (request.want_indices) result.indices = allocate(self, sizes, layout.output_strides, index_dtype_code(problem.index_bytes));
  if (problem.numel() == 0) return result;

  const PackedRows keys(self, layout.input, element_bytes, scope);
  std::optional<PackedResult> values, indices;
  problem.keys_in = keys.data();
  if (result.values) problem.keys_out = values.emplace(*result.values, layout.output, element_bytes).data();
  if (result.indices) problem.indices_out = indices.emplace(*result.indices, layout.output, problem.index_bytes).data();
  if (complex) {
    sort_packed_complex(problem, element_bytes == 16, request.algorithm, self, scope);
  } else {
    sort_packed_rows(problem, request.algorithm, self, scope);
  }
  if (values) values->finish(scope);
  if (indices) indices->finish(scope);
  return result;
}

SortAlgorithm checked_algorithm(const std::string& name) {
  SortAlgorithm algorithm = SortAlgorithm::kAuto;
  check(parse_sort_algorithm(name, &algorithm), PythonError::kValue, "algorithm is '", name, "'; allowed are ", kSortAlgorithmNames);
  return algorithm;
}

std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim, bool descending, bool /*stable: always*/,
                                std::optional<ScalarType> index_dtype, std::string algorithm) {
  SortRequest request;
  request.dim = dim;
  request.descending = descending;
  request.index_dtype = index_dtype;
  request.algorithm = checked_algorithm(algorithm);
  SortResult result = sort_on_device(self, request);
  return {*result.values, *result.indices};
}

Tensor argsort(const Tensor& self, int64_t dim, bool descending, bool /*stable: always*/, std::optional<ScalarType> index_dtype) {
  SortRequest request;
  request.dim = dim;
  request.descending = descending;
  request.index_dtype = index_dtype;
  request.want_values = false;
  return *sort_on_device(self, request).indices;
}

Tensor sort_keys(const Tensor& self, int64_t dim, bool descending) {
  SortRequest request;
  request.dim = dim;
  request.descending = descending;
  request.want_indices = false;
  return *sort_on_device(self, request).values;
}

Tensor msort(const Tensor& self) {
  return sort_keys(self, 0, false);
}

std::tuple<Tensor, Tensor> radix_sort(const Tensor& self, int64_t dim, bool descending, int64_t begin_bit, std::optional<int64_t> end_bit,
                                      std::string kernel, std::optional<int64_t> digit_bits) {
  const ScalarType dtype = self.scalar_type();
  check(!is_complex(dtype), PythonError::kType, "input has dtype ", dtype_name(dtype), ", which has no radix key; use sort");
  const int64_t key_bits = key_type_of(dtype, "input").bytes * 8;
  const int64_t end = end_bit.value_or(key_bits);
  check(begin_bit >= 0 && begin_bit <= end && end <= key_bits, PythonError::kValue, "begin_bit is ", begin_bit, " and end_bit is ", end,
        "; allowed is 0 <= begin_bit <= end_bit <= ", key_bits, " for ", dtype_name(dtype));
  check(kernel == "auto" || kernel == "onesweep", PythonError::kValue, "kernel is '", kernel, "'; allowed are 'auto' and 'onesweep'");
  check(!digit_bits || *digit_bits == 8, PythonError::kValue, "digit_bits is ", digit_bits.value_or(8), "; kernel '", kernel,
        "' takes None or 8");
  SortRequest request;
  request.dim = dim;
  request.descending = descending;
  request.algorithm = SortAlgorithm::kRadix;
  request.begin_bit = begin_bit;
  request.end_bit = end;
  SortResult result = sort_on_device(self, request);
  return {*result.values, *result.indices};
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CUDA, m) {
  m.impl("sort", TORCH_BOX(&gpusort::ops::sort));
  m.impl("argsort", TORCH_BOX(&gpusort::ops::argsort));
  m.impl("msort", TORCH_BOX(&gpusort::ops::msort));
  m.impl("sort_keys", TORCH_BOX(&gpusort::ops::sort_keys));
  m.impl("radix_sort", TORCH_BOX(&gpusort::ops::radix_sort));
}
