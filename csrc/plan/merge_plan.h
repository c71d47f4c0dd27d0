// How a merge is carried out: which kernel, in which pieces, with how much workspace. Pure host arithmetic on shapes and device traits.
//
// Every kernel cuts each row's output into pieces of equal length and merges the pieces independently:
//   sequential   a piece is a row, merged by one thread
//   basic        a piece is a few outputs, merged by one thread straight from global memory
//   tiled        a piece is one tile, merged by one block in shared memory
//   circular     a piece is a long run of tiles, merged by one block that streams its inputs through two ring buffers
// The cuts are found either by a kernel of their own that writes them to the workspace (and the first few by the tiles' blocks beside it),
// or by each block for itself; or a block loads a window of the inputs in which its tile is expected, and need not look for the cuts if it
// is there.
#pragma once

#include <algorithm>
#include <cmath>
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

// What one block merges at a time.
struct MergeTile {
  int threads;
  int outputs_per_thread;
  int ring;  // elements of each ring buffer, a power of two; 0 for the tiled kernel

  constexpr int outputs() const { return threads * outputs_per_thread; }
  constexpr int64_t pieces(int64_t rows, int64_t row_outputs) const { return rows * ((row_outputs + outputs() - 1) / outputs()); }
};

// Keys with positions.
constexpr MergeTile large_tile(int key_bytes) {
  // H200, 2 x 2^26 float32 pairs, cuts included: 256 x 16 687 us, 256 x 20 748 to 796 (CUB 854).
  return key_bytes == 1   ? MergeTile{256, 32, 0}
         : key_bytes == 2 ? MergeTile{256, 24, 0}
         : key_bytes == 4 ? MergeTile{256, 16, 0}
                          : MergeTile{256, 10, 0};
}

// For merges with positions too short to give every multiprocessor large tiles.
constexpr MergeTile small_tile(int key_bytes) {
  return key_bytes == 1   ? MergeTile{128, 16, 0}
         : key_bytes == 2 ? MergeTile{128, 8, 0}
         : key_bytes == 4 ? MergeTile{128, 8, 0}
                          : MergeTile{128, 6, 0};
}

// Keys alone: an odd number of words a thread, of 16 or 4 bytes, keeps threads off each other's banks. The longer a tile, the fewer cuts.
constexpr MergeTile large_keys_tile(int key_bytes) {
  // H200, 2 x 2^26 keys, cuts included: uint8 128 x 112 92 us, 128 x 80 94 (CUB 253); uint16 128 x 102 158, 128 x 86 162, 256 x 70 167
  // (CUB 325); uint32 128 x 44 284, 128 x 36 285, 192 x 36 285 (CUB 328); uint64 256 x 18 549, 128 x 26 549 (CUB 642). A kernel that only
  // copies its tiles takes 271 and 539 of the 284 and 549.
  return key_bytes == 1   ? MergeTile{128, 112, 0}
         : key_bytes == 2 ? MergeTile{128, 102, 0}
         : key_bytes == 4 ? MergeTile{128, 44, 0}
                          : MergeTile{256, 18, 0};
}

// For merges of keys alone that make only a wave or two of tiles, of which each finds its own cuts.
constexpr MergeTile middle_keys_tile(int key_bytes) {
  // H200, 2 x 2^20 keys that are not in the cache: uint8 128 x 32 9.9 us, 256 x 48 10.3 (CUB 19.4); uint16 256 x 38 9.8, 256 x 40 10.1
  // (CUB 21.3); uint32 128 x 28 12.1, 256 x 20 12.9 (CUB 21.9); uint64 128 x 18 18.2, 128 x 14 20.3 (CUB 27.8).
  return key_bytes == 1   ? MergeTile{128, 32, 0}
         : key_bytes == 2 ? MergeTile{256, 38, 0}
         : key_bytes == 4 ? MergeTile{128, 28, 0}
                          : MergeTile{128, 18, 0};
}

// For those too short to give every multiprocessor such a tile.
constexpr MergeTile small_keys_tile(int key_bytes) {
  // H200, 2 x 2^16 keys: uint8 128 x 16 6.0 us (CUB 7.2), uint16 128 x 8 5.1 (CUB 8.1), uint32 128 x 12 5.2 (CUB 8.3), uint64 128 x 10 6.4,
  // 128 x 14 6.9 (CUB 8.5).
  return key_bytes == 1   ? MergeTile{128, 16, 0}
         : key_bytes == 2 ? MergeTile{128, 8, 0}
         : key_bytes == 4 ? MergeTile{128, 12, 0}
                          : MergeTile{128, 10, 0};
}

