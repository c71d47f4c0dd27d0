// Integers of 32 or 64 bits, with int64 indices, that differ in their low byte alone, as small ids do: a sort of bytes (byte_sort.cu).
//
//   digit_preview.cu    if some keys look like that: copies the bytes and counts them in the same read; finds out whether all keys do
//   digit_histogram.cu  if so: scans the counts
//   low_bytes.cu        if so: scatters by the bytes, after the last slot, in place of all slots
//
// Bytes and tables lie where others have their records. Traffic: 8 + 1 (or 4 + 1), 1 + 16 (or 12) bytes a key.
#pragma once

#include <cuda_runtime_api.h>

#include "pass_arguments.h"

namespace gpusort {

// `arguments` as the last slot has them. Needs plan.low_bytes.used.
template <class Key>
cudaError_t launch_low_bytes(const PassArguments<Key>& arguments, const RadixPlan& plan, cudaStream_t stream);

}  // namespace gpusort
