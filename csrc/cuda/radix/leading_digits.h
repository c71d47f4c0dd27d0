// Decides by how many leading digits 64-bit keys are sorted, before they are counted. Fewer passes are enough where a few leading digits
// tell nearly all different keys apart; what they leave together is repaired (high_word_ties.h). One block looks at a sample of the keys.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/radix_plan.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

// For plans with high_word_samples above 0. Clears control words and bins, the first plan.cleared_bytes of the tables, and fills
// RadixControl::sorted_from and small_groups.
cudaError_t launch_leading_digits(const SortProblem& problem, const RadixPlan& plan, void* tables, cudaStream_t stream);

}  // namespace gpusort
