// CPU kernels of the merging ops: checks, strides to packed rows, the merge.
#include <torch/csrc/stable/library.h>

#include <tuple>
#include <vector>

#include "../cpu/complex_rows.h"
#include "../cpu/first_unsorted.h"
#include "../cpu/merge_rows.h"
#include "bridge_cpu.h"
#include "merge_ops.h"

namespace gpusort::ops {
namespace {

// One side of a merge: keys (codes, if complex) packed row by row along the last dim.
class MergeInput {
 public:
  MergeInput(const Tensor& tensor, const cpu::Parallel& threads)
      : rows_(rows_of_last_dim(tensor)), packed_(tensor, rows_, element_bytes_of(tensor), threads), keys_(packed_.data()) {
    if (!is_complex(dtype_of(tensor))) return;
    const int bytes = element_bytes_of(tensor);
    void* codes = codes_.get<unsigned char>(rows_.rows * rows_.length * bytes);
    cpu::encode_complex(packed_.data(), rows_.rows * rows_.length, bytes, codes, threads);
    keys_ = codes;
  }

  const void* values() const { return packed_.data(); }
  const void* keys() const { return keys_; }

 private:
  StridedRows rows_;
  PackedRows packed_;
  cpu::Scratch codes_;
  const void* keys_;
};

// One merge serves all kernels' names here.
MergeResult merge_on_cpu(const Tensor& a, const Tensor& b, const MergeRequest& request) {
  check_keys(a, b, "a", "b");
  const std::vector<int64_t> sizes = merged_sizes(a, b, "a", "b");
  MergeResult result = allocate_merge(a, sizes, request.want_indices);

  on_cpu([&] {
    const cpu::Parallel threads = torch_threads();
    MergeProblem problem = merge_problem_of(a, b, request.descending);
    if (problem.rows * sizes.back() == 0) return;
    const MergeInput from_a(a, threads), from_b(b, threads);
    problem.a_keys = from_a.keys();
    problem.b_keys = from_b.keys();
    if (request.check_sorted) {
      check_rows_sorted(cpu::first_unsorted(problem.key, request.descending, problem.rows, problem.a_length, problem.a_keys, threads), a,
                        request.descending, "a");
      check_rows_sorted(cpu::first_unsorted(problem.key, request.descending, problem.rows, problem.b_length, problem.b_keys, threads), b,
                        request.descending, "b");
    }
    if (is_complex(dtype_of(a))) {  // codes are merged and the values follow them
      problem.payload_bytes = element_bytes_of(a);
      problem.a_payload = from_a.values();
      problem.b_payload = from_b.values();
      problem.payload_out = result.values.mutable_data_ptr();
    } else {
      problem.keys_out = result.values.mutable_data_ptr();
    }
    if (result.indices) problem.indices_out = result.indices->mutable_data_ptr();
    cpu::merge_rows(problem, threads);
  });
  return result;
}

std::tuple<Tensor, Tensor> merge_by_key(const Tensor& a_keys, const Tensor& a_values, const Tensor& b_keys, const Tensor& b_values,
                                        bool descending) {
  check_keys(a_keys, b_keys, "a_keys", "b_keys");
  const std::vector<int64_t> sizes = merged_sizes(a_keys, b_keys, "a_keys", "b_keys");
  check_values(a_keys, a_values, b_keys, b_values);
  const std::vector<int64_t> strides = contiguous_strides(sizes);
  Tensor keys = allocate(a_keys, sizes, strides, dtype_code_of(a_keys));
  Tensor values = allocate(a_values, sizes, strides, dtype_code_of(a_values));

  on_cpu([&] {
    const cpu::Parallel threads = torch_threads();
    MergeProblem problem = merge_problem_of(a_keys, b_keys, descending);
    if (problem.rows * sizes.back() == 0) return;
    const MergeInput from_a(a_keys, threads), from_b(b_keys, threads);
    const StridedRows a_rows = rows_of_last_dim(a_values), b_rows = rows_of_last_dim(b_values);
    const int payload_bytes = element_bytes_of(a_values);
    const PackedRows a_payload(a_values, a_rows, payload_bytes, threads), b_payload(b_values, b_rows, payload_bytes, threads);
    problem.a_keys = from_a.keys();
    problem.b_keys = from_b.keys();
    problem.payload_bytes = payload_bytes;
    problem.a_payload = a_payload.data();
    problem.b_payload = b_payload.data();
    problem.payload_out = values.mutable_data_ptr();
    if (!is_complex(dtype_of(a_keys))) {
      problem.keys_out = keys.mutable_data_ptr();
      cpu::merge_rows(problem, threads);
      return;
    }
    cpu::merge_rows(problem, threads);  // once for the values, once for the complex keys themselves
    problem.payload_bytes = problem.key.bytes;
    problem.a_payload = from_a.values();
    problem.b_payload = from_b.values();
    problem.payload_out = keys.mutable_data_ptr();
    cpu::merge_rows(problem, threads);
  });
  return {keys, values};
}

Tensor co_rank(const Tensor& k, const Tensor& a, const Tensor& b, bool descending) {
  check_co_rank(k, a, b);
  const std::vector<int64_t> sizes = sizes_of(k);
  const RowLayout layout = make_row_layout(sizes, strides_of(k), sizes.empty() ? 0 : static_cast<int64_t>(sizes.size()) - 1);
  Tensor counts = allocate(k, sizes, layout.output_strides, index_dtype_code(8));
  const int64_t count = layout.input.rows * layout.input.length;
  if (count == 0) return counts;

  on_cpu([&] {
    const cpu::Parallel threads = torch_threads();
    const PackedRows ranks(k, layout.input, 8, threads);
    const auto* rank = static_cast<const int64_t*>(ranks.data());
    const int64_t total = a.size(0) + b.size(0);
    for (int64_t t = 0; t < count; ++t) {
      check(rank[t] >= 0 && rank[t] <= total, PythonError::kValue, "k holds ", rank[t], "; allowed are 0 to ", total,
            ", the length of a and b together");
    }
    const PackedResult result(counts, layout.output, 8);
    MergeProblem problem = merge_problem_of(a, b, descending);
    const MergeInput from_a(a, threads), from_b(b, threads);
    problem.a_keys = from_a.keys();
    problem.b_keys = from_b.keys();
    cpu::co_rank_many(problem, rank, count, static_cast<int64_t*>(result.data()), threads);
    result.finish(threads);
  });
  return counts;
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CPU, m) {
  gpusort::ops::MergeOps<gpusort::ops::merge_on_cpu>::register_in(m);
  m.impl("_merge_by_key", TORCH_BOX(&gpusort::ops::merge_by_key));
  m.impl("merge_by_key", TORCH_BOX(&gpusort::ops::merge_by_key));
  m.impl("co_rank", TORCH_BOX(&gpusort::ops::co_rank));
}
