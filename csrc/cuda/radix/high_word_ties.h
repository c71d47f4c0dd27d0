// Ends the sort of 64-bit keys by their high words: orders each run of equal high words by the low word, in place in the outputs.
// Does nothing (two launches that leave at once) unless the histogram read has chosen that way (high_word_sample.cuh).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "pass_arguments.h"

namespace gpusort {

// Runs of more ties than this are sorted by whole blocks. `long_ties` has room for the starts of all that there can be: one word for every
// kMostShortTies + 1 keys. Needs one row and keys_out.
constexpr uint32_t kMostShortTies = 32;

cudaError_t launch_high_word_ties(const PassArguments<uint64_t>& arguments, uint32_t* long_ties, int sm_blocks, cudaStream_t stream);

}  // namespace gpusort
