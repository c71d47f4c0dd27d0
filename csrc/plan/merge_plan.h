// How a merge is carried out: which kernel, in which pieces, with how much workspace. Pure host arithmetic on shapes and device traits.
//
// Every kernel cuts each row's output into pieces of equal length and merges the pieces independently:
//   sequential   a piece is a row, merged by one thread
//   basic        a piece is a few outputs, merged by one thread straight from global memory
//   tiled        a piece is one tile, merged by one block in shared memory
//   circular     a piece is a long run of tiles, merged by one block that streams its inputs through two ring buffers
// The cuts are found either by a kernel of their own that writes them to the workspace, or by each block for itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "sort_problem.h"

namespace gpusort {

enum class MergeKernel { kAuto, kSequential, kBasic, kTiled, kCircular };

// False for a name that is none of the kernels'.
inline bool parse_merge_kernel(const std::string& name, MergeKernel& kernel) {
  if (name == "auto") {
    kernel = MergeKernel::kAuto;
  } else if (name == "sequential") {
    kernel = MergeKernel::kSequential;
  } else if (name == "basic") {
    kernel = MergeKernel::kBasic;
  } else if (name == "tiled") {
    kernel = MergeKernel::kTiled;
  } else if (name == "circular") {
    kernel = MergeKernel::kCircular;
  } else {
    return false;
  }
  return true;
}

// What one block merges at a time. A thread with a power of two of outputs sorts keys of 1, 2 and 4 bytes by a network, else it merges
// them.
struct MergeTile {
  int threads;
  int outputs_per_thread;
  int ring;  // elements of each ring buffer, a power of two; 0 for the tiled kernel

  constexpr int outputs() const { return threads * outputs_per_thread; }
};

constexpr MergeTile large_tile(int key_bytes) {
  // H200, 2 x 2^26 float32 keys: 256 x 20 358 us, cuts included, 256 x 16 392 (CUB 328); uint8 at 256 x 32 148 (CUB 254).
  return key_bytes == 1   ? MergeTile{256, 32, 0}
         : key_bytes == 2 ? MergeTile{256, 24, 0}
         : key_bytes == 4 ? MergeTile{256, 20, 0}
                          : MergeTile{256, 10, 0};
}

// For merges too short to give every multiprocessor a large tile.
constexpr MergeTile small_tile(int key_bytes) {
  return key_bytes == 1   ? MergeTile{128, 16, 0}
         : key_bytes == 2 ? MergeTile{128, 8, 0}
         : key_bytes == 4 ? MergeTile{128, 8, 0}
                          : MergeTile{128, 6, 0};
}

// Rings of 32 KB and tiles of 48 bytes a thread: three blocks fit into the shared memory of an H200 multiprocessor.
constexpr MergeTile ring_tile(int key_bytes) {
  return MergeTile{224, 48 / key_bytes, 32768 / key_bytes};
}

struct MergePlan {
  MergeKernel kernel = MergeKernel::kTiled;
  int outputs_per_thread = 0;
  int threads = 0;             // per block
  int64_t piece = 0;           // outputs per piece; the last of a row may be shorter
  int64_t pieces_per_row = 0;  // 0: nothing to do
  bool cuts_in_workspace = false;
  int64_t cuts_bytes = 0;  // the cuts, 8 bytes each, in front of a 4-byte flag that says whether they contradict each other
  int64_t workspace_bytes = 0;
};

constexpr int kBasicOutputsPerThread = 16;
// Up to here, about one wave of tiles, a block finds its own cuts: ten searches side by side.
constexpr int64_t kSearchInBlockPieces = 1024;

// outputs_per_thread: 0 for the default, or 1, 2, 4, 8, 16, 32 for the tiled merge of 4-byte keys and the basic merge.
inline MergePlan plan_merge(const MergeProblem& problem, MergeKernel kernel, const DeviceTraits& device, int outputs_per_thread = 0) {
  const int64_t row_outputs = problem.a_length + problem.b_length;
  const MergeTile large = large_tile(problem.key.bytes);
  const MergeTile small = small_tile(problem.key.bytes);
  const MergeTile ring = ring_tile(problem.key.bytes);
  MergePlan plan;
  plan.kernel = kernel;
  if (problem.rows == 0 || row_outputs == 0) return plan;

  if (kernel == MergeKernel::kAuto) {
    // Rings read less, but their upkeep costs more than that: H200, 2 x 2^26 float32: tiled 476 us, circular 524 us.
    plan.kernel = row_outputs <= 32 ? MergeKernel::kBasic : MergeKernel::kTiled;
  }
  if (plan.kernel == MergeKernel::kSequential) {
    plan.threads = 32;
    plan.piece = row_outputs;
  } else if (plan.kernel == MergeKernel::kBasic) {
    plan.threads = 128;
    plan.outputs_per_thread = outputs_per_thread > 0 ? outputs_per_thread : kBasicOutputsPerThread;
    plan.piece = row_outputs <= 2 * plan.outputs_per_thread ? row_outputs : plan.outputs_per_thread;
  } else if (plan.kernel == MergeKernel::kTiled) {
    const int64_t large_tiles = problem.rows * ((row_outputs + large.outputs() - 1) / large.outputs());
    MergeTile tile = large_tiles >= 2 * device.sm_count && row_outputs > small.outputs() ? large : small;
    if (outputs_per_thread > 0) tile = MergeTile{large.threads, outputs_per_thread, 0};
    plan.threads = tile.threads;
    plan.outputs_per_thread = tile.outputs_per_thread;
    plan.piece = tile.outputs();
  } else {
    plan.threads = ring.threads;
    plan.outputs_per_thread = ring.outputs_per_thread;
    const bool positions = problem.payload_bytes != 0 || problem.indices_out != nullptr;
    const int64_t shared_bytes = int64_t{2 * ring.ring + ring.outputs()} * problem.key.bytes + (positions ? 2 * ring.outputs() : 0) + 1280;
    const int64_t resident = device.sm_count * std::max<int64_t>(1, device.shared_bytes_per_sm / shared_bytes);
    const int64_t runs = std::max<int64_t>(1, resident / problem.rows);
    const int64_t tiles_per_row = (row_outputs + ring.outputs() - 1) / ring.outputs();
    const int64_t tiles_per_run = std::min<int64_t>((tiles_per_row + runs - 1) / runs, (int64_t{1} << 28) / ring.outputs());
    plan.piece = tiles_per_run * ring.outputs();
  }
  plan.pieces_per_row = (row_outputs + plan.piece - 1) / plan.piece;

  const bool by_blocks = plan.kernel == MergeKernel::kTiled || plan.kernel == MergeKernel::kCircular;
  plan.cuts_in_workspace = plan.pieces_per_row > (by_blocks ? kSearchInBlockPieces : 1);
  if (plan.cuts_in_workspace) {
    plan.cuts_bytes = problem.rows * (plan.pieces_per_row - 1) * 8;
    plan.workspace_bytes = plan.cuts_bytes + 4;
  }
  return plan;
}

}  // namespace gpusort
