// Picks the instantiation of block_rows_kernel for a plan's items (row_shapes in plan/row_plan.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "../primitives/kernel_setup.h"
#include "block_rows.cuh"
#include "row_launch.h"

namespace gpusort {

template <class U, int kItems, bool kFarKeys = false>
cudaError_t launch_block_shape(const RowArguments<U>& arguments, const RowPlan& plan, unsigned blocks, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  // Always the device's whole allowance: another thread may be between this call and its own launch.
  const cudaError_t status = allow_shared_memory(block_rows_kernel<U, kItems, kFarKeys>, plan.shared_limit, prepared);
  if (status != cudaSuccess) return status;
  return launch_after_predecessor<block_rows_kernel<U, kItems, kFarKeys>>(arguments, {blocks, plan.threads, plan.shared_bytes, true},
                                                                          stream);
}

template <class U>
cudaError_t launch_block_rows(const RowArguments<U>& arguments, const RowPlan& plan, unsigned blocks, cudaStream_t stream) {
  if constexpr (sizeof(U) >= 4) {
    if (plan.far_keys) return launch_block_shape<U, 32, true>(arguments, plan, blocks, stream);
  }
  switch (plan.items) {
    case 8: return launch_block_shape<U, 8>(arguments, plan, blocks, stream);
    case 12: return launch_block_shape<U, 12>(arguments, plan, blocks, stream);
    case 16: return launch_block_shape<U, 16>(arguments, plan, blocks, stream);
    case 20: return launch_block_shape<U, 20>(arguments, plan, blocks, stream);
    case 32: return launch_block_shape<U, 32>(arguments, plan, blocks, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace gpusort
