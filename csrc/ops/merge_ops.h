// The merging ops of two tensors, the same on every device: arguments are read and handed to a device's function.
#pragma once

#include <torch/csrc/stable/library.h>

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "merge_checks.h"

namespace gpusort::ops {

struct MergeRequest {
  bool descending = false;
  MergeKernel kernel = MergeKernel::kAuto;
  bool check_sorted = false;
  bool want_indices = false;
};

struct MergeResult {
  Tensor values;
  std::optional<Tensor> indices;
};

// Values and, if they are wanted, indices for a and b merged along the last dim: contiguous, of `sizes`.
inline MergeResult allocate_merge(const Tensor& a, const std::vector<int64_t>& sizes, bool want_indices) {
  const std::vector<int64_t> strides = contiguous_strides(sizes);
  MergeResult result{allocate(a, sizes, strides, dtype_code_of(a)), std::nullopt};
  if (want_indices) result.indices = allocate(a, sizes, strides, index_dtype_code(8));
  return result;
}

template <MergeResult (*kMerge)(const Tensor&, const Tensor&, const MergeRequest&)>
struct MergeOps {
  static std::tuple<Tensor, Tensor> with_indices(const Tensor& a, const Tensor& b, const MergeRequest& request) {
    MergeResult result = kMerge(a, b, request);
    return {std::move(result.values), std::move(*result.indices)};
  }

  static Tensor merge(const Tensor& a, const Tensor& b, bool descending, StringHandle kernel, bool check_sorted) {
    return kMerge(a, b, {descending, checked_merge_kernel(take_string(kernel)), check_sorted, false}).values;
  }

  static std::tuple<Tensor, Tensor> merge_with_indices(const Tensor& a, const Tensor& b, bool descending, StringHandle kernel,
                                                       bool check_sorted) {
    return with_indices(a, b, {descending, checked_merge_kernel(take_string(kernel)), check_sorted, true});
  }

  static Tensor plain_merge(const Tensor& a, const Tensor& b, bool descending) {
    return kMerge(a, b, {descending, MergeKernel::kAuto, false, false}).values;
  }

  static std::tuple<Tensor, Tensor> plain_merge_with_indices(const Tensor& a, const Tensor& b, bool descending) {
    return with_indices(a, b, {descending, MergeKernel::kAuto, false, true});
  }

  static void register_in(torch::stable::detail::StableLibrary& library) {
    library.impl("merge", TORCH_BOX(&MergeOps::merge));
    library.impl("merge_with_indices", TORCH_BOX(&MergeOps::merge_with_indices));
    library.impl("_merge", TORCH_BOX(&MergeOps::plain_merge));
    library.impl("_merge_with_indices", TORCH_BOX(&MergeOps::plain_merge_with_indices));
  }
};

}  // namespace gpusort::ops
