// CPU kernel of _take.
#include <torch/csrc/stable/library.h>

#include "../cpu/take_rows.h"
#include "bridge_cpu.h"
#include "take_checks.h"

namespace gpusort::ops {
namespace {

Tensor take(const Tensor& self, const Tensor& indices, int64_t dim) {
  const TakeLayout layout = checked_take(self, indices, dim);
  Tensor result = allocate(self, layout.sizes, contiguous_strides(layout.sizes), dtype_code_of(self));
  if (layout.result.rows * layout.result.length == 0) return result;
  const bool inside = cpu::take_rows(layout.source, self.const_data_ptr(), element_bytes_of(self), layout.indices, indices.const_data_ptr(),
                                     element_bytes_of(indices), layout.result, result.mutable_data_ptr(), torch_threads());
  check(inside, PythonError::kIndex, "indices holds one that is not within 0 to ", layout.result.length - 1);
  return result;
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CPU, m) {
  m.impl("_take", TORCH_BOX(&gpusort::ops::take));
}
