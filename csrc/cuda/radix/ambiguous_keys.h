// Puts right in the output of a radix sort with indices the keys whose codes do not tell their bits: both zeros, NaNs of several patterns,
// bytes that mean True (equal_codes.h does for keys alone). Does nothing (one launch that leaves at once) unless the histogram read has
// seen a pattern other than the one that the last pass writes.
#pragma once

#include <cuda_runtime_api.h>

#include "pass_arguments.h"

namespace gpusort {

template <class Key>
cudaError_t launch_ambiguous_keys(const PassArguments<Key>& arguments, int grid, cudaStream_t stream);

}  // namespace gpusort
