// Instantiations of register_rows.cuh for 16-bit keys.
#include "register_rows_launch.cuh"

namespace gpusort {

template cudaError_t launch_register_rows<uint16_t>(const RowArguments<uint16_t>&, const RowPlan&, unsigned, cudaStream_t);

}  // namespace gpusort