// For merges of keys alone in which a and b are evenly mixed and a wave of blocks takes all: tiles merged from windows, by rising size. An
// odd number of 4-byte words a thread keeps threads off each other's banks; the smallest tiles leave as whole words of 8 to 32 bytes.
constexpr int windowed_tiles(int key_bytes) {
  return key_bytes <= 2 ? 4 : 3;
}
constexpr MergeTile windowed_tile(int key_bytes, int size) {
  // H200, us, and where blocks search for their cuts: 2 x 2^16 uint8 2.9 (5.8; CUB 7.6), int16 2.9 (5.1; 8.2), float32 3.1 (7.0; 8.3),
  // int64 4.1 (5.6; 8.4); 2^18 3.9 (6.3), 4.0 (7.0), 4.4 (7.9), 6.7 (7.6); 2^20 5.9 (8.5; 13.6), 5.8 (8.3; 15.2), float32 8.3 (12.4; 14.6).
  constexpr MergeTile kBytes1[] = {{256, 8, 0}, {480, 12, 0}, {480, 20, 0}, {992, 20, 0}};
  constexpr MergeTile kBytes2[] = {{256, 8, 0}, {256, 18, 0}, {480, 18, 0}, {480, 34, 0}};
  constexpr MergeTile kBytes4[] = {{256, 8, 0}, {256, 17, 0}, {384, 21, 0}};
  constexpr MergeTile kBytes8[] = {{256, 7, 0}, {256, 9, 0}, {256, 17, 0}};
  return key_bytes == 1 ? kBytes1[size] : key_bytes == 2 ? kBytes2[size] : key_bytes == 4 ? kBytes4[size] : kBytes8[size];
}

// How far from where it is expected a cut of such tiles may lie: windows of neighbouring cuts do not overlap.
constexpr int most_reach(const MergeTile& tile) {
  return tile.outputs() / 4 - 4;
}

// How far it lies if a and b are samples of one distribution: four standard deviations, and half of a run of equal keys where the samples
// are longer than there are keys.
inline int64_t expected_reach(const MergeProblem& problem) {
  const double a = static_cast<double>(problem.a_length), b = static_cast<double>(problem.b_length);
  const double run = problem.key.bytes <= 2 ? (a + b) / std::ldexp(1.0, 8 * problem.key.bytes + 1) : 0.0;
  return static_cast<int64_t>(2 * std::sqrt(a * b / (a + b)) + run / 2) + 8;
}

// Long merges of narrow keys alone have their cuts found in windows too (merge_window_cuts.cuh), where those of every so many pieces lie
// apart. Above so many pieces the reads of many lanes cost what they save.
constexpr int kWindowCutGroup = 31;
constexpr int64_t kMostWindowCuts = 1 << 14;

// How many blocks of keys alone a multiprocessor is to hold: as many as leave 56, 64, 72 or 80 registers a thread, by what it holds.
constexpr int keys_blocks_per_multiprocessor(const MergeTile& tile, int key_bytes) {
  const int bytes = tile.outputs_per_thread * key_bytes;
  return (bytes <= 96 ? 1152 : bytes <= 144 ? 1024 : bytes <= 176 ? 896 : 768) / tile.threads;
}

// Whether the kernel for keys alone in such tiles can find its own pieces while the cuts of others are found.
constexpr bool finds_own_pieces(const MergeTile& tile, int key_bytes) {
  return tile.outputs() == large_keys_tile(key_bytes).outputs();
}

// Of so many pieces of narrow keys each group's ends have windows that lie apart.
constexpr int own_window_group(int key_bytes) {
  return key_bytes == 1 ? 16 : 4;
}

// Whether the kernel for keys alone in such tiles settles loose cuts. Narrow keys have exact ones: in their runs of equal keys cuts leave
// it in doubt whether pieces rise.
constexpr bool takes_loose_cuts(const MergeTile& tile, int key_bytes) {
  return key_bytes >= 4 && finds_own_pieces(tile, key_bytes);
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
  int64_t own_pieces = 0;         // the first of the only row, whose blocks find them while the cuts of the others are found
  bool loose_cuts = false;        // those are settled by the tiles (core/loose_cut.h)
  int64_t reach = 0;              // above 0: of windows around expected cuts, from which tiles are merged, or where a kernel finds the cuts
  int64_t workspace_bytes = 0;    // the cuts, 8 bytes each
  bool dependent_launch = false;  // kernels may be set up while the one before ends
};

