// Which kernel sorts rows that fit on chip, with how many threads: a pure function of (key width, row length, rows, device).
//
//   kRegisters  rows to 256: 32-bit words in the registers of part of a warp, several rows to a warp
//   kBlock      rows to 16384: 32-bit words, one row to a block; sorted in registers by each warp, then merged in shared memory
//
//   clusters    a few rows of 513 to 4096 (64-bit keys: 1025 to 4096): one row to eight blocks, a word to a thread
//
// A shape is lanes (or threads) times items; its capacity is their product and a row takes the smallest shape that holds it, so a row of
// 129 does not pay for 256. The tables are in one place below. Times are microseconds for 2^26 float32 with int64 indices on an H200.
#pragma once

#include <cstdint>

#include "sort_problem.h"
#include "word_layout.h"

namespace gpusort {

enum class RowKernel : uint8_t {
  kNone,  // nothing to do, or (a length above the maximum) nothing possible
  kCopy,  // rows of one key
  kRegisters,
  kBlock
};

struct RowPlan {
  RowKernel kernel = RowKernel::kNone;
  int lanes = 0;          // kRegisters: lanes to a row
  int items = 0;          // keys to a lane or thread
  int threads = 0;        // to a block
  bool far_keys = false;  // kBlock: keys are not kept in shared memory but read again from where they came
  int64_t rows_per_block = 0;
  int64_t blocks = 0;           // in all; above 2^31 - 1 the launcher makes several launches
  int shared_bytes = 0;         // dynamic, per block
  int shared_limit = 0;         // the most a block of this device may use: one value for every launch, so that concurrent callers agree
  int64_t workspace_bytes = 0;  // none of the kernels needs any
  // kBlock: where rows can be sorted by clusters of kRowClusterBlocks blocks (compute capability 9.0, and kernels compiled for it), they
  // are, with so many threads to a block; the fields above say what is done elsewhere. 0: not.
  int cluster_threads = 0;
  int cluster_shared_bytes = 0;
};

constexpr int kRowClusterBlocks = 8;  // as many as every device with clusters has

// Blocks take consecutive parts of a row, the last of them a shorter one.
GPUSORT_HD constexpr int row_part_length(int length) {
  return (length + kRowClusterBlocks - 1) / kRowClusterBlocks;
}

namespace row_shapes {

// Lanes x items for rows in registers, in order of capacity.
struct LaneShape {
  int lanes;
  int items;
};

constexpr LaneShape kRegisterShapes[] = {
    {1, 4},   {2, 4},   {4, 4}, {8, 4}, {8, 6}, {8, 8},  // 64: 276
    {8, 12},  {8, 16},                                   // 128: 307
    {8, 18},                                             // 129: 375 (in a shape of 256: 588)
    {16, 12}, {16, 16},                                  // 256: 330
};

// Whole warps for a few short rows: fewer steps one after the other.
constexpr LaneShape kFewRowsShapes[] = {{32, 2}, {32, 4}, {32, 8}};

// Threads x items for one row to a block. Blocks per SM follow from the kernel's registers (64 a thread with 17 items or more, else 48)
// and from shared memory.
struct BlockShape {
  int threads;
  int items;
};

constexpr BlockShape kBlockShapes[] = {
    {32, 12},  {32, 16},             // 512: 366
    {32, 20},  {64, 12},  {64, 16},  // 1024: 430
    {64, 20},  {96, 16},             // 1500: 510
    {128, 16},                       // 2048: 493 (64 x 32: 519)
    {128, 20}, {96, 32},             // 3000: 629
    {256, 16},                       // 4096: 556 (128 x 32: 569)
    {288, 16}, {320, 16},            // 4097: 761 (256 x 20: 816), 5000: 646
    {192, 32}, {256, 32},            // 6000: 599, 8192: 608 (512 x 16: 708)
    {320, 32}, {384, 32},            // 10240: 738, 12288: 759
    {448, 32}, {512, 32},            // 16384: 865
};

constexpr int kFewestBlockPlaces = 257;  // of any block's words

// From this many items on rows of 32-bit and wider keys leave their keys far, if there are rows enough for two blocks to an SM.
constexpr int kFarKeysCapacity = 448 * 32;

// Rows so few that an SM holds one or two blocks: more threads to a row. Single arrays on an H200, in a graph: 2^10 as 128 x 8 3.9 us (256
// x 4: 4.2), 2^11 as 256 x 8 6.1, 2^12 as 256 x 16 9.3 (512 x 8: 9.7), 2^13 as 512 x 16 16, 2^14 as 512 x 32 30.
struct FewRowsBlockShape {
  int max_length;
  int items;
};

constexpr FewRowsBlockShape kOneRowPerSm[] = {{2048, 8}, {8192, 16}, {16384, 32}};
constexpr FewRowsBlockShape kThreeRowsPerSm[] = {{2048, 8}, {8192, 16}};

// Threads to a block where a cluster sorts a row, one word each, and the shortest rows that get them. Single arrays on an H200, in a graph:
// 2^10 3.4 us (one block: 4.5), 2^11 4.6 (6.2), 2^12 7.1 (9.7); 2^13 would take 11.4 (one launch over the grid: 10.6). Of 64-bit keys, 513
// take 4.1 us (one block: 3.7), 1500 5.1 (6.2).
constexpr int kClusterThreads[] = {64, 128, 256, 512};
constexpr int cluster_min_length(int key_bytes) {
  return key_bytes == 8 ? 1025 : 513;
}

constexpr int kWarpsPerBlock = 4;             // kRegisters
constexpr int kFewWarpsPerSm = 4;             // below this many warps to an SM rows in registers get a whole warp each
constexpr int64_t kStaticSharedBytes = 2048;  // kept for the kernel's own variables and the driver

}  // namespace row_shapes

// The keys of `places` places unless they stay far, then their long runs, then as many words.
GPUSORT_HD constexpr int64_t row_shared_bytes(int key_bytes, int64_t places, int items, bool far_keys = false) {
  return (far_keys ? 0 : round_up(places * key_bytes, 16)) + long_run_bytes(key_bytes, places, items) + (places + places / 32 + 1) * 4;
}

namespace row_plan_detail {

inline bool block_fits(int key_bytes, int64_t capacity, int items, const DeviceTraits& traits) {
  return row_shared_bytes(key_bytes, capacity, items) + row_shapes::kStaticSharedBytes <= traits.shared_bytes_per_block;
}

inline RowPlan lanes_plan(row_shapes::LaneShape shape, const SortProblem& problem, const DeviceTraits& traits) {
  RowPlan plan;
  const int64_t rows_per_warp = 32 / shape.lanes;
  const int64_t warps = (problem.rows + rows_per_warp - 1) / rows_per_warp;
  int warps_per_block = row_shapes::kWarpsPerBlock;
  while (warps_per_block > 1 && warps < static_cast<int64_t>(warps_per_block) * traits.sm_count) warps_per_block /= 2;
  plan.kernel = RowKernel::kRegisters;
  plan.lanes = shape.lanes;
  plan.items = shape.items;
  plan.threads = warps_per_block * 32;
  plan.rows_per_block = warps_per_block * rows_per_warp;
  plan.blocks = (problem.rows + plan.rows_per_block - 1) / plan.rows_per_block;
  const int64_t places = 32 * shape.items;
  plan.shared_bytes = static_cast<int>(warps_per_block * round_up(row_shared_bytes(problem.key.bytes, places, shape.items), 16));
  return plan;
}

// Words wait beside the codes of all parts.
inline int cluster_shared_bytes(int key_bytes, int threads) {
  const bool wide = key_bytes == 8;
  return kRowClusterBlocks * threads * (wide ? 8 : 4) + (wide ? grid_packed_bytes(wide, threads) : grid_shared_word_bytes(wide, threads));
}

// Rows so few that all their clusters are under way at once.
inline void add_clusters(RowPlan& plan, const SortProblem& problem, const DeviceTraits& traits) {
  if (traits.compute_major < 9 || problem.length < row_shapes::cluster_min_length(problem.key.bytes)) return;
  if (problem.rows * kRowClusterBlocks > traits.sm_count) return;
  for (const int threads : row_shapes::kClusterThreads) {
    if (problem.length > int64_t{threads} * kRowClusterBlocks) continue;
    plan.cluster_threads = threads;
    plan.cluster_shared_bytes = cluster_shared_bytes(problem.key.bytes, threads);
    return;
  }
}

inline RowPlan block_plan(int threads, int items, bool far_keys, const SortProblem& problem, const DeviceTraits& traits) {
  RowPlan plan;
  plan.far_keys = far_keys;
  plan.kernel = RowKernel::kBlock;
  plan.items = items;
  plan.threads = threads;
  plan.rows_per_block = 1;
  plan.blocks = problem.rows;
  plan.shared_bytes = static_cast<int>(row_shared_bytes(problem.key.bytes, static_cast<int64_t>(threads) * items, items, far_keys));
  plan.shared_limit = static_cast<int>(traits.shared_bytes_per_block - row_shapes::kStaticSharedBytes);
  add_clusters(plan, problem, traits);
  return plan;
}

}  // namespace row_plan_detail

// The longest row the row kernels take on this device; 0 when it can hold none.
inline int64_t row_sort_max_length(int key_bytes, const DeviceTraits& traits) {
  if (traits.sm_count < 1 || traits.compute_major < 8 || traits.shared_bytes_per_block < 48 * 1024) return 0;
  int64_t longest = 0;
  for (const auto& shape : row_shapes::kBlockShapes) {
    const int64_t capacity = static_cast<int64_t>(shape.threads) * shape.items;
    if (row_plan_detail::block_fits(key_bytes, capacity, shape.items, traits)) longest = capacity;
  }
  return longest;
}

inline RowPlan plan_row_sort(const SortProblem& problem, const DeviceTraits& traits) {
  using namespace row_plan_detail;
  RowPlan plan;
  const int64_t length = problem.length;
  if (problem.rows <= 0 || length <= 0 || length > row_sort_max_length(problem.key.bytes, traits)) return plan;
  if (length == 1) {
    plan.kernel = RowKernel::kCopy;
    return plan;
  }
  if (length > 16 && length <= 256 && problem.rows <= static_cast<int64_t>(row_shapes::kFewWarpsPerSm) * traits.sm_count) {
    for (const auto& shape : row_shapes::kFewRowsShapes) {
      if (length <= shape.lanes * shape.items) return lanes_plan(shape, problem, traits);
    }
  }
  for (const auto& shape : row_shapes::kRegisterShapes) {
    if (length <= shape.lanes * shape.items) return lanes_plan(shape, problem, traits);
  }
  const int64_t rows_per_sm = (problem.rows + traits.sm_count - 1) / traits.sm_count;
  const auto few_rows_plan = [&](const row_shapes::FewRowsBlockShape& shape) {
    const int64_t warps = (length + shape.items * 32 - 1) / (shape.items * 32);
    return block_plan(static_cast<int>(warps * 32), shape.items, false, problem, traits);
  };
  if (rows_per_sm == 1) {
    for (const auto& shape : row_shapes::kOneRowPerSm) {
      if (length <= shape.max_length) return few_rows_plan(shape);
    }
  } else if (rows_per_sm <= 3) {
    for (const auto& shape : row_shapes::kThreeRowsPerSm) {
      if (length <= shape.max_length) return few_rows_plan(shape);
    }
  }
  for (const auto& shape : row_shapes::kBlockShapes) {
    const int capacity = shape.threads * shape.items;
    if (length <= capacity) {
      const bool far_keys = problem.key.bytes >= 4 && capacity >= row_shapes::kFarKeysCapacity && rows_per_sm > 1;
      return block_plan(shape.threads, shape.items, far_keys, problem, traits);
    }
  }
  return plan;
}

}  // namespace gpusort
