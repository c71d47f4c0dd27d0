// The row sorts: every row is read once, sorted on chip and written once.
//
//   length 1           copied
//   to 256             register_rows.cuh  32-bit words in the registers of part of a warp
//   to 16384           block_rows.cuh     32-bit words, sorted by warps and merged in shared memory
//   few rows to 4096   cluster_rows.cuh   cut over eight blocks, which tell each other what they have sorted
//
// Which shape takes which length is decided in plan/row_plan.h.
#include "row_sort.h"

#include <algorithm>

#include "row_arguments.h"
#include "row_launch.h"

namespace gpusort {
namespace {

constexpr int64_t kMaxGrid = 2147483647;

cudaError_t copy_rows(const SortProblem& problem, cudaStream_t stream) {
  if (problem.keys_out) {
    const cudaError_t status =
        cudaMemcpyAsync(problem.keys_out, problem.keys_in, problem.rows * problem.key.bytes, cudaMemcpyDeviceToDevice, stream);
    if (status != cudaSuccess) return status;
  }
  return problem.indices_out ? cudaMemsetAsync(problem.indices_out, 0, problem.rows * problem.index_bytes, stream) : cudaSuccess;
}

template <class U>
cudaError_t launch_rows(const SortProblem& problem, const RowPlan& plan, cudaStream_t stream) {
  const RowArguments<U> all_rows = make_row_arguments<U>(problem);
  if (plan.cluster_threads > 0 && cluster_rows_are_compiled()) return launch_cluster_rows<U>(all_rows, plan, stream);
  for (int64_t first = 0; first < plan.blocks; first += kMaxGrid) {
    const unsigned blocks = static_cast<unsigned>(std::min(kMaxGrid, plan.blocks - first));
    const RowArguments<U> arguments = rows_from(all_rows, first * plan.rows_per_block);
    cudaError_t status = cudaErrorInvalidValue;
    if (plan.kernel == RowKernel::kRegisters) status = launch_register_rows<U>(arguments, plan, blocks, stream);
    if (plan.kernel == RowKernel::kBlock) status = launch_block_rows<U>(arguments, plan, blocks, stream);
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t launch_row_sort(const SortProblem& problem, const RowPlan& plan, void*, cudaStream_t stream) {
  if (problem.rows <= 0 || problem.length <= 0 || (!problem.keys_out && !problem.indices_out)) return cudaSuccess;
  if (plan.kernel == RowKernel::kCopy) return copy_rows(problem, stream);
  switch (problem.key.bytes) {
    case 1: return launch_rows<uint8_t>(problem, plan, stream);
    case 2: return launch_rows<uint16_t>(problem, plan, stream);
    case 4: return launch_rows<uint32_t>(problem, plan, stream);
    case 8: return launch_rows<uint64_t>(problem, plan, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace gpusort
