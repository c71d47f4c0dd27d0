// CPU kernels of the sorting ops: strides to packed rows, the sort, and back.
#include <torch/csrc/stable/library.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../cpu/complex_rows.h"
#include "../cpu/sort_rows.h"
#include "../plan/row_layout.h"
#include "bridge_cpu.h"

namespace gpusort::ops {
namespace {

struct SortRequest {
  int64_t dim = -1;
  bool descending = false;
  bool want_values = true;
  bool want_indices = true;
  std::optional<ScalarType> index_dtype;
  cpu::SortMethod method = cpu::SortMethod::kAuto;
  int64_t begin_bit = 0;
  std::optional<int64_t> end_bit;
};

struct SortResult {
  std::optional<Tensor> values;
  std::optional<Tensor> indices;
};

SortResult sort_on_cpu(const Tensor& self, const SortRequest& request) {
  const ScalarType dtype = self.scalar_type();
  const bool complex = is_complex(dtype);
  const std::vector<int64_t> sizes = sizes_of(self);
  const int64_t dim = wrap_dim(request.dim, static_cast<int64_t>(sizes.size()));

  SortProblem problem;
  problem.key = complex ? KeyType{dtype == ScalarType::ComplexDouble ? 16 : 8, KeyKind::kUnsigned, 0} : key_type_of(dtype, "input");
  problem.descending = request.descending;
  problem.begin_bit = static_cast<int>(request.begin_bit);
  problem.end_bit = static_cast<int>(request.end_bit.value_or(problem.key.bytes * 8));
  const RowLayout layout = make_row_layout(sizes, strides_of(self), dim);
  problem.rows = layout.input.rows;
  problem.length = layout.input.length;
  problem.index_bytes = index_bytes_of(request.index_dtype, problem.length);

  SortResult result;
  if (request.want_values) result.values = allocate(self, sizes, layout.output_strides, dtype_code_of(self));
  if (request.want_indices) result.indices = allocate(self, sizes, layout.output_strides, index_dtype_code(problem.index_bytes));
  if (problem.numel() == 0) return result;

  on_cpu([&] {
    const cpu::Parallel threads = torch_threads();
    const PackedRows keys(self, layout.input, problem.key.bytes, threads);
    std::optional<PackedResult> values, indices;
    problem.keys_in = keys.data();
    if (result.values) problem.keys_out = values.emplace(*result.values, layout.output, problem.key.bytes).data();
    if (result.indices) problem.indices_out = indices.emplace(*result.indices, layout.output, problem.index_bytes).data();
    if (complex) {
      cpu::sort_complex_rows(problem, request.method, threads);
    } else {
      cpu::sort_rows(problem, request.method, threads);
    }
    if (values) values->finish(threads);
    if (indices) indices->finish(threads);
  });
  return result;
}

cpu::SortMethod checked_algorithm(const std::string& name) {
  if (name == "auto") return cpu::SortMethod::kAuto;
  if (name == "radix") return cpu::SortMethod::kRadix;
  check(name == "merge", PythonError::kValue, "algorithm is '", name, "'; allowed on the CPU are 'auto', 'radix' and 'merge'");
  return cpu::SortMethod::kMerge;
}

std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim, bool descending, bool /*stable: always*/,
                                std::optional<ScalarType> index_dtype, std::string algorithm) {
  SortRequest request;
  request.dim = dim;
  request.descending = descending;
  request.index_dtype = index_dtype;
  request.method = checked_algorithm(algorithm);
  SortResult result = sort_on_cpu(self, request);
  return {*result.values, *result.indices};
}

Tensor argsort(const Tensor& self, int64_t dim, bool descending, bool /*stable: always*/, std::optional<ScalarType> index_dtype) {
  SortRequest request;
  request.dim = dim;
  request.descending = descending;
  request.index_dtype = index_dtype;
  request.want_values = false;
  return *sort_on_cpu(self, request).indices;
}

Tensor sort_keys(const Tensor& self, int64_t dim, bool descending) {
  SortRequest request;
  request.dim = dim;
  request.descending = descending;
  request.want_indices = false;
  return *sort_on_cpu(self, request).values;
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
  request.method = cpu::SortMethod::kRadix;
  request.begin_bit = begin_bit;
  request.end_bit = end;
  SortResult result = sort_on_cpu(self, request);
  return {*result.values, *result.indices};
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CPU, m) {
  m.impl("sort", TORCH_BOX(&gpusort::ops::sort));
  m.impl("argsort", TORCH_BOX(&gpusort::ops::argsort));
  m.impl("msort", TORCH_BOX(&gpusort::ops::msort));
  m.impl("sort_keys", TORCH_BOX(&gpusort::ops::sort_keys));
  m.impl("radix_sort", TORCH_BOX(&gpusort::ops::radix_sort));
}
