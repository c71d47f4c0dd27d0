// CPU kernels of lexsort and sort_rows.
#include <deque>

#include "../cpu/lexsort.h"
#include "bridge_cpu.h"
#include "lexsort_ops.h"

namespace gpusort::ops {
namespace {

Tensor lexsort_on_cpu(const std::vector<Tensor>& keys, const LexsortShape& shape, const std::vector<bool>& descending) {
  Tensor result = allocate(keys[0], shape.sizes, contiguous_strides(shape.sizes), index_dtype_code(8));
  if (shape.result.rows * shape.result.length == 0) return result;
  on_cpu([&] {
    const cpu::Parallel threads = torch_threads();
    std::deque<PackedRows> packed;  // keys of several rows, one row after the other
    std::vector<KeyColumns> groups;
    for (size_t i = keys.size(); i-- > 0;) {  // the last key is the primary one
      const ScalarType dtype = dtype_of(keys[i]);
      const StridedRows rows = rows_along(shape.sizes, strides_of(keys[i]), shape.dim);
      const void* data = keys[i].const_data_ptr();
      if (rows.rows > 1) {
        const int bytes = static_cast<int>(aoti_torch_dtype_element_size(dtype_code_of(keys[i])));
        data = packed.emplace_back(keys[i], rows, bytes, threads).data();
      }
      if (groups.empty() || groups.back().period + key_columns_of(dtype) > kMaxKeyColumns) groups.emplace_back();
      append_column(groups.back(), data, rows.rows > 1 ? 1 : rows.length_stride, dtype, descending[i]);
    }
    const PackedResult indices(result, shape.result, 8);
    cpu::lexsort(groups, shape.result.rows, shape.result.length, static_cast<int64_t*>(indices.data()), threads);
    indices.finish(threads);
  });
  return result;
}

std::tuple<Tensor, Tensor> sort_rows_on_cpu(const Tensor& self, bool descending) {
  const std::vector<int64_t> sizes = sizes_of(self);
  Tensor values = allocate(self, sizes, contiguous_strides(sizes), dtype_code_of(self));
  Tensor indices = allocate(self, {sizes[0]}, {1}, index_dtype_code(8));
  if (sizes[0] == 0) return {values, indices};
  on_cpu([&] {
    const cpu::Parallel threads = torch_threads();
    const int bytes = static_cast<int>(aoti_torch_dtype_element_size(dtype_code_of(self)));
    const char zero = 0;
    auto* const order = static_cast<int64_t*>(indices.mutable_data_ptr());
    cpu::lexsort({matrix_columns(self, descending, &zero)}, 1, sizes[0], order, threads);
    if (sizes[1] == 0) return;
    const PackedRows rows(self, rows_along(sizes, strides_of(self), 1), bytes, threads);
    cpu::fetch_rows(rows.data(), sizes[1] * bytes, sizes[1] * bytes, order, sizes[0], values.mutable_data_ptr(), threads);
  });
  return {values, indices};
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CPU, m) {
  gpusort::ops::LexsortOps<gpusort::ops::lexsort_on_cpu, gpusort::ops::sort_rows_on_cpu>::register_in(m);
}
