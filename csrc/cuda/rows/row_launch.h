// Launchers of one family of row kernels for one key width; explicit instantiations are in register_rows_<bits>.cu, block_rows_<bits>.cu
// and cluster_rows.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/row_plan.h"
#include "row_arguments.h"

namespace gpusort {

// `blocks` of the plan's shape over the rows of `arguments`.
template <class U>
cudaError_t launch_register_rows(const RowArguments<U>& arguments, const RowPlan& plan, unsigned blocks, cudaStream_t stream);

template <class U>
cudaError_t launch_block_rows(const RowArguments<U>& arguments, const RowPlan& plan, unsigned blocks, cudaStream_t stream);

// All rows, where the kernels were compiled for devices that have clusters.
bool cluster_rows_are_compiled();
template <class U>
cudaError_t launch_cluster_rows(const RowArguments<U>& arguments, const RowPlan& plan, cudaStream_t stream);

}  // namespace gpusort
