// The radix sort as it is taught, step by step. Each step keeps what the one before it got right and removes its largest waste:
//   R1  scan_scatter.cu   one bit a pass, mask + scan + scatter over the whole array      32 passes of scattered 4-byte writes
//   R2  block_radix.cu    each block partitions its tile first, then writes runs          the same passes, coalesced writes
//   R3  block_radix.cu    digits of 2, 4, 8 bits                                          fewer passes, more and shorter runs
//   R4  block_radix.cu    4, 8, 16 keys a thread, 16-byte loads                           longer runs, fewer counts to scan
// R5, the production sort (cuda/radix), reads all histograms once and replaces the scan between kernels by look-back.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/sort_problem.h"
#include "../../plan/steps_plan.h"

namespace gpusort {

// Both enqueue the whole sort on `stream`. `workspace` holds plan.workspace_bytes bytes, 256-byte aligned, contents arbitrary.
cudaError_t launch_radix_scan_scatter(const SortProblem& problem, const RadixStepsPlan& plan, void* workspace, cudaStream_t stream);

// digit_bits (1, 2, 4, 8) and keys_per_thread (1, 4, 8, 16) are those of the plan; any other is cudaErrorInvalidValue.
cudaError_t launch_radix_block(const SortProblem& problem, const RadixStepsPlan& plan, void* workspace, cudaStream_t stream);

}  // namespace gpusort
