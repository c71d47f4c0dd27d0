// Every schema of torch.ops.gpusort, readable as the API table. Kernels are registered per backend in <family>_cpu.cpp and
// <family>_cuda.cpp. All ops are functional: results are fresh tensors that alias no input. Everything is stable, whatever `stable` says.
#include <torch/csrc/stable/library.h>

STABLE_TORCH_LIBRARY(gpusort, m) {
  // One tensor, sorted along `dim`: values and the positions they came from. index_dtype is int64 (default) or int32.
  m.def(
      "sort(Tensor self, int dim=-1, bool descending=False, bool stable=True, *, ScalarType? index_dtype=None, str algorithm=\"auto\")"
      " -> (Tensor values, Tensor indices)");
  m.def("argsort(Tensor self, int dim=-1, bool descending=False, bool stable=True, *, ScalarType? index_dtype=None) -> Tensor");
  m.def("msort(Tensor self) -> Tensor");
  m.def("sort_keys(Tensor self, int dim=-1, bool descending=False) -> Tensor");

  // Stable by bits [begin_bit, end_bit) of the order-preserving unsigned key.
  m.def(
      "radix_sort(Tensor self, int dim=-1, bool descending=False, *, int begin_bit=0, int? end_bit=None, str algorithm=\"auto\","
      " int? digit_bits=None) -> (Tensor values, Tensor indices)");

  // One algorithm by name. Results are those of sort.
  m.def("merge_sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)");
  m.def("bitonic_sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)");
  m.def("sample_sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)");

  // Two sorted inputs, merged along the last dim; leading dims are equal. Indices point into cat(a, b). Ties are taken from a. `check`
  // makes sure that the inputs are sorted, which waits for the device.
  m.def("merge(Tensor a, Tensor b, *, bool descending=False, str algorithm=\"auto\", bool check=False) -> Tensor");
  m.def(
      "merge_with_indices(Tensor a, Tensor b, *, bool descending=False, str algorithm=\"auto\", bool check=False)"
      " -> (Tensor values, Tensor indices)");
  m.def(
      "merge_by_key(Tensor a_keys, Tensor a_values, Tensor b_keys, Tensor b_values, *, bool descending=False)"
      " -> (Tensor keys, Tensor values)");

  // The sorted runs runs[offsets[r], offsets[r + 1]), merged into one. Indices point into runs. Ties are taken from the earlier run.
  m.def("merge_many(Tensor runs, Tensor offsets, *, bool descending=False) -> Tensor");
  m.def("merge_many_with_indices(Tensor runs, Tensor offsets, *, bool descending=False) -> (Tensor values, Tensor indices)");

  // The indices that sort along `dim` by several keys of one shape, the last one primary. A direction for each; none is ascending for all.
  m.def("lexsort(Tensor[] keys, int dim=-1, bool[]? descending=None) -> Tensor");
  // The rows of a matrix in lexicographic order, the first column primary, and where they were.
  m.def("sort_rows(Tensor self, bool descending=False) -> (Tensor values, Tensor indices)");

  // For each output rank k (int64, 0 <= k <= len(a) + len(b)): how many of the first k outputs of merge(a, b) come from a. 1-D a and b.
  m.def("co_rank(Tensor k, Tensor a, Tensor b, *, bool descending=False) -> Tensor");

  // The same as their namesakes, for calls that want no gradient: autograd has no kernel for these, and the short schemas leave little to
  // parse. Small calls cost the host less.
  m.def("_sort(Tensor self, int dim, bool descending) -> (Tensor values, Tensor indices)");
  m.def("_sort_keys(Tensor self, int dim, bool descending) -> Tensor");
  m.def("_merge(Tensor a, Tensor b, bool descending) -> Tensor");
  m.def("_merge_with_indices(Tensor a, Tensor b, bool descending) -> (Tensor values, Tensor indices)");
  m.def("_merge_by_key(Tensor a_keys, Tensor a_values, Tensor b_keys, Tensor b_values, bool descending) -> (Tensor keys, Tensor values)");

  // self in the order of `indices` (of its shape; for each row along dim a permutation), bit for bit and for any dtype of 1 to 16 bytes.
  m.def("_take(Tensor self, Tensor indices, int dim) -> Tensor");

  // What a sort of such a tensor is going to do on a GPU: JSON, eight bytes to a number. Traits: multiprocessors, shared memory of a block
  // and of a multiprocessor, L2 cache (bytes), compute capability (major, minor).
  m.def(
      "_explain_sort(int[] sizes, int[] strides, ScalarType dtype, int dim, bool descending, ScalarType? index_dtype, str algorithm,"
      " str kernel, int? digit_bits, int begin_bit, int? end_bit, bool values, bool indices, int[] traits) -> int[]");

  // What this binary was built with, as "key=value" lines.
  m.def("_build_info() -> str");
}
