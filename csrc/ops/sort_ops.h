// The sorting ops, the same on every device: arguments are checked and become one request, which a device's function carries out.
#pragma once

#include <torch/csrc/stable/library.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../plan/row_layout.h"
#include "../plan/sort_plan.h"
#include "bridge.h"

namespace gpusort::ops {

struct SortRequest {
  int64_t dim = -1;
  bool descending = false;
  bool want_values = true;
  bool want_indices = true;
  std::optional<ScalarType> index_dtype;
  SortAlgorithm algorithm = SortAlgorithm::kAuto;
  int digit_bits = 8;  // of kRadixBlock
  int64_t begin_bit = 0;
  std::optional<int64_t> end_bit;
};

struct SortResult {
  std::optional<Tensor> values;
  std::optional<Tensor> indices;
};

inline SortAlgorithm checked_sort_algorithm(const std::string& name) {
  SortAlgorithm algorithm = SortAlgorithm::kAuto;
  check(parse_sort_algorithm(name, &algorithm), PythonError::kValue, "algorithm is '", name, "'; allowed are ", kSortAlgorithmNames);
  return algorithm;
}

inline RadixKernel checked_radix_kernel(const std::string& name, std::optional<int64_t> digit_bits) {
  RadixKernel kernel;
  check(parse_radix_kernel(name, digit_bits, &kernel), PythonError::kValue, "kernel is '", name, "'; allowed are ", kRadixKernelNames);
  check(kernel.digit_bits_allowed, PythonError::kValue, "digit_bits is ", digit_bits.value_or(0), "; kernel '", name, "' takes ",
        kernel.digit_bits_names);
  return kernel;
}

inline void set_radix_options(SortRequest& request, ScalarType dtype, const std::string& kernel_name, std::optional<int64_t> digit_bits,
                              int64_t begin_bit, std::optional<int64_t> end_bit) {
  const RadixKernel kernel = checked_radix_kernel(kernel_name, digit_bits);
  check(!is_complex(dtype), PythonError::kType, "input has dtype ", dtype_name(dtype),
        ", which has no radix key (sort takes it); allowed are ", kRealDtypes);
  const int64_t key_bits = key_type_of(dtype, "input").bytes * 8;
  const int64_t end = end_bit.value_or(key_bits);
  check(begin_bit >= 0 && begin_bit <= end && end <= key_bits, PythonError::kValue, "begin_bit is ", begin_bit, " and end_bit is ", end,
        "; allowed is 0 <= begin_bit <= end_bit <= ", key_bits, " for ", dtype_name(dtype));
  request.algorithm = kernel.algorithm;
  request.digit_bits = kernel.digit_bits;
  request.begin_bit = begin_bit;
  request.end_bit = end;
}

// What a request comes to, but for its pointers, and what the results are to be.
struct PreparedSort {
  RowLayout layout;
  SortProblem problem;
  SortResult result;
};

// `key` is how the kernels see the dtype.
inline PreparedSort prepare_sort(const Tensor& self, const SortRequest& request, const KeyType& key) {
  const std::vector<int64_t> sizes = sizes_of(self);
  const int64_t dim = wrap_dim(request.dim, static_cast<int64_t>(sizes.size()));
  PreparedSort prepared{make_row_layout(sizes, strides_of(self), dim), {}, {}};
  SortProblem& problem = prepared.problem;
  problem.key = key;
  problem.descending = request.descending;
  problem.begin_bit = static_cast<int>(request.begin_bit);
  problem.end_bit = static_cast<int>(request.end_bit.value_or(key.bytes * 8));
  problem.rows = prepared.layout.input.rows;
  problem.length = prepared.layout.input.length;
  problem.index_bytes = index_bytes_of(request.index_dtype, problem.length);
  const std::vector<int64_t>& strides = prepared.layout.output_strides;
  if (request.want_values) prepared.result.values = allocate(self, sizes, strides, dtype_code_of(self));
  if (request.want_indices) prepared.result.indices = allocate(self, sizes, strides, index_dtype_code(problem.index_bytes));
  return prepared;
}

template <SortResult (*kSort)(const Tensor&, const SortRequest&)>
struct SortOps {
  static std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim, bool descending, bool /*stable: always*/,
                                         std::optional<ScalarType> index_dtype, StringHandle algorithm) {
    SortRequest request;
    request.dim = dim;
    request.descending = descending;
    request.index_dtype = index_dtype;
    request.algorithm = checked_sort_algorithm(take_string(algorithm));
    SortResult result = kSort(self, request);
    return {*result.values, *result.indices};
  }

  static std::tuple<Tensor, Tensor> plain_sort(const Tensor& self, int64_t dim, bool descending) {
    SortRequest request;
    request.dim = dim;
    request.descending = descending;
    SortResult result = kSort(self, request);
    return {std::move(*result.values), std::move(*result.indices)};
  }

  static Tensor argsort(const Tensor& self, int64_t dim, bool descending, bool /*stable: always*/, std::optional<ScalarType> index_dtype) {
    SortRequest request;
    request.dim = dim;
    request.descending = descending;
    request.index_dtype = index_dtype;
    request.want_values = false;
    return *kSort(self, request).indices;
  }

  static Tensor sort_keys(const Tensor& self, int64_t dim, bool descending) {
    SortRequest request;
    request.dim = dim;
    request.descending = descending;
    request.want_indices = false;
    return *kSort(self, request).values;
  }

  static Tensor msort(const Tensor& self) { return sort_keys(self, 0, false); }

  static std::tuple<Tensor, Tensor> radix_sort(const Tensor& self, int64_t dim, bool descending, int64_t begin_bit,
                                               std::optional<int64_t> end_bit, StringHandle kernel_name,
                                               std::optional<int64_t> digit_bits) {
    SortRequest request;
    request.dim = dim;
    request.descending = descending;
    set_radix_options(request, dtype_of(self), take_string(kernel_name), digit_bits, begin_bit, end_bit);
    SortResult result = kSort(self, request);
    return {*result.values, *result.indices};
  }

  template <SortAlgorithm kAlgorithm>
  static std::tuple<Tensor, Tensor> sort_by(const Tensor& self, int64_t dim, bool descending) {
    SortRequest request;
    request.dim = dim;
    request.descending = descending;
    request.algorithm = kAlgorithm;
    SortResult result = kSort(self, request);
    return {*result.values, *result.indices};
  }

  static void register_in(torch::stable::detail::StableLibrary& library) {
    library.impl("sort", TORCH_BOX(&SortOps::sort));
    library.impl("_sort", TORCH_BOX(&SortOps::plain_sort));
    library.impl("_sort_keys", TORCH_BOX(&SortOps::sort_keys));
    library.impl("argsort", TORCH_BOX(&SortOps::argsort));
    library.impl("msort", TORCH_BOX(&SortOps::msort));
    library.impl("sort_keys", TORCH_BOX(&SortOps::sort_keys));
    library.impl("radix_sort", TORCH_BOX(&SortOps::radix_sort));
    library.impl("merge_sort", TORCH_BOX(&SortOps::template sort_by<SortAlgorithm::kMerge>));
    library.impl("bitonic_sort", TORCH_BOX(&SortOps::template sort_by<SortAlgorithm::kBitonic>));
    library.impl("sample_sort", TORCH_BOX(&SortOps::template sort_by<SortAlgorithm::kSample>));
  }
};

}  // namespace gpusort::ops
