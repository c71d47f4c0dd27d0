// Picks the instantiation of register_rows_kernel for a plan's lanes and items (row_shapes in plan/row_plan.h).
#pragma once

#include "register_rows.cuh"
#include "row_launch.h"

namespace gpusort {

template <class U, int kLanes, int kItems>
cudaError_t launch_register_shape(const RowArguments<U>& arguments, const RowPlan& plan, unsigned blocks, cudaStream_t stream) {
  return launch_after_predecessor<register_rows_kernel<U, kLanes, kItems>>(arguments, {blocks, plan.threads, plan.shared_bytes, true},
                                                                           stream);
}

template <class U>
cudaError_t launch_register_rows(const RowArguments<U>& arguments, const RowPlan& plan, unsigned blocks, cudaStream_t stream) {
  const int shape = plan.lanes * 100 + plan.items;
  switch (shape) {
    case 104: return launch_register_shape<U, 1, 4>(arguments, plan, blocks, stream);
    case 204: return launch_register_shape<U, 2, 4>(arguments, plan, blocks, stream);
    case 404: return launch_register_shape<U, 4, 4>(arguments, plan, blocks, stream);
    case 804: return launch_register_shape<U, 8, 4>(arguments, plan, blocks, stream);
    case 806: return launch_register_shape<U, 8, 6>(arguments, plan, blocks, stream);
    case 808: return launch_register_shape<U, 8, 8>(arguments, plan, blocks, stream);
    case 812: return launch_register_shape<U, 8, 12>(arguments, plan, blocks, stream);
    case 816: return launch_register_shape<U, 8, 16>(arguments, plan, blocks, stream);
    case 818: return launch_register_shape<U, 8, 18>(arguments, plan, blocks, stream);
    case 1612: return launch_register_shape<U, 16, 12>(arguments, plan, blocks, stream);
    case 1616: return launch_register_shape<U, 16, 16>(arguments, plan, blocks, stream);
    case 3202: return launch_register_shape<U, 32, 2>(arguments, plan, blocks, stream);
    case 3204: return launch_register_shape<U, 32, 4>(arguments, plan, blocks, stream);
    case 3208: return launch_register_shape<U, 32, 8>(arguments, plan, blocks, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace gpusort
