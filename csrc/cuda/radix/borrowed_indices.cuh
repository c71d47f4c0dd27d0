// Where the tables of the radix sort lie without costing memory: in the outputs, which nobody reads before the last slot writes them. Keys
// of 32 and 64 bits with int64 indices.
//
//   all slots but the last   as they would lie in a workspace. 32-bit keys: in the key output; records move between the workspace and the
//                            index output. 64-bit keys: in the second half of the index output; keys move between the workspace and the
//                            key output, their 32-bit indices between the workspace and the first half
//   the last slot            in the upper halves of the last int64 indices. An index is below 2^32, so its upper half is zero at the end,
//                            and free until then: the slot leaves those halves alone (store_wide_index)
//
// A kernel before the last slot moves what that needs (launch_move_tables), and clears its look-back table; the last kernel of the sort
// (ambiguous_keys.cu) makes the halves zero. Words of the tables then lie two words apart: PassArguments::spacing.
#pragma once

#include <cstdint>

#include "pass_arguments.h"

namespace gpusort {

// From this position of the row on, upper halves are lent.
template <class Key>
__device__ __forceinline__ uint32_t borrowed_begin_in_row(const PassArguments<Key>& arguments, uint64_t row_start) {
  const uint64_t begin = arguments.borrowed_begin;
  return begin <= row_start ? 0 : static_cast<uint32_t>(min(begin - row_start, static_cast<uint64_t>(~0u)));
}

__device__ __forceinline__ void store_wide_index(int64_t* row, uint32_t position, uint32_t borrowed_begin, uint32_t index) {
  asm volatile(
      "{\n"
      ".reg .pred whole;\n"
      "setp.lt.u32 whole, %1, %2;\n"
      "@whole st.global.v2.u32 [%0], {%3, %4};\n"
      "@!whole st.global.u32 [%0], %3;\n"
      "}" ::"l"(row + position),
      "r"(position), "r"(borrowed_begin), "r"(index), "r"(0)
      : "memory");
}

}  // namespace gpusort
