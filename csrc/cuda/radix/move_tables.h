// The tables of the radix sort move inside the outputs before the last slot writes these: see borrowed_indices.cuh.
#pragma once

#include "pass_arguments.h"

namespace gpusort {

// Copies control words and bins into the upper halves of the last indices, with a cleared look-back table, and lets `arguments` point
// there.
template <class Key>
cudaError_t launch_move_tables(PassArguments<Key>& arguments, const RadixPlan& plan, cudaStream_t stream);

}  // namespace gpusort
