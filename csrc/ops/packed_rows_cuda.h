// Packed rows on the GPU: copies of strided tensors, and sorting rows of any dtype. What the sorting and the merging ops share.
#pragma once

#include <optional>

#include "../cuda/bitonic/bitonic_sort.h"
#include "../cuda/bucket_sort/bucket_sort.h"
#include "../cuda/bucket_sort/one_launch.h"
#include "../cuda/bucket_sort/pulled_buckets.h"
#include "../cuda/grid_sort/grid_sort.h"
#include "../cuda/layout/complex_keys.h"
#include "../cuda/layout/strided_copy.h"
#include "../cuda/mapped_buckets/mapped_buckets.h"
#include "../cuda/merge_sort/merge_sort.h"
#include "../cuda/radix/radix_sort.h"
#include "../cuda/radix_steps/radix_steps.h"
#include "../cuda/rows/row_sort.h"
#include "../cuda/sample/sample_sort.h"
#include "../plan/bucket_launches.h"
#include "../plan/row_layout.h"
#include "../plan/sort_plan.h"
#include "bridge_cuda.h"

namespace gpusort::ops {

// A tensor's rows one after the other: its own memory where they lie so, else a copy.
class PackedRows {
 public:
  PackedRows(const Tensor& tensor, const StridedRows& layout, int element_bytes, const CudaScope& scope) : data_(tensor.const_data_ptr()) {
    if (layout.contiguous()) return;
    copy_ = allocate_bytes(tensor, layout.rows * layout.length * element_bytes);
    check_cuda(launch_gather_rows(layout, element_bytes, data_, copy_->mutable_data_ptr(), scope.stream()), "gather rows");
    data_ = copy_->mutable_data_ptr();
  }

  const void* data() const { return data_; }

 private:
  const void* data_;
  std::optional<Tensor> copy_;
};

// Rows to be written one after the other, and then put where a result wants them. Positions may be narrower until then: packed_bytes says
// how many bytes each takes at data().
class PackedResult {
 public:
  PackedResult(const Tensor& tensor, const StridedRows& layout, int element_bytes, int packed_bytes)
      : tensor_data_(tensor.mutable_data_ptr()),
        data_(tensor_data_),
        layout_(layout),
        element_bytes_(element_bytes),
        packed_bytes_(layout.contiguous() ? element_bytes : packed_bytes) {
    if (layout.contiguous()) return;
    copy_ = allocate_bytes(tensor, layout.rows * layout.length * packed_bytes);
    data_ = copy_->mutable_data_ptr();
  }
  PackedResult(const Tensor& tensor, const StridedRows& layout, int element_bytes)
      : PackedResult(tensor, layout, element_bytes, element_bytes) {}

  void* data() const { return data_; }
  int packed_bytes() const { return packed_bytes_; }

  // The values and the indices of a sort; either may not be wanted.
  static void finish(const std::optional<PackedResult>& values, const std::optional<PackedResult>& indices, const CudaScope& scope) {
    if (values && indices && values->copy_ && indices->copy_) {
      const cudaError_t status =
          launch_scatter_results(values->layout_, values->element_bytes_, values->data_, values->tensor_data_, indices->packed_bytes_,
                                 indices->data_, indices->element_bytes_, indices->tensor_data_, scope.stream());
      return check_cuda(status, "scatter rows");
    }
    if (values) values->finish(scope);
    if (indices) indices->finish(scope);
  }

  void finish(const CudaScope& scope) const {
    if (!copy_) return;
    const cudaError_t status = packed_bytes_ == element_bytes_
                                   ? launch_scatter_rows(layout_, element_bytes_, data_, tensor_data_, scope.stream())
                                   : launch_scatter_positions(layout_, packed_bytes_, data_, element_bytes_, tensor_data_, scope.stream());
    check_cuda(status, "scatter rows");
  }

