// Puts right the output of a sort of keys alone where different keys have one code: both zeros, NaNs of several patterns, bytes that mean
// True. The sort has written one pattern for each code; the keys that belong there are those of the input that have this code, in the order
// of the input. Does nothing (two launches that leave at once) unless RadixControl::other_patterns says that some key has another pattern.
#pragma once

#include <cuda_runtime_api.h>

#include "pass_arguments.h"

namespace gpusort {

// Serves whole keys. `block_counts` has room for one word of 64 bits per block.
template <class Key>
cudaError_t launch_equal_codes(const PassArguments<Key>& arguments, uint2* block_counts, int blocks, cudaStream_t stream);

}  // namespace gpusort
