// The tables of the radix sort move out of the key output before the last slot writes it: see borrowed_indices.cuh.
#pragma once

#include "pass_arguments.h"

namespace gpusort {

// Copies control words and bins into the upper halves of the last indices, with a cleared look-back table, and lets `arguments` point
// there.
cudaError_t launch_move_tables(PassArguments<uint32_t>& arguments, const RadixPlan& plan, cudaStream_t stream);

}  // namespace gpusort
