// Instantiations of block_rows.cuh for 8-bit keys.
#include "block_rows_launch.cuh"

namespace gpusort {

template cudaError_t launch_block_rows<uint8_t>(const RowArguments<uint8_t>&, const RowPlan&, unsigned, cudaStream_t);

}  // namespace gpusort
