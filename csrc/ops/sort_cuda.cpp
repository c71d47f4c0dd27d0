// CUDA kernels of the sorting ops: strides to packed rows, a plan, one workspace, the launches, and back.
#include <optional>
#include <vector>

#include "packed_rows_cuda.h"
#include "sort_ops.h"

namespace gpusort::ops {
namespace {

SortResult sort_on_device(const Tensor& self, const SortRequest& request) {
  const ScalarType dtype = dtype_of(self);
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
  return result;
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CUDA, m) {
  gpusort::ops::SortOps<gpusort::ops::sort_on_device>::register_in(m);
}
