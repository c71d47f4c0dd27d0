// Instantiations of pair_rows.cuh, for 32-bit keys.
#include "pair_rows.cuh"
#include "row_launch.h"

namespace gpusort {

cudaError_t launch_pair_rows(const RowArguments<uint32_t>& arguments, const RowPlan& plan, unsigned blocks, cudaStream_t stream) {
  const auto aligned = [](const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; };  // a null output is
  const bool quad_stores =
      arguments.length % 4 == 0 && aligned(arguments.keys_out) && aligned(arguments.indices_wide) && aligned(arguments.indices_narrow);
  switch (plan.lanes) {
    case 1:
      pair_rows_kernel<1><<<blocks, plan.threads, plan.shared_bytes, stream>>>(arguments, quad_stores);
      break;
    case 2:
      pair_rows_kernel<2><<<blocks, plan.threads, plan.shared_bytes, stream>>>(arguments, quad_stores);
      break;
    case 4:
      pair_rows_kernel<4><<<blocks, plan.threads, plan.shared_bytes, stream>>>(arguments, quad_stores);
      break;
    case 8:
      pair_rows_kernel<8><<<blocks, plan.threads, plan.shared_bytes, stream>>>(arguments, quad_stores);
      break;
    default:
      return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

}  // namespace gpusort
