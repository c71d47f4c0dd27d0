// A first look at long rows, before their digits are counted: each block looks at the same 1024 keys.
//
//   they are sorted                     all keys are read and compared, none is counted: that takes half as long as counting sorted keys
//   integers that differ in one byte    the lowest one, with int64 indices: these bytes are copied and counted, see low_bytes.h
//   64-bit integers of one high word    the digits of the low word are counted, which is as fast as memory
//   else                                nothing; the histogram counts as always
//
// If all keys turn out to be as those looked at, the histogram leaves at once. If not, it counts what is missing.
#pragma once

#include <cuda_runtime_api.h>

#include "digit_histogram.h"

namespace gpusort {

// For 32- and 64-bit keys.
template <class Key>
cudaError_t launch_digit_preview(const HistogramArguments<Key>& arguments, bool wide, int grid, cudaStream_t stream);

}  // namespace gpusort
