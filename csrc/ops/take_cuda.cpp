// CUDA kernel of _take.
#include <torch/csrc/stable/library.h>

#include "packed_rows_cuda.h"
#include "take_checks.h"

namespace gpusort::ops {
namespace {

Tensor take(const Tensor& self, const Tensor& indices, int64_t dim) {
  const TakeLayout layout = checked_take(self, indices, dim);
  const CudaScope scope(self);
  Tensor result = allocate(self, layout.sizes, contiguous_strides(layout.sizes), dtype_code_of(self));
  const int64_t rows = layout.result.rows, length = layout.result.length;
  if (rows * length == 0) return result;
  const int element_bytes = element_bytes_of(self), index_bytes = element_bytes_of(indices);
  const PackedRows from(self, layout.source, element_bytes, scope);
  const PackedRows positions(indices, layout.indices, index_bytes, scope);
  const PackedResult to(result, layout.result, element_bytes);
  check_cuda(launch_take_along_rows(from.data(), element_bytes, positions.data(), index_bytes, rows, length, to.data(), scope.stream()),
             "fetch elements by position");
  to.finish(scope);
  return result;
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CUDA, m) {
  m.impl("_take", TORCH_BOX(&gpusort::ops::take));
}
