// CUDA kernels of the sorting ops: strides to packed rows, a plan, one workspace, the launches, and back.
#include <torch/csrc/stable/library.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../cuda/layout/complex_keys.h"
#include "../cuda/layout/strided_copy.h"
#include "../cuda/radix/radix_sort.h"
#include "../cuda/rows/row_sort.h"
#include "../plan/row_layout.h"
#include "../plan/sort_plan.h"
#include "bridge_cuda.h"

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

// Plans, allocates the workspace and launches. All rows are packed. The workspace goes back to torch's allocator when this returns, which is
// safe because the allocator hands it out again on the same stream only.
void sort_packed_rows(const SortProblem& problem, SortAlgorithm requested, const Tensor& like, const CudaScope& scope) {
  if (problem.numel() == 0) return;
  if (choose_sort_algorithm(problem, requested, scope.traits()) == SortAlgorithm::kRows) {
    const RowPlan plan = plan_row_sort(problem, scope.traits());
    std::optional<Tensor> workspace;
    if (plan.workspace_bytes > 0) workspace = allocate_bytes(like, plan.workspace_bytes);
    check_cuda(launch_row_sort(problem, plan, workspace ? workspace->mutable_data_ptr() : nullptr, scope.stream()), "sort rows");
    return;
  }
  const RadixPlan plan = plan_radix_sort(problem, scope.traits());
  std::optional<Tensor> workspace;
  if (plan.workspace_bytes > 0) workspace = allocate_bytes(like, plan.workspace_bytes);
  check_cuda(launch_radix_sort(problem, plan, workspace ? workspace->mutable_data_ptr() : nullptr, scope.stream()), "run the radix sort");
}

// Complex keys: sort the code words, least significant word first, carrying the positions; then fetch the values by position.
void sort_packed_complex(const SortProblem& shape, bool double_precision, SortAlgorithm requested, const Tensor& like, const CudaScope& scope) {
  const int64_t numel = shape.numel();
  if (numel == 0) return;
  const int words = double_precision ? 2 : 1;
  Tensor codes = allocate_bytes(like, numel * 8 * words);
  auto* code_words = static_cast<uint64_t*>(codes.mutable_data_ptr());
  check_cuda(launch_complex_codes(shape.keys_in, double_precision, numel, code_words, scope.stream()), "encode complex keys");

  SortProblem by_word;
  by_word.key = {8, KeyKind::kUnsigned, 0};
  by_word.descending = shape.descending;
  by_word.rows = shape.rows;
  by_word.length = shape.length;
  by_word.end_bit = 64;
  by_word.index_bytes = shape.index_bytes;
  const int64_t index_total = numel * shape.index_bytes;

  Tensor order = allocate_bytes(like, index_total);  // positions by all words so far
  by_word.keys_in = code_words;
  by_word.indices_out = order.mutable_data_ptr();
  sort_packed_rows(by_word, requested, like, scope);
  if (words == 2) {
    Tensor high = allocate_bytes(like, numel * 8);
    check_cuda(launch_take_along_rows(code_words + numel, 8, order.mutable_data_ptr(), shape.index_bytes, shape.rows, shape.length,
                                      high.mutable_data_ptr(), scope.stream()),
               "reorder complex keys");
    Tensor by_high = allocate_bytes(like, index_total);
    by_word.keys_in = high.mutable_data_ptr();
    by_word.indices_out = by_high.mutable_data_ptr();
    sort_packed_rows(by_word, requested, like, scope);
    Tensor composed = allocate_bytes(like, index_total);
    check_cuda(launch_take_along_rows(order.mutable_data_ptr(), shape.index_bytes, by_high.mutable_data_ptr(), shape.index_bytes, shape.rows,
                                      shape.length, composed.mutable_data_ptr(), scope.stream()),
               "compose positions");
    order = composed;
  }
  if (shape.keys_out != nullptr) {
    check_cuda(launch_take_along_rows(shape.keys_in, 8 * words, order.mutable_data_ptr(), shape.index_bytes, shape.rows, shape.length,
                                      shape.keys_out, scope.stream()),
               "fetch complex values");
  }
  if (shape.indices_out != nullptr) {
    check_cuda(cudaMemcpyAsync(shape.indices_out, order.mutable_data_ptr(), index_total, cudaMemcpyDeviceToDevice, scope.stream()),
               "copy positions");
  }
}

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
  const int64_t numel = problem.numel();

  SortResult result;
  if (request.want_values) result.values = allocate(self, sizes, layout.output_strides, dtype_code_of(self));
  if (request.want_indices) result.indices = allocate(self, sizes, layout.output_strides, index_dtype_code(problem.index_bytes));
  if (numel == 0) return result;

  // Rows that do not lie packed in memory are copied in, and results out.
  std::optional<Tensor> packed_keys, packed_values, packed_indices;
  problem.keys_in = self.const_data_ptr();
  if (!layout.input.contiguous()) {
    packed_keys = allocate_bytes(self, numel * element_bytes);
    check_cuda(launch_gather_rows(layout.input, element_bytes, self.const_data_ptr(), packed_keys->mutable_data_ptr(), scope.stream()),
               "gather rows");
    problem.keys_in = packed_keys->mutable_data_ptr();
  }
  const bool packed_output = layout.output.contiguous();
  if (result.values) {
    if (!packed_output) packed_values = allocate_bytes(self, numel * element_bytes);
    problem.keys_out = (packed_output ? *result.values : *packed_values).mutable_data_ptr();
  }
  if (result.indices) {
    if (!packed_output) packed_indices = allocate_bytes(self, numel * problem.index_bytes);
    problem.indices_out = (packed_output ? *result.indices : *packed_indices).mutable_data_ptr();
  }

  if (complex) {
    sort_packed_complex(problem, dtype == ScalarType::ComplexDouble, request.algorithm, self, scope);
  } else {
    sort_packed_rows(problem, request.algorithm, self, scope);
  }

  if (packed_values) {
    check_cuda(launch_scatter_rows(layout.output, element_bytes, packed_values->mutable_data_ptr(), result.values->mutable_data_ptr(),
                                   scope.stream()),
               "scatter values");
  }
  if (packed_indices) {
    check_cuda(launch_scatter_rows(layout.output, problem.index_bytes, packed_indices->mutable_data_ptr(),
                                   result.indices->mutable_data_ptr(), scope.stream()),
               "scatter indices");
  }
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

Tensor msort(const Tensor& self) { return sort_keys(self, 0, false); }

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