constexpr int kBasicOutputsPerThread = 16;
// Up to here, one or two waves of tiles, a block finds its own cuts: eleven searches side by side. H200, 2 x 2^22 keys: uint32 in 1490
// tiles 30.8 us so and 32.3 with a kernel for the cuts; uint64 in 2521 tiles 54.7 and 50.1.
constexpr int64_t kSearchInBlockPieces = 1536;

// The tile of the tiled kernel.
inline MergeTile merge_tile_of(const MergeProblem& problem, const DeviceTraits& device) {
  const int bytes = problem.key.bytes;
  const int64_t rows = problem.rows, row_outputs = problem.a_length + problem.b_length;
  if (problem.payload_bytes != 0 || problem.indices_out != nullptr) {
    const MergeTile large = large_tile(bytes), small = small_tile(bytes);
    return large.pieces(rows, row_outputs) >= 2 * device.sm_count && row_outputs > small.outputs() ? large : small;
  }
  const MergeTile large = large_keys_tile(bytes), middle = middle_keys_tile(bytes), small = small_keys_tile(bytes);
  if (large.pieces(rows, row_outputs) >= 4 * device.sm_count && row_outputs > middle.outputs()) return large;
  return 2 * middle.pieces(rows, row_outputs) >= 3 * device.sm_count && row_outputs > small.outputs() ? middle : small;
}

// The reach of windows for a merge, and their tile: the smallest that does not take more than a block to a multiprocessor, or else the
// largest if it does not take more than two, in a merge of one row of keys of up to 4 bytes. 0 if no windows of neighbouring cuts would lie
// apart, or more blocks would be needed. H200, blocks that search for their cuts and windows: 2 x 2^19 int64 in two blocks to a
// multiprocessor 10.2 and 10.7 us; 200 rows of 2 x 2^12 int16 6.4 and 7.2.
inline int64_t windowed_reach(const MergeProblem& problem, const DeviceTraits& device, MergeTile& tile) {
  const int bytes = problem.key.bytes;
  const int64_t row_outputs = problem.a_length + problem.b_length, shorter = std::min(problem.a_length, problem.b_length);
  if (problem.payload_bytes != 0 || problem.indices_out != nullptr) return 0;
  const int last = windowed_tiles(bytes) - 1;
  for (int size = 0; size <= last; ++size) {
    tile = windowed_tile(bytes, size);
    const bool may_fit_twice = size == last && 2 * (tile.threads + 32) <= 1024 && problem.rows == 1 && bytes < 8;
    if (tile.pieces(problem.rows, row_outputs) > (may_fit_twice ? 2 : 1) * int64_t{device.sm_count}) continue;
    if (row_outputs <= tile.outputs()) return 1;  // one tile to a row, without cuts
    const int64_t reach = expected_reach(problem);
    const bool apart = (2 * reach + 4) * row_outputs <= shorter * tile.outputs();  // also in the shorter input
    if (reach <= most_reach(tile) && apart) return reach;
  }
  return 0;
}

// The pieces that blocks find for themselves, those of the tiles that start at once: less than a wave, since the blocks that find the cuts
// of the others need room too. H200, float32: 2 x 2^24 84.1 to 81.0 us, 2 x 2^26 282.8 to 281.2; two waves are slower than none. With 2, 4
// and 5 blocks of narrow keys to a multiprocessor, 2 x 2^24: int16 48.0, 48.1, 48.3 us by events and 47.9, 45.4, 45.0 in a graph; with 2, 4
// and 7 uint8 27.9, 27.1, 30.3 and 25.7, 24.8, 24.5.
inline int64_t first_wave(const MergePlan& plan, int key_bytes, const DeviceTraits& device) {
  const int fit = keys_blocks_per_multiprocessor(MergeTile{plan.threads, plan.outputs_per_thread, 0}, key_bytes);
  const int blocks = key_bytes <= 2 ? std::min(4, fit - 1) : fit - 1;
  const bool block_to_a_tile = plan.pieces_per_row < int64_t{1} << 30;
  return block_to_a_tile ? std::min<int64_t>(blocks * device.sm_count, plan.pieces_per_row / 2) : 0;
}

