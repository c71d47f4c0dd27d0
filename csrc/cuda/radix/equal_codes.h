// Puts right the output of a sort of keys alone where different keys have one code: both zeros, NaNs of several patterns, bytes that mean
// True. The sort has written one pattern for each code; the keys that belong there are those of the input that have this code, in the order
// of the input. Does nothing (two launches that leave at once) unless RadixControl::other_patterns says that some key has another pattern.
#pragma once

#include <cuda_runtime_api.h>

#include "pass_arguments.h"

namespace gpusort {

// Parts of one row that may have such keys: a mark for each `bytes` bytes from the first multiple of 16 bytes in the row on, `spans` of
// them. Nothing is known of what lies before and after. Without marks nothing is known at all.
struct SuspectSpans {
  const uint8_t* marks = nullptr;
  uint64_t spans = 0;
  uint64_t bytes = 1;
};

// Serves whole keys. `scratch` has room for 8 bytes per block, and one for each 32 KB of a row and two more for each row.
template <class Key>
cudaError_t launch_equal_codes(const PassArguments<Key>& arguments, const SuspectSpans& suspects, void* scratch, int blocks,
                               cudaStream_t stream);

}  // namespace gpusort
