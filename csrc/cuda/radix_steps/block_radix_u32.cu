// The block radix sort for 32-bit keys.
#include "block_radix.cuh"

namespace gpusort {

template cudaError_t launch_block_radix_width<uint32_t>(const SortProblem&, const RadixStepsPlan&, void*, cudaStream_t);

}  // namespace gpusort
