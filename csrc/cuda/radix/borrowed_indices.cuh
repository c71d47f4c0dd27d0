// Where the tables of the radix sort lie without costing memory: in the int64 indices that the last step writes.
//
// An index is below 2^32, so the upper half of each is zero at the end and free until then. Of n indices the last `a` are lent:
//
//   positions               [0, n - 2a)   [n - 2a, n - a)                     [n - a, n)
//   lower half                index         index                               tables
//   upper half                0             the index that belongs a later      tables
//
// The step that writes outputs keeps to this. The last kernel of the sort (ambiguous_keys.cu) puts the indices where they belong; its last
// block does so for the control words, which the others still read. While records are moved, the index output is a buffer of records,
// but for those that would lie in the tables: PassArguments::records_rest, in the key output, has these.
#pragma once

#include <cstdint>

#include "pass_arguments.h"

namespace gpusort {

// Of the position given, counted over all rows.
template <class Key>
__device__ __forceinline__ void store_wide_index(const PassArguments<Key>& arguments, uint64_t position, uint32_t index) {
  uint32_t* halves = static_cast<uint32_t*>(arguments.indices_out);
  if (position < arguments.halved_begin)
    static_cast<int64_t*>(arguments.indices_out)[position] = index;
  else if (position < arguments.borrowed_begin)
    halves[2 * position] = index;
  else
    halves[2 * (position - (arguments.borrowed_begin - arguments.halved_begin)) + 1] = index;
}

template <class Key>
__device__ __forceinline__ uint32_t load_wide_index(const PassArguments<Key>& arguments, uint64_t position) {
  const uint32_t* halves = static_cast<const uint32_t*>(arguments.indices_out);
  if (position < arguments.borrowed_begin) return halves[2 * position];
  return halves[2 * (position - (arguments.borrowed_begin - arguments.halved_begin)) + 1];
}

// Puts the index of a lent position where it belongs. Nobody may need the tables there any more.
template <class Key>
__device__ __forceinline__ void give_back(const PassArguments<Key>& arguments, uint64_t position) {
  uint32_t* halves = static_cast<uint32_t*>(arguments.indices_out);
  uint32_t& kept = halves[2 * (position - (arguments.borrowed_begin - arguments.halved_begin)) + 1];
  static_cast<int64_t*>(arguments.indices_out)[position] = kept;
  kept = 0;
}

// A record of the buffer that the index output is.
template <class Key>
__device__ __forceinline__ uint2* record_at(const PassArguments<Key>& arguments, int buffer, uint64_t position) {
  if (position < arguments.records_end[buffer]) return static_cast<uint2*>(arguments.records[buffer]) + position;
  return arguments.records_rest + (position - arguments.records_end[buffer]);
}

}  // namespace gpusort
