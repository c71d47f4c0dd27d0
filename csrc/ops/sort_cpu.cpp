// CPU kernels of the sorting ops: strides to packed rows, the sort, and back.
#include <optional>
#include <vector>

#include "../cpu/complex_rows.h"
#include "../cpu/sort_rows.h"
#include "../plan/row_layout.h"
#include "bridge_cpu.h"
#include "sort_ops.h"

namespace gpusort::ops {
namespace {

cpu::SortMethod method_of(SortAlgorithm algorithm) {
  switch (algorithm) {
    case SortAlgorithm::kMerge: return cpu::SortMethod::kMerge;
    case SortAlgorithm::kBitonic: return cpu::SortMethod::kBitonic;
    case SortAlgorithm::kSample: return cpu::SortMethod::kSample;
    case SortAlgorithm::kAuto: return cpu::SortMethod::kAuto;
    default: return cpu::SortMethod::kRadix;  // one radix sort serves all kernels' names here
  }
}

SortResult sort_on_cpu(const Tensor& self, const SortRequest& request) {
  const ScalarType dtype = dtype_of(self);
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
      cpu::sort_complex_rows(problem, method_of(request.algorithm), threads);
    } else {
      cpu::sort_rows(problem, method_of(request.algorithm), threads);
    }
    if (values) values->finish(threads);
    if (indices) indices->finish(threads);
  });
  return result;
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CPU, m) {
  gpusort::ops::SortOps<gpusort::ops::sort_on_cpu>::register_in(m);
}
