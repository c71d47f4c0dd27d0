// CUDA kernels of merge_many: checks of what the host knows, packed runs, a plan, one workspace, the launches. Offsets stay on the device.
#include <torch/csrc/stable/library.h>

#include <optional>
#include <tuple>

#include "../cuda/merge_many/merge_many.h"
#include "merge_checks.h"
#include "packed_rows_cuda.h"

namespace gpusort::ops {
namespace {

// complex64: the code words are merged and the values fetched by position.
void merge_many_complex64(MergeManyProblem problem, const Tensor& like, const CudaScope& scope) {
  Tensor codes = allocate_bytes(like, problem.length * 8);
  check_cuda(launch_complex_codes(problem.keys_in, false, problem.length, static_cast<uint64_t*>(codes.mutable_data_ptr()), scope.stream()),
             "encode complex keys");
  std::optional<Tensor> positions;
  if (problem.indices_out == nullptr) {
    problem.indices_out = positions.emplace(allocate_bytes(like, problem.length * problem.index_bytes)).mutable_data_ptr();
  }
  MergeManyProblem by_code = problem;
  by_code.keys_in = codes.const_data_ptr();
  by_code.keys_out = nullptr;
  launch_planned(launch_merge_many, by_code, plan_merge_many(by_code, scope.traits()), "merge many runs", like, scope);
  check_cuda(launch_take_along_rows(problem.keys_in, 8, problem.indices_out, problem.index_bytes, 1, problem.length, problem.keys_out,
                                    scope.stream()),
             "fetch complex values");
}

// complex128: keys of two words are beyond the merge kernels, so the runs are sorted, which is the same: a stable sort keeps an earlier run
// first on ties.
void merge_many_complex128(const MergeManyProblem& problem, const Tensor& like, const CudaScope& scope) {
  SortProblem sort;
  sort.key = problem.key;
  sort.descending = problem.descending;
  sort.length = problem.length;
  sort.keys_in = problem.keys_in;
  sort.keys_out = problem.keys_out;
  sort.indices_out = problem.indices_out;
  sort.index_bytes = problem.index_bytes;
  sort_packed_complex(sort, true, SortAlgorithm::kAuto, like, scope);
}

MergeManyResult merge_many_on_device(const Tensor& runs, const Tensor& offsets, bool descending, bool want_indices) {
  check_merge_many(runs, offsets);
  const CudaScope scope(runs);
  MergeManyResult result = allocate_merge_many(runs, want_indices);
  MergeManyProblem problem = merge_many_problem_of(runs, offsets, descending);
  if (problem.length == 0) return result;
  const PackedRows packed_offsets(offsets, rows_of_last_dim(offsets), 8, scope);
  const PackedRows packed_runs(runs, rows_of_last_dim(runs), element_bytes_of(runs), scope);
  problem.offsets = static_cast<const int64_t*>(packed_offsets.data());
  problem.keys_in = packed_runs.data();
  problem.keys_out = result.values.mutable_data_ptr();
  if (result.indices) problem.indices_out = result.indices->mutable_data_ptr();
  if (dtype_of(runs) == ScalarType::ComplexFloat) {
    merge_many_complex64(problem, runs, scope);
  } else if (dtype_of(runs) == ScalarType::ComplexDouble) {
    merge_many_complex128(problem, runs, scope);
  } else {
    launch_planned(launch_merge_many, problem, plan_merge_many(problem, scope.traits()), "merge many runs", runs, scope);
  }
  return result;
}

Tensor merge_many(const Tensor& runs, const Tensor& offsets, bool descending) {
  return merge_many_on_device(runs, offsets, descending, false).values;
}

std::tuple<Tensor, Tensor> merge_many_with_indices(const Tensor& runs, const Tensor& offsets, bool descending) {
  MergeManyResult result = merge_many_on_device(runs, offsets, descending, true);
  return {result.values, *result.indices};
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CUDA, m) {
  m.impl("merge_many", TORCH_BOX(&gpusort::ops::merge_many));
  m.impl("merge_many_with_indices", TORCH_BOX(&gpusort::ops::merge_many_with_indices));
}
