// Decides by how many leading digits 64-bit keys are sorted, before they are counted. Fewer passes are enough where a few leading digits
// tell nearly all different keys apart; what they leave together is repaired (high_word_ties.h). One block looks at a sample of the keys
// and fills RadixControl::sorted_from and small_groups.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "digit_histogram.h"

namespace gpusort {

// For keys of one row, with high_word_samples above 0.
cudaError_t launch_leading_digits(const HistogramArguments<uint64_t>& arguments, cudaStream_t stream);

}  // namespace gpusort