 private:
  void* tensor_data_;
  void* data_;
  std::optional<Tensor> copy_;
  const StridedRows& layout_;
  int element_bytes_;
  int packed_bytes_;
};

// Allocates a plan's workspace and launches. The workspace goes back to torch's allocator when this returns, which is safe because the
// allocator hands it out again on the same stream only.
template <class Problem, class Plan>
void launch_planned(cudaError_t (*launch)(const Problem&, const Plan&, void*, cudaStream_t), const Problem& problem, const Plan& plan,
                    const char* what, const Tensor& like, const CudaScope& scope) {
  std::optional<Tensor> workspace;
  if (plan.workspace_bytes > 0) workspace = allocate_bytes(like, plan.workspace_bytes);
  check_cuda(launch(problem, plan, workspace ? workspace->mutable_data_ptr() : nullptr, scope.stream()), what);
}

// Plans and launches. All rows are packed. `digit_bits` is for kRadixBlock.
inline void sort_packed_rows(const SortProblem& problem, SortAlgorithm requested, const Tensor& like, const CudaScope& scope,
                             int digit_bits = 8) {
  if (problem.numel() == 0) return;
  const DeviceTraits& traits = scope.traits();
  switch (choose_sort_algorithm(problem, requested, traits)) {
    case SortAlgorithm::kRows: return launch_planned(launch_row_sort, problem, plan_row_sort(problem, traits), "sort rows", like, scope);
    case SortAlgorithm::kGrid:
      return launch_planned(launch_grid_sort, problem, plan_grid_sort(problem, traits), "sort rows over the grid", like, scope);
    case SortAlgorithm::kBuckets: {
      const BucketLaunches launches = plan_bucket_launches(problem, traits);
      const char* what = "sort rows by buckets";
      const auto* one = std::get_if<OneLaunchPlan>(&launches);
      if (one != nullptr) return launch_planned(launch_one_launch_sort, problem, *one, what, like, scope);
      const auto* mapped = std::get_if<MappedBucketsPlan>(&launches);
      if (mapped != nullptr) return launch_planned(launch_mapped_buckets, problem, *mapped, what, like, scope);
      const auto* pulled = std::get_if<PulledBucketsPlan>(&launches);
      if (pulled != nullptr) return launch_planned(launch_pulled_bucket_sort, problem, *pulled, what, like, scope);
      return launch_planned(launch_bucket_sort, problem, std::get<BucketSortPlan>(launches), what, like, scope);
    }
    case SortAlgorithm::kMerge: {
      const MergeSortPlan plan = plan_merge_sort(problem, traits);
      check(plan.possible, PythonError::kRuntime, "algorithm is 'merge', but this GPU has too little shared memory for its runs (",
            traits.shared_bytes_per_block, " bytes a block); use 'auto'");
      return launch_planned(launch_merge_sort, problem, plan, "run the merge sort", like, scope);
    }
    case SortAlgorithm::kBitonic:
      return launch_planned(launch_bitonic_sort, problem, plan_bitonic_sort(problem), "run the bitonic sort", like, scope);
    case SortAlgorithm::kSample:
      return launch_planned(launch_sample_sort, problem, plan_sample_sort(problem), "run the sample sort", like, scope);
    case SortAlgorithm::kRadixScanScatter:
      return launch_planned(launch_radix_scan_scatter, problem, plan_radix_scan_scatter(problem), "run the radix sort by bits", like,
                            scope);
    case SortAlgorithm::kRadixBlock:
      return launch_planned(launch_radix_block, problem, plan_radix_block(problem, digit_bits), "run the radix sort by blocks", like,
                            scope);
    default: return launch_planned(launch_radix_sort, problem, plan_radix_sort(problem, traits), "run the radix sort", like, scope);
  }
}

// Complex keys: sort the code words, least significant word first, carrying the positions; then fetch the values by position.
inline void sort_packed_complex(const SortProblem& shape, bool double_precision, SortAlgorithm requested, const Tensor& like,
                                const CudaScope& scope) {
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
    check_cuda(launch_take_along_rows(order.mutable_data_ptr(), shape.index_bytes, by_high.mutable_data_ptr(), shape.index_bytes,
                                      shape.rows, shape.length, composed.mutable_data_ptr(), scope.stream()),
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

}  // namespace gpusort::ops
