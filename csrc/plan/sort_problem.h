// What a sort or a merge is asked to do, without torch and without CUDA: the currency between ops, plan, cuda and cpu.
#pragma once

#include <cstdint>

#include "../core/key_order.h"

namespace gpusort {

// A dtype reduced to what the kernels need.
struct KeyType {
  int bytes = 4;  // 1, 2, 4, 8
  KeyKind kind = KeyKind::kUnsigned;
  uint64_t infinity = 0;  // see make_key_order

  template <class U>
  KeyOrder<U> order(bool descending) const {
    return make_key_order<U>(kind, descending, static_cast<U>(infinity));
  }
};

// Sort each of `rows` contiguous rows of `length` keys, stably.
struct SortProblem {
  KeyType key;
  bool descending = false;
  int64_t rows = 1;
  int64_t length = 0;
  int begin_bit = 0;  // order by bits [begin_bit, end_bit) of the code
  int end_bit = 0;    // key.bytes * 8 for a whole sort
  const void* keys_in = nullptr;
  void* keys_out = nullptr;     // null: values are not wanted (argsort)
  void* indices_out = nullptr;  // null: indices are not wanted (keys only); positions within the row
  int index_bytes = 8;          // 4 or 8, when indices_out is given; the row kernels write 2 as well

  // A word on the device, or null. Where it is not 0 when the sort begins, nobody wants the results after all: the kernels of the radix
  // sort then leave at once. Others may ignore it.
  const uint32_t* called_off = nullptr;

  bool whole_key() const { return begin_bit == 0 && end_bit == key.bytes * 8; }
  int64_t numel() const { return rows * length; }
};

// Merge, row by row, a (rows x a_length) and b (rows x b_length), each sorted, into rows x (a_length + b_length). Ties are taken from a.
struct MergeProblem {
  KeyType key;
  bool descending = false;
  int64_t rows = 1;
  int64_t a_length = 0;
  int64_t b_length = 0;
  const void* a_keys = nullptr;
  const void* b_keys = nullptr;
  void* keys_out = nullptr;
  int payload_bytes = 0;  // 0 (none), 1, 2, 4, 8, 16: bytes that travel with each key
  const void* a_payload = nullptr;
  const void* b_payload = nullptr;
  void* payload_out = nullptr;
  void* indices_out = nullptr;  // null, or where in cat(a, b) (along the row) each output came from
  int index_bytes = 8;          // 4 or 8
};

// What the planner knows of a GPU. Read once per device by ops; tests make up their own.
struct DeviceTraits {
  int sm_count = 132;
  int64_t shared_bytes_per_block = 232448;  // opt-in maximum
  int64_t shared_bytes_per_sm = 233472;
  int64_t l2_bytes = 50 << 20;
  int compute_major = 9;
  int compute_minor = 0;
};

}  // namespace gpusort
