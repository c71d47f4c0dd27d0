// CUDA kernels of lexsort and sort_rows.
#include <deque>
#include <optional>

#include "../cuda/lexsort/fetch_rows.h"
#include "../cuda/lexsort/lexsort.h"
#include "lexsort_ops.h"
#include "packed_rows_cuda.h"

namespace gpusort::ops {
namespace {

void launch_columns(const KeyColumns& columns, int64_t rows, int64_t length, void* indices, const Tensor& like, const CudaScope& scope) {
  LexsortProblem problem;
  problem.columns = columns;
  problem.rows = rows;
  problem.length = length;
  problem.indices_out = static_cast<int64_t*>(indices);
  launch_planned(launch_lexsort, problem, plan_lexsort(problem, scope.traits()), "sort by several keys", like, scope);
}

// One key along rows, as the kernels take it: where it lies if there is one row, else one row after the other.
struct PackedKey {
  Tensor key;
  bool descending;
  int bytes;
  const void* data;
  int64_t stride;
  std::optional<Tensor> moved;
};

// By the keys [first, last), of which the last one is the primary one.
void launch_keys(const std::deque<PackedKey>& keys, size_t first, size_t last, const StridedRows& shape, void* indices,
                 const CudaScope& scope) {
  KeyColumns columns;
  for (size_t i = last; i-- > first;) append_column(columns, keys[i].data, keys[i].stride, dtype_of(keys[i].key), keys[i].descending);
  launch_columns(columns, shape.rows, shape.length, indices, keys[first].key, scope);
}

Tensor lexsort_on_device(const std::vector<Tensor>& tensors, const LexsortShape& shape, const std::vector<bool>& descending) {
  const CudaScope scope(tensors[0]);
  Tensor result = allocate(tensors[0], shape.sizes, contiguous_strides(shape.sizes), index_dtype_code(8));
  const int64_t rows = shape.result.rows, length = shape.result.length;
  if (rows * length == 0) return result;
  std::deque<PackedRows> packed;
  std::deque<PackedKey> keys;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const StridedRows layout = rows_along(shape.sizes, strides_of(tensors[i]), shape.dim);
    PackedKey key{tensors[i], descending[i], 0, tensors[i].const_data_ptr(), layout.length_stride, {}};
    key.bytes = static_cast<int>(aoti_torch_dtype_element_size(dtype_code_of(tensors[i])));
    if (rows > 1) {
      key.data = packed.emplace_back(tensors[i], layout, key.bytes, scope).data();
      key.stride = 1;
    }
    keys.push_back(std::move(key));
  }
  const PackedResult indices(result, shape.result, 8);
  // More keys than a launch takes go in groups, least significant first, each on keys fetched in the order so far.
  std::optional<Tensor> order;
  for (size_t first = 0, last = 0; first < keys.size(); first = last) {
    for (int columns = 0; last < keys.size(); ++last) {
      columns += key_columns_of(dtype_of(keys[last].key));
      if (columns > kMaxKeyColumns) break;
    }
    const bool final = last == keys.size();
    std::optional<Tensor> step;
    if (order || !final) step = allocate_bytes(result, rows * length * 8);
    if (order) {
      for (size_t i = first; i < last; ++i) {
        const PackedRows source(keys[i].key, rows_along(shape.sizes, strides_of(keys[i].key), shape.dim), keys[i].bytes, scope);
        keys[i].moved = allocate_bytes(result, rows * length * keys[i].bytes);
        check_cuda(launch_take_along_rows(source.data(), keys[i].bytes, order->const_data_ptr(), 8, rows, length,
                                          keys[i].moved->mutable_data_ptr(), scope.stream()),
                   "reorder keys");
        keys[i].data = keys[i].moved->const_data_ptr();
        keys[i].stride = 1;
      }
    }
    launch_keys(keys, first, last, shape.result, step ? step->mutable_data_ptr() : indices.data(), scope);
    if (order) {
      Tensor composed = allocate_bytes(result, rows * length * 8);
      void* const target = final ? indices.data() : composed.mutable_data_ptr();
      check_cuda(launch_take_along_rows(order->const_data_ptr(), 8, step->const_data_ptr(), 8, rows, length, target, scope.stream()),
                 "compose positions");
      step = composed;
    }
    order = step;
  }
  indices.finish(scope);
  return result;
}

std::tuple<Tensor, Tensor> sort_rows_on_device(const Tensor& self, bool descending) {
  const CudaScope scope(self);
  const std::vector<int64_t> sizes = sizes_of(self);
  Tensor values = allocate(self, sizes, contiguous_strides(sizes), dtype_code_of(self));
  Tensor indices = allocate(self, {sizes[0]}, {1}, index_dtype_code(8));
  if (sizes[0] == 0) return {values, indices};
  std::optional<Tensor> zero;
  if (sizes[1] == 0) {
    zero = allocate_bytes(self, 1);
    check_cuda(cudaMemsetAsync(zero->mutable_data_ptr(), 0, 1, scope.stream()), "clear a byte");
  }
  const KeyColumns columns = matrix_columns(self, descending, zero ? zero->const_data_ptr() : nullptr);
  launch_columns(columns, 1, sizes[0], indices.mutable_data_ptr(), self, scope);
  if (sizes[1] == 0) return {values, indices};
  const int bytes = static_cast<int>(aoti_torch_dtype_element_size(dtype_code_of(self)));
  const PackedRows rows(self, rows_along(sizes, strides_of(self), 1), bytes, scope);
  check_cuda(launch_fetch_rows(rows.data(), sizes[1] * bytes, static_cast<const int64_t*>(indices.const_data_ptr()), sizes[0],
                               values.mutable_data_ptr(), scope.stream()),
             "fetch rows");
  return {values, indices};
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CUDA, m) {
  gpusort::ops::LexsortOps<gpusort::ops::lexsort_on_device, gpusort::ops::sort_rows_on_device>::register_in(m);
}
