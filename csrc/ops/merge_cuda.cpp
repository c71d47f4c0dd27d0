// CUDA kernels of the merging ops: checks, packed rows, a plan, one workspace, the launch.
#include <torch/csrc/stable/library.h>

#include <optional>
#include <tuple>
#include <vector>

#include "../cuda/merge/first_unsorted.h"
#include "../cuda/merge/merge.h"
#include "merge_ops.h"
#include "packed_rows_cuda.h"

namespace gpusort::ops {
namespace {

void merge_packed_rows(const MergeProblem& problem, MergeKernel kernel, const Tensor& like, const CudaScope& scope) {
  launch_planned(launch_merge, problem, plan_merge(problem, kernel, scope.traits()), "merge", like, scope);
}

// The code words of packed complex64 keys.
Tensor complex64_codes(const Tensor& like, const void* keys, int64_t count, const CudaScope& scope) {
  Tensor codes = allocate_bytes(like, count * 8);
  check_cuda(launch_complex_codes(keys, false, count, static_cast<uint64_t*>(codes.mutable_data_ptr()), scope.stream()),
             "encode complex keys");
  return codes;
}

// complex64: the codes are merged and the values follow them as a payload. complex128: keys of two words are beyond the merge kernels, so
// the rows are joined and sorted, which for sorted inputs is the same: a stable sort keeps a before b on ties.
void merge_complex(MergeProblem problem, MergeKernel kernel, void* values_out, const Tensor& like, const CudaScope& scope) {
  const int64_t length = problem.a_length + problem.b_length;
  if (problem.key.bytes == 8) {
    const Tensor a_codes = complex64_codes(like, problem.a_keys, problem.rows * problem.a_length, scope);
    const Tensor b_codes = complex64_codes(like, problem.b_keys, problem.rows * problem.b_length, scope);
    Tensor codes_out = allocate_bytes(like, problem.rows * length * 8);
    problem.payload_bytes = 8;
    problem.a_payload = problem.a_keys;
    problem.b_payload = problem.b_keys;
    problem.payload_out = values_out;
    problem.a_keys = a_codes.const_data_ptr();
    problem.b_keys = b_codes.const_data_ptr();
    problem.keys_out = codes_out.mutable_data_ptr();
    merge_packed_rows(problem, kernel, like, scope);
    return;
  }
  Tensor joined = allocate_bytes(like, problem.rows * length * 16);
  StridedRows part;
  part.rows = problem.rows;
  if (problem.rows > 1) {
    part.dims = 1;
    part.sizes[0] = problem.rows;
    part.strides[0] = length;
  }
  auto* start = static_cast<char*>(joined.mutable_data_ptr());
  part.length = problem.a_length;
  check_cuda(launch_scatter_rows(part, 16, problem.a_keys, start, scope.stream()), "join rows");
  part.length = problem.b_length;
  check_cuda(launch_scatter_rows(part, 16, problem.b_keys, start + problem.a_length * 16, scope.stream()), "join rows");
  SortProblem sort;
  sort.key = {8, KeyKind::kUnsigned, 0};
  sort.descending = problem.descending;
  sort.rows = problem.rows;
  sort.length = length;
  sort.keys_in = start;
  sort.keys_out = values_out;
  sort.indices_out = problem.indices_out;
  sort.index_bytes = problem.index_bytes;
  sort_packed_complex(sort, true, SortAlgorithm::kAuto, like, scope);
}

// Where the first element lies that comes before its predecessor in its row; -1 if there is none. Waits for the device.
int64_t first_unsorted(const Tensor& tensor, const void* keys, int64_t rows, int64_t length, bool descending, const CudaScope& scope) {
  const bool complex = is_complex(dtype_of(tensor));
  const KeyType key = complex ? KeyType{element_bytes_of(tensor), KeyKind::kUnsigned, 0} : key_type_of(dtype_of(tensor), "a");
  Tensor found = allocate_bytes(tensor, sizeof(int64_t));
  check_cuda(launch_first_unsorted(key, complex, descending, rows, length, keys, found.mutable_data_ptr(), scope.stream()),
             "look for elements out of place");
  int64_t place = -1;
  check_cuda(cudaMemcpyAsync(&place, found.mutable_data_ptr(), sizeof place, cudaMemcpyDeviceToHost, scope.stream()),
             "read what was found out of place");
  check_cuda(cudaStreamSynchronize(scope.stream()), "wait for the check that a and b are sorted");
  return place;
}

MergeResult merge_on_device(const Tensor& a, const Tensor& b, const MergeRequest& request) {
  check_keys(a, b, "a", "b");
  const std::vector<int64_t> sizes = merged_sizes(a, b, "a", "b");
  const CudaScope scope(a);
  MergeResult result = allocate_merge(a, sizes, request.want_indices);

  MergeProblem problem = merge_problem_of(a, b, request.descending);
  if (problem.rows * sizes.back() == 0) return result;
  const int element_bytes = problem.key.bytes;
  const PackedRows a_keys(a, rows_of_last_dim(a), element_bytes, scope), b_keys(b, rows_of_last_dim(b), element_bytes, scope);
  problem.a_keys = a_keys.data();
  problem.b_keys = b_keys.data();
  if (request.check_sorted) {
    check_rows_sorted(first_unsorted(a, problem.a_keys, problem.rows, problem.a_length, request.descending, scope), a, request.descending,
                      "a");
    check_rows_sorted(first_unsorted(b, problem.b_keys, problem.rows, problem.b_length, request.descending, scope), b, request.descending,
                      "b");
  }
  if (result.indices) problem.indices_out = result.indices->mutable_data_ptr();
  if (is_complex(dtype_of(a))) {
    merge_complex(problem, request.kernel, result.values.mutable_data_ptr(), a, scope);
  } else {
    problem.keys_out = result.values.mutable_data_ptr();
    merge_packed_rows(problem, request.kernel, a, scope);
  }
  return result;
}

// Values of complex keys are fetched by position: the payload of a complex merge is taken up by the keys themselves.
void merge_complex_by_key(MergeProblem problem, const void* a_values, const void* b_values, int value_bytes, void* keys_out,
                          void* values_out, const Tensor& like, const CudaScope& scope) {
  const int64_t length = problem.a_length + problem.b_length;
  Tensor positions = allocate_bytes(like, problem.rows * length * 8);
  problem.indices_out = positions.mutable_data_ptr();
  merge_complex(problem, MergeKernel::kAuto, keys_out, like, scope);
  check_cuda(launch_take_from_two_rows(a_values, problem.a_length, b_values, problem.b_length, value_bytes,
                                       static_cast<const int64_t*>(positions.const_data_ptr()), problem.rows, values_out, scope.stream()),
             "fetch values");
}

std::tuple<Tensor, Tensor> merge_by_key(const Tensor& a_keys, const Tensor& a_values, const Tensor& b_keys, const Tensor& b_values,
                                        bool descending) {
  check_keys(a_keys, b_keys, "a_keys", "b_keys");
  const std::vector<int64_t> sizes = merged_sizes(a_keys, b_keys, "a_keys", "b_keys");
  check_values(a_keys, a_values, b_keys, b_values);
  const CudaScope scope(a_keys);
  const std::vector<int64_t> strides = contiguous_strides(sizes);
  Tensor keys = allocate(a_keys, sizes, strides, dtype_code_of(a_keys));
  Tensor values = allocate(a_values, sizes, strides, dtype_code_of(a_values));

  MergeProblem problem = merge_problem_of(a_keys, b_keys, descending);
  if (problem.rows * sizes.back() == 0) return {keys, values};
  const int key_bytes = problem.key.bytes, value_bytes = element_bytes_of(a_values);
  const PackedRows packed_a_keys(a_keys, rows_of_last_dim(a_keys), key_bytes, scope);
  const PackedRows packed_b_keys(b_keys, rows_of_last_dim(b_keys), key_bytes, scope);
  const PackedRows packed_a_values(a_values, rows_of_last_dim(a_values), value_bytes, scope);
  const PackedRows packed_b_values(b_values, rows_of_last_dim(b_values), value_bytes, scope);
  problem.a_keys = packed_a_keys.data();
  problem.b_keys = packed_b_keys.data();
  if (is_complex(dtype_of(a_keys))) {
    merge_complex_by_key(problem, packed_a_values.data(), packed_b_values.data(), value_bytes, keys.mutable_data_ptr(),
                         values.mutable_data_ptr(), a_keys, scope);
    return {keys, values};
  }
  problem.keys_out = keys.mutable_data_ptr();
  problem.payload_bytes = value_bytes;
  problem.a_payload = packed_a_values.data();
  problem.b_payload = packed_b_values.data();
  problem.payload_out = values.mutable_data_ptr();
  merge_packed_rows(problem, MergeKernel::kAuto, a_keys, scope);
  return {keys, values};
}

Tensor co_rank(const Tensor& k, const Tensor& a, const Tensor& b, bool descending) {
  check_co_rank(k, a, b);
  const CudaScope scope(a);
  const std::vector<int64_t> sizes = sizes_of(k);
  const RowLayout layout = make_row_layout(sizes, strides_of(k), sizes.empty() ? 0 : static_cast<int64_t>(sizes.size()) - 1);
  Tensor counts = allocate(k, sizes, layout.output_strides, index_dtype_code(8));
  const int64_t rank_count = layout.input.rows * layout.input.length;
  if (rank_count == 0) return counts;

  MergeProblem problem = merge_problem_of(a, b, descending);
  const int element_bytes = problem.key.bytes;
  const PackedRows a_keys(a, rows_of_last_dim(a), element_bytes, scope), b_keys(b, rows_of_last_dim(b), element_bytes, scope);
  const PackedRows ranks(k, layout.input, 8, scope);
  const PackedResult result(counts, layout.output, 8);
  problem.a_keys = a_keys.data();
  problem.b_keys = b_keys.data();
  const auto* rank_data = static_cast<const int64_t*>(ranks.data());
  auto* count_data = static_cast<int64_t*>(result.data());
  std::optional<Tensor> a_codes, b_codes;
  if (dtype_of(a) == ScalarType::ComplexFloat) {
    problem.a_keys = a_codes.emplace(complex64_codes(a, problem.a_keys, problem.a_length, scope)).const_data_ptr();
    problem.b_keys = b_codes.emplace(complex64_codes(a, problem.b_keys, problem.b_length, scope)).const_data_ptr();
  }
  if (dtype_of(a) == ScalarType::ComplexDouble) {
    check_cuda(launch_complex128_co_rank(problem, rank_data, rank_count, count_data, scope.stream()), "find co-ranks");
  } else {
    check_cuda(launch_co_rank(problem, rank_data, rank_count, count_data, scope.stream()), "find co-ranks");
  }
  result.finish(scope);
  return counts;
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CUDA, m) {
  gpusort::ops::MergeOps<gpusort::ops::merge_on_device>::register_in(m);
  m.impl("_merge_by_key", TORCH_BOX(&gpusort::ops::merge_by_key));
  m.impl("merge_by_key", TORCH_BOX(&gpusort::ops::merge_by_key));
  m.impl("co_rank", TORCH_BOX(&gpusort::ops::co_rank));
}
