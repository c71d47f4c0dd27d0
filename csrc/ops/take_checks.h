// What _take asks of its arguments on any device, and the rows it makes of them.
#pragma once

#include <vector>

#include "../plan/row_layout.h"
#include "bridge.h"

namespace gpusort::ops {

struct TakeLayout {
  std::vector<int64_t> sizes;
  StridedRows source, indices, result;  // the result is contiguous
};

inline TakeLayout checked_take(const Tensor& self, const Tensor& indices, int64_t dim) {
  check_same_device(indices, self, "indices", "input");
  const ScalarType index_dtype = dtype_of(indices);
  check(index_dtype == ScalarType::Long || index_dtype == ScalarType::Int, PythonError::kType, "indices has dtype ",
        dtype_name(index_dtype), "; allowed are torch.int64 and torch.int32");
  TakeLayout layout;
  layout.sizes = sizes_of(self);
  check(sizes_of(indices) == layout.sizes, PythonError::kValue, "indices has shape ", shape_text(indices.sizes()), " and input has shape ",
        shape_text(layout.sizes), "; they must be equal");
  const int bytes = element_bytes_of(self);
  check(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16, PythonError::kType, "input has dtype ",
        dtype_name(dtype_of(self)), " of ", bytes, " bytes; allowed are 1, 2, 4, 8 and 16");
  const auto dims = static_cast<int64_t>(layout.sizes.size());
  dim = wrap_dim(dim, dims);
  layout.source = make_strided_rows(layout.sizes, strides_of(self), dim, dims_but(dim, dims));
  layout.indices = make_strided_rows(layout.sizes, strides_of(indices), dim, dims_but(dim, dims));
  layout.result = make_strided_rows(layout.sizes, contiguous_strides(layout.sizes), dim, dims_but(dim, dims));
  return layout;
}

}  // namespace gpusort::ops
