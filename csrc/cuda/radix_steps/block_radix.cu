// R2, R3, R4: radix sort by digits of 1, 2, 4 or 8 bits, partitioned on chip before it is written.
//
// Satish, Harris, Garland ("Designing efficient sorting algorithms for manycore GPUs", 2009), with the warp ranking by ballots and the
// coarsening of Merrill, Grimshaw ("High performance and scalable radix sorting", 2011). One pass, two levels of counting:
//   count    each block counts the digits of its tile                                    reads the keys
//   scan     one exclusive scan over [row][digit][tile]                                  2^bits / tile items per key
//   scatter  each block ranks its tile, sorts it by digit in shared memory, writes runs  reads and writes the records
// R2: in a tile partitioned by one bit, the zeros go to one place of the output and the ones to another, each as a run of neighbours, so
// the writes coalesce where those of R1 scatter. R3: bits of a digit against runs: 32 / bits passes, runs of tile / 2^bits keys.
// R4: 16 keys a thread make runs 16 times as long and the scan 16 times as short; 16-byte loads take a quarter of the load instructions.
// Invariant: slots order a tile by (digit, warp, item, lane) = (digit, place in memory), and the scan orders runs by (digit, tile), so a
// pass is stable. Cost per pass and 32-bit key with index: 4 + 8 + 8 bytes, and 3 * 4 * 2^bits / tile for the counts.
#include "block_radix.cuh"

#include "radix_steps.h"

namespace gpusort {

cudaError_t launch_radix_block(const SortProblem& problem, const RadixStepsPlan& plan, void* workspace, cudaStream_t stream) {
  if (problem.numel() == 0) return cudaSuccess;
  switch (problem.key.bytes) {
    case 1: return launch_block_radix_width<uint8_t>(problem, plan, workspace, stream);
    case 2: return launch_block_radix_width<uint16_t>(problem, plan, workspace, stream);
    case 4: return launch_block_radix_width<uint32_t>(problem, plan, workspace, stream);
    case 8: return launch_block_radix_width<uint64_t>(problem, plan, workspace, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace gpusort
