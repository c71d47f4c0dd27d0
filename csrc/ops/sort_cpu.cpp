// CPU kernels of the sorting ops: strides to packed rows, the sort, and back.
#include <optional>
#include <utility>

#include "../cpu/complex_rows.h"
#include "../cpu/sort_rows.h"
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
  const KeyType key = complex ? KeyType{element_bytes_of(self), KeyKind::kUnsigned, 0} : key_type_of(dtype, "input");
  PreparedSort prepared = prepare_sort(self, request, key);
  const RowLayout& layout = prepared.layout;
  SortProblem& problem = prepared.problem;
  SortResult& result = prepared.result;
  if (problem.numel() == 0) return std::move(result);

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
  return std::move(result);
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CPU, m) {
  gpusort::ops::SortOps<gpusort::ops::sort_on_cpu>::register_in(m);
}
