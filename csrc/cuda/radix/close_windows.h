// The last step of a sort of 64-bit keys by a few leading digits that leave groups of up to some hundred keys: orders these on chip, from
// the records to the outputs. Groups that are too long for that it notes for high_word_ties.h. Leaves at once unless
// SmallGroups::kByWindows was chosen.
#pragma once

#include <cuda_runtime_api.h>

#include "pass_arguments.h"

namespace gpusort {

cudaError_t launch_close_windows(const PassArguments<uint64_t>& arguments, int sm_blocks, cudaStream_t stream);

}  // namespace gpusort
