// CUDA kernels of the sorting ops: strides to packed rows, a plan, one workspace, the launches, and back.
#include <optional>
#include <utility>

#include "packed_rows_cuda.h"
#include "sort_ops.h"

namespace gpusort::ops {
namespace {

SortResult sort_on_device(const Tensor& self, const SortRequest& request) {
  const ScalarType dtype = dtype_of(self);
  const bool complex = is_complex(dtype);
  const KeyType key = complex ? KeyType{8, KeyKind::kUnsigned, 0} : key_type_of(dtype, "input");
  const int element_bytes = element_bytes_of(self);
  const CudaScope scope(self);
  PreparedSort prepared = prepare_sort(self, request, key);
  const RowLayout& layout = prepared.layout;
  SortProblem& problem = prepared.problem;
  SortResult& result = prepared.result;
  if (problem.numel() == 0) return std::move(result);

  const PackedRows keys(self, layout.input, element_bytes, scope);
  std::optional<PackedResult> values, indices;
  problem.keys_in = keys.data();
  if (result.values) problem.keys_out = values.emplace(*result.values, layout.output, element_bytes).data();
  if (result.indices) {
    const int packed_bytes = complex ? problem.index_bytes : packed_index_bytes(problem, request.algorithm, scope.traits());
    indices.emplace(*result.indices, layout.output, problem.index_bytes, packed_bytes);
    problem.indices_out = indices->data();
    problem.index_bytes = indices->packed_bytes();
  }
  if (complex) {
    sort_packed_complex(problem, element_bytes == 16, request.algorithm, self, scope);
  } else {
    sort_packed_rows(problem, request.algorithm, self, scope, request.digit_bits);
  }
  PackedResult::finish(values, indices, scope);
  return std::move(result);
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CUDA, m) {
  gpusort::ops::SortOps<gpusort::ops::sort_on_device>::register_in(m);
}
