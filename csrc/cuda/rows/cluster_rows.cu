// Picks the instantiation of cluster_rows_kernel for a plan's threads (row_shapes in plan/row_plan.h), and all of them.
#include "cluster_rows.cuh"

#include "row_launch.h"

namespace gpusort {
namespace {

template <class U, int kThreads>
cudaError_t launch_cluster_shape(const RowArguments<U>& arguments, const RowPlan& plan, cudaStream_t stream) {
  LaunchShape shape{static_cast<unsigned>(arguments.rows * kRowClusterBlocks), kThreads, plan.cluster_shared_bytes, true};
  shape.cluster = kRowClusterBlocks;
  return launch_after_predecessor<cluster_rows_kernel<U, kThreads>>(arguments, shape, stream);
}

}  // namespace

bool cluster_rows_are_compiled() {
  return waits_on_current_device<cluster_rows_kernel<uint32_t, 128>>();
}

template <class U>
cudaError_t launch_cluster_rows(const RowArguments<U>& arguments, const RowPlan& plan, cudaStream_t stream) {
  switch (plan.cluster_threads) {
    case 64: return launch_cluster_shape<U, 64>(arguments, plan, stream);
    case 128: return launch_cluster_shape<U, 128>(arguments, plan, stream);
    case 256: return launch_cluster_shape<U, 256>(arguments, plan, stream);
    case 512: return launch_cluster_shape<U, 512>(arguments, plan, stream);
    default: return cudaErrorInvalidValue;
  }
}

template cudaError_t launch_cluster_rows<uint8_t>(const RowArguments<uint8_t>&, const RowPlan&, cudaStream_t);
template cudaError_t launch_cluster_rows<uint16_t>(const RowArguments<uint16_t>&, const RowPlan&, cudaStream_t);
template cudaError_t launch_cluster_rows<uint32_t>(const RowArguments<uint32_t>&, const RowPlan&, cudaStream_t);
template cudaError_t launch_cluster_rows<uint64_t>(const RowArguments<uint64_t>&, const RowPlan&, cudaStream_t);

}  // namespace gpusort