// Whether windows of that reach lie apart in both inputs if so many outputs lie between their cuts.
inline bool windows_lie_apart(const MergeProblem& problem, int64_t reach, int64_t outputs) {
  constexpr int64_t kRounding = 256;  // of expected cuts, in 32-bit floats
  const int64_t row_outputs = problem.a_length + problem.b_length, shorter = std::min(problem.a_length, problem.b_length);
  return (2 * reach + kRounding) * row_outputs <= shorter * outputs;
}

// The reach of windows in which the cuts between pieces are looked for by a kernel; 0 if they are not.
inline int64_t window_cuts_reach(const MergeProblem& problem, int64_t piece, int64_t pieces_per_row) {
  const bool keys_alone = problem.payload_bytes == 0 && problem.indices_out == nullptr;
  if (problem.key.bytes > 2 || !keys_alone || problem.a_length + problem.b_length >= int64_t{1} << 30) return 0;
  if (problem.rows * pieces_per_row > kMostWindowCuts) return 0;
  const int64_t reach = expected_reach(problem);
  return windows_lie_apart(problem, reach, piece * kWindowCutGroup) ? reach : 0;
}

// How many of the first pieces of a merge with cuts in memory blocks find for themselves.
inline int64_t own_pieces_of(const MergeProblem& problem, const MergePlan& plan, const DeviceTraits& device) {
  const int bytes = problem.key.bytes;
  if (!plan.dependent_launch || problem.rows != 1) return 0;
  if (plan.loose_cuts) return first_wave(plan, bytes, device);
  const int64_t group = own_window_group(bytes);
  const bool in_windows = plan.reach > 0 && finds_own_pieces(MergeTile{plan.threads, plan.outputs_per_thread, 0}, bytes) &&
                          windows_lie_apart(problem, plan.reach, plan.piece * group);
  return in_windows ? first_wave(plan, bytes, device) / group * group : 0;
}

// outputs_per_thread: 0 for the default, or 1, 2, 4, 8, 16, 32 for the tiled merge of 4-byte keys and the basic merge.
inline MergePlan plan_merge(const MergeProblem& problem, MergeKernel kernel, const DeviceTraits& device, int outputs_per_thread = 0) {
  const int64_t row_outputs = problem.a_length + problem.b_length;
  const bool positions = problem.payload_bytes != 0 || problem.indices_out != nullptr;
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
    MergeTile tile = merge_tile_of(problem, device);
    if (outputs_per_thread > 0) {
      tile = MergeTile{tile.threads, outputs_per_thread, 0};
    } else if (MergeTile windowed = tile; (plan.reach = windowed_reach(problem, device, windowed)) > 0) {
      tile = windowed;
    }
    plan.threads = tile.threads;
    plan.outputs_per_thread = tile.outputs_per_thread;
    plan.piece = tile.outputs();
  } else {
    plan.threads = ring.threads;
    plan.outputs_per_thread = ring.outputs_per_thread;
    const int64_t shared_bytes = int64_t{2 * ring.ring + ring.outputs()} * problem.key.bytes + (positions ? 2 * ring.outputs() : 0) + 1280;
    const int64_t resident = device.sm_count * std::max<int64_t>(1, device.shared_bytes_per_sm / shared_bytes);
    const int64_t runs = std::max<int64_t>(1, resident / problem.rows);
    const int64_t tiles_per_row = (row_outputs + ring.outputs() - 1) / ring.outputs();
    const int64_t tiles_per_run = std::min<int64_t>((tiles_per_row + runs - 1) / runs, (int64_t{1} << 28) / ring.outputs());
    plan.piece = tiles_per_run * ring.outputs();
  }
  plan.pieces_per_row = (row_outputs + plan.piece - 1) / plan.piece;

  const bool by_blocks = plan.kernel != MergeKernel::kSequential && plan.kernel != MergeKernel::kBasic;
  plan.cuts_in_workspace = plan.pieces_per_row > (by_blocks ? kSearchInBlockPieces : 1);
  if (plan.cuts_in_workspace) {
    plan.workspace_bytes = problem.rows * (plan.pieces_per_row - 1) * 8;
    const MergeTile tile{plan.threads, plan.outputs_per_thread, 0};
    if (plan.kernel == MergeKernel::kTiled) plan.reach = window_cuts_reach(problem, plan.piece, plan.pieces_per_row);
    plan.loose_cuts = plan.kernel == MergeKernel::kTiled && !positions && takes_loose_cuts(tile, problem.key.bytes);
  }
  plan.dependent_launch = device.compute_major >= 9;
  if (plan.cuts_in_workspace) plan.own_pieces = own_pieces_of(problem, plan, device);
  return plan;
}

}  // namespace gpusort
