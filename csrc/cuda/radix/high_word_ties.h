// Ends the sort of 64-bit keys by their leading digits: puts each run of keys that agree in them in order. By the digits of the high word:
// in place in the outputs. By fewer digits that leave small groups: from the records to the outputs, since the last slot has left at once.
// Does nothing (four launches that leave at once) unless one of these ways was chosen (leading_digits.h).
//
// Equal keys may be as many as they like: only runs in which different low words meet cost anything. If there are too many of those, or too
// long ones, RadixControl::again is set and everything is prepared for a sort by all digits: one launch of the middle slots (kSortAgain),
// then launch_sorted_again.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "pass_arguments.h"

namespace gpusort {

// What the slots between the first and the last were given, and the tables' length: a sort by all digits needs them as they were.
struct HighWordTables {
  PassArguments<uint64_t> middle;
  uint32_t bin_words = 0;
};

// Runs with more ties than this are sorted by whole blocks. Beyond kMostLongTies, or if there are more such runs than kMostLongRuns or one
// for 16 keys, all keys are sorted again.
constexpr uint32_t kMostShortTies = 32;
constexpr uint32_t kMostLongTies = 4096;
constexpr uint32_t kMostLongRuns = 16384;

// Needs one row, keys_out, and in records[0] 8 bytes for each key, at least 4096 of them.
cudaError_t launch_high_word_ties(const PassArguments<uint64_t>& arguments, const HighWordTables& tables, int sm_blocks,
                                  cudaStream_t stream);

// Writes the outputs from the records of a second sort. Leaves at once if there was none.
cudaError_t launch_sorted_again(const PassArguments<uint64_t>& arguments, int sm_blocks, cudaStream_t stream);

}  // namespace gpusort
