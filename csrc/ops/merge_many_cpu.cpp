// CPU kernels of merge_many: checks, packed runs, the merge.
#include <torch/csrc/stable/library.h>

#include <tuple>

#include "../cpu/merge_many.h"
#include "bridge_cpu.h"
#include "merge_checks.h"

namespace gpusort::ops {
namespace {

// Host memory costs nothing to look at, so what the GPU has to clamp is refused here.
void check_offsets_rise(const int64_t* offsets, int64_t runs, int64_t length) {
  int64_t previous = 0;
  for (int64_t r = 0; r <= runs; ++r) {
    const bool right = offsets[r] >= previous && offsets[r] <= length && (r > 0 || offsets[r] == 0) && (r < runs || offsets[r] == length);
    check(right, PythonError::kValue, "offsets holds ", offsets[r], " at place ", r, "; it must rise from 0 to ", length,
          ", the length of runs");
    previous = offsets[r];
  }
}

MergeManyResult merge_many_on_cpu(const Tensor& runs, const Tensor& offsets, bool descending, bool want_indices) {
  check_merge_many(runs, offsets);
  MergeManyResult result = allocate_merge_many(runs, want_indices);
  on_cpu([&] {
    const cpu::Parallel threads = torch_threads();
    const bool complex = is_complex(dtype_of(runs));
    MergeManyProblem problem = merge_many_problem_of(runs, offsets, descending);
    if (complex) problem.key.bytes = element_bytes_of(runs);
    const PackedRows packed_offsets(offsets, rows_of_last_dim(offsets), 8, threads);
    const PackedRows packed_runs(runs, rows_of_last_dim(runs), problem.key.bytes, threads);
    problem.offsets = static_cast<const int64_t*>(packed_offsets.data());
    check_offsets_rise(problem.offsets, problem.runs, problem.length);
    problem.keys_in = packed_runs.data();
    problem.keys_out = result.values.mutable_data_ptr();
    if (result.indices) problem.indices_out = result.indices->mutable_data_ptr();
    cpu::merge_many(problem, complex, threads);
  });
  return result;
}

Tensor merge_many(const Tensor& runs, const Tensor& offsets, bool descending) {
  return merge_many_on_cpu(runs, offsets, descending, false).values;
}

std::tuple<Tensor, Tensor> merge_many_with_indices(const Tensor& runs, const Tensor& offsets, bool descending) {
  MergeManyResult result = merge_many_on_cpu(runs, offsets, descending, true);
  return {result.values, *result.indices};
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CPU, m) {
  m.impl("merge_many", TORCH_BOX(&gpusort::ops::merge_many));
  m.impl("merge_many_with_indices", TORCH_BOX(&gpusort::ops::merge_many_with_indices));
}
