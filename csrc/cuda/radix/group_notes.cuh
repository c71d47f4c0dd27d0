// Of 64-bit keys that were sorted by their leading digits: what the control words say, and notes of groups that are left out of order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "high_word_ties.h"
#include "pass_arguments.h"
#include "radix_control.cuh"

namespace gpusort {

struct NoIndex {};  // keys alone

__device__ __forceinline__ uint32_t word_of(const PassArguments<uint64_t>& arguments, size_t offset) {
  return *control_word(arguments.control, offset, arguments.spacing);
}

// The lowest bit sorted by. 0: all were.
__device__ __forceinline__ uint32_t lowest_sorted_bit(const PassArguments<uint64_t>& arguments) {
  return word_of(arguments, offsetof(RadixControl, unsorted)) != 0 ? word_of(arguments, offsetof(RadixControl, sorted_from)) : 0;
}

// Of notes, in a table that nobody reads any more.
__device__ __forceinline__ uint32_t most_group_notes(const PassArguments<uint64_t>& arguments) {
  return min(arguments.tiles * kRadixBins, kMostLongRuns);
}

// `position`: of some record in the group.
__device__ __forceinline__ void note_group(const PassArguments<uint64_t>& arguments, uint32_t most_notes, uint32_t position) {
  const uint32_t note = atomicAdd(control_word(arguments.control, offsetof(RadixControl, group_notes), arguments.spacing), 1u);
  if (note < most_notes) arguments.look_back[0][static_cast<uint64_t>(note) * arguments.spacing] = position;
}

}  // namespace gpusort
