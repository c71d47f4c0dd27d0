// Puts right the output of a sort of keys alone where different keys have one code: both zeros, NaNs of several patterns, bytes that mean
// True. The sort has written one pattern for each code; the keys that belong there are those of the input that have this code, in the order
// of the input. Does nothing (two launches that leave at once) unless RadixControl::other_patterns says that some key has another pattern.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "pass_arguments.h"

namespace gpusort {

// Serves whole keys. `scratch` has room for 200 bytes and for a 256th of the keys; what more there is keeps keys from being read twice.
template <class Key>
cudaError_t launch_equal_codes(const PassArguments<Key>& arguments, void* scratch, size_t scratch_bytes, int most_blocks,
                               cudaStream_t stream);

}  // namespace gpusort
