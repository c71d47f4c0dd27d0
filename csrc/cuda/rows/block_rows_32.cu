// Instantiations of block_rows.cuh for 32-bit keys.
#include "block_rows_launch.cuh"

namespace gpusort {

template cudaError_t launch_block_rows<uint32_t>(const RowArguments<uint32_t>&, const RowPlan&, unsigned, cudaStream_t);

}  // namespace gpusort
