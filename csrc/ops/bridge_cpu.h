// The CPU half of the bridge: torch's thread pool for csrc/cpu, packed copies of strided tensors, running out of memory.
#pragma once

#include <torch/csrc/stable/ops.h>

#include <new>

#include "../cpu/scratch.h"
#include "../cpu/strided_copy.h"
#include "bridge.h"

namespace gpusort::ops {

inline cpu::Parallel torch_threads() {
  return {static_cast<int>(torch::stable::get_num_threads()), [](int64_t tasks, void* context, cpu::Parallel::Body body) {
            torch::stable::parallel_for(0, tasks, 1, [context, body](int64_t begin, int64_t end) {
              for (int64_t task = begin; task < end; ++task) body(context, task);
            });
          }};
}

// Runs `work`; scratch memory that is not to be had becomes the error Python knows. Everything is freed on the way out.
template <class Work>
auto on_cpu(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    fail(PythonError::kOutOfMemory, "not enough memory for the scratch space of this operation on the CPU");
  }
}

// A tensor's rows one after the other: its own memory where they lie so, else a copy.
class PackedRows {
 public:
  PackedRows(const Tensor& tensor, const StridedRows& layout, int element_bytes, const cpu::Parallel& threads)
      : data_(tensor.const_data_ptr()) {
    if (layout.contiguous()) return;
    auto* copy = copy_.get<unsigned char>(layout.rows * layout.length * element_bytes);
    cpu::gather_rows(layout, data_, copy, element_bytes, threads);
    data_ = copy;
  }

  const void* data() const { return data_; }

 private:
  cpu::Scratch copy_;
  const void* data_;
};

// Rows to be written one after the other, and then put where a result wants them.
class PackedResult {
 public:
  PackedResult(const Tensor& tensor, const StridedRows& layout, int element_bytes)
      : tensor_data_(tensor.mutable_data_ptr()), data_(tensor_data_), layout_(layout), element_bytes_(element_bytes) {
    if (!layout.contiguous()) data_ = copy_.get<unsigned char>(layout.rows * layout.length * element_bytes);
  }

  void* data() const { return data_; }

  void finish(const cpu::Parallel& threads) const {
    if (data_ != tensor_data_) cpu::scatter_rows(layout_, data_, tensor_data_, element_bytes_, threads);
  }

 private:
  cpu::Scratch copy_;
  void* tensor_data_;
  void* data_;
  const StridedRows& layout_;
  int element_bytes_;
};

}  // namespace gpusort::ops
