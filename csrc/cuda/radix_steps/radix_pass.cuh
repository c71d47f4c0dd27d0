// One pass of a least-significant-digit radix sort, as seen by the kernels: where records come from, which bits count, where records go.
//
// A record is (ordered key, position in the row). The ordered form is a bijection of the key's bits, so nothing is lost between passes; the
// digit is taken from its code. The first pass encodes the input and makes the positions from the place of the key; the last decodes the
// keys and widens the positions. Stability of every pass makes the whole sort right: before pass p the records rise by their lower p
// digits.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../../core/key_order.h"
#include "../../plan/sort_problem.h"
#include "../../plan/steps_plan.h"

namespace gpusort {

template <class U>
struct RadixPass {
  KeyOrder<U> order;
  const U* keys_in = nullptr;
  U* keys_out = nullptr;             // null: values are not wanted
  const void* indices_in = nullptr;  // null: the position in the row is the index
  void* indices_out = nullptr;       // null: indices are not wanted
  int index_in_bytes = 0;
  int index_out_bytes = 0;
  bool first = false;
  bool last = false;
  int shift = 0;
  U mask = 0;  // zero when no bits are to be sorted: every digit is 0 and the pass is a stable copy
  int64_t rows = 0;
  int64_t length = 0;

  __device__ __forceinline__ U encode(U stored) const { return first ? order.to_ordered(stored) : stored; }
  __device__ __forceinline__ U load_key(int64_t at) const { return encode(keys_in[at]); }
  __device__ __forceinline__ unsigned digit(U ordered) const {
    return static_cast<unsigned>(static_cast<U>(order.code_of_ordered(ordered) >> shift) & mask);
  }
  __device__ __forceinline__ uint64_t load_index(int64_t at, int64_t row_begin) const {
    if (indices_in == nullptr) return static_cast<uint64_t>(at - row_begin);
    return index_in_bytes == 4 ? static_cast<const uint32_t*>(indices_in)[at] : static_cast<const uint64_t*>(indices_in)[at];
  }
  __device__ __forceinline__ void store_key(U ordered, int64_t at) const {
    if (keys_out != nullptr) keys_out[at] = last ? order.from_ordered(ordered) : ordered;
  }
  __device__ __forceinline__ void store_index(uint64_t index, int64_t at) const {
    if (index_out_bytes == 4)
      static_cast<uint32_t*>(indices_out)[at] = static_cast<uint32_t>(index);
    else
      static_cast<uint64_t*>(indices_out)[at] = index;
  }
};

template <class U>
RadixPass<U> make_radix_pass(const SortProblem& problem, const RadixStepsPlan& plan, void* workspace, int pass_number) {
  char* const base = static_cast<char*>(workspace);
  RadixPass<U> pass;
  pass.order = problem.key.order<U>(problem.descending);
  pass.first = pass_number == 0;
  pass.last = pass_number == plan.passes - 1;
  pass.rows = problem.rows;
  pass.length = problem.length;
  const int begin = problem.begin_bit + pass_number * plan.digit_bits;
  const int bits = begin + plan.digit_bits < problem.end_bit ? plan.digit_bits : problem.end_bit - begin;
  if (bits > 0) {
    pass.shift = begin;
    pass.mask = static_cast<U>((1u << bits) - 1);
  }
  const bool with_indices = problem.indices_out != nullptr;
  if (pass.first) {
    pass.keys_in = static_cast<const U*>(problem.keys_in);
  } else {
    const int buffer = (pass_number - 1) % 2;
    pass.keys_in = reinterpret_cast<const U*>(base + plan.buffer_keys[buffer]);
    if (with_indices) pass.indices_in = base + plan.buffer_indices[buffer];
    pass.index_in_bytes = plan.record_index_bytes;
  }
  if (pass.last) {
    pass.keys_out = static_cast<U*>(problem.keys_out);
    pass.indices_out = problem.indices_out;
    pass.index_out_bytes = with_indices ? problem.index_bytes : 0;
  } else {
    const int buffer = pass_number % 2;
    pass.keys_out = reinterpret_cast<U*>(base + plan.buffer_keys[buffer]);
    if (with_indices) pass.indices_out = base + plan.buffer_indices[buffer];
    pass.index_out_bytes = plan.record_index_bytes;
  }
  return pass;
}

}  // namespace gpusort
