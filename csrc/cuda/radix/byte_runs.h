// Sorts 8-bit keys without their indices by counting alone: writes each key as often as the histogram counted its code. Serves sorts by
// all bits.
#pragma once

#include <cuda_runtime_api.h>

#include "pass_arguments.h"

namespace gpusort {

cudaError_t launch_byte_runs(const PassArguments<uint8_t>& arguments, int blocks, cudaStream_t stream);

}  // namespace gpusort
