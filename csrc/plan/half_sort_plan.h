// Plans the sort of one row of 16-bit keys with their indices (cuda/radix/half_sort.h). Pure: shapes in, numbers out.
//
// As many keys as one tile of 16 K to an SM holds are sorted in one launch, all blocks resident. More take a histogram and two passes, a
// partition by the low byte and one by the high byte of the codes, or one pass by pattern where there are few patterns. Between the
// partitions an element takes 6 bytes, its index and its key as it is; tables take 2 to 4 KB for a tile: 6.2 bytes an element in all. GPUs
// whose blocks have too little shared memory sort by the slots of radix_plan.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sort_problem.h"

namespace gpusort {

constexpr int kHalfBins = 256;             // of a digit
constexpr int kMostPatterns = 256;         // that one partition tells apart
constexpr int kPatternWords = 65536 / 32;  // of a set of patterns, a bit for each

constexpr int64_t kHalfControlBytes = 256;  // what lies before all else in the workspace

enum class HalfStep { kLow, kHigh, kPatterns };

// Threads of a block, and items of each in a tile.
struct HalfShape {
  int threads;
  int items;

  constexpr int64_t tile_items() const { return int64_t{threads} * items; }
  constexpr bool operator==(const HalfShape& other) const { return threads == other.threads && items == other.items; }
};

// H200, 2^26 keys of random bits: low byte 1024x32 298 us, 1024x24 292; high byte 512x32 427, 512x40 440, 1024x16 472. Patterns are looked
// up, which takes registers: 1024x16 396 for two values.
constexpr HalfShape half_shape(HalfStep step) {
  switch (step) {
    case HalfStep::kLow: return {1024, 32};
    case HalfStep::kHigh: return {512, 32};
    default: return {1024, 16};
  }
}

// The last pass has blocks of twice the threads, with tiles of the same length, for rows below this length: a block has few tiles then, and
// the first and the last are sooner done. H200, 2^24 int16: zipf 265 us by 1024 threads and 274 by 512, runs 258 and 265; 2^26 as above.
constexpr int64_t kMinLengthOfFewThreads = int64_t{1} << 25;
constexpr HalfShape half_last_shape(int threads) {
  return {threads, static_cast<int>(half_shape(HalfStep::kHigh).tile_items() / threads)};
}

// Blocks of the one launch, of as many threads in both its partitions. H200, 2^20 float16: 21 us, by 1024 threads and 8 items 23, by passes
// 37; 2^21: 36, by 512 threads and 32 items 39. Tiles twice as long would take 2^22 keys too, but in 75 to 87 us, by passes 60 to 73.
constexpr HalfShape kHalfGridShapes[] = {{512, 16}, {1024, 16}};

// From this length on the partition by the low byte keeps ranks (cuda/radix/half_tile.cuh), the way to find them being chosen by the tile
// before. H200, 2^26 in all: random bits 775 us with and 806 without, runs 820 and 809; but a block's first tile is chosen by none, and of
// 2^24 keys it has four: reversed 260 and 242.
constexpr int64_t kMinLengthKeepingRanks = int64_t{1} << 26;

// Shared memory: a histogram for each warp | offset and start of each bin | words | kPatterns: set of patterns, their bins, counts of the
// bins | records. Those of kHigh are a key and an index, the others a word.
constexpr int kHalfWordBytes = 256;
constexpr int half_record_offset(HalfStep step, int threads) {
  const int bins = threads / 32 * kHalfBins * 4 + kHalfBins * 8 + kHalfWordBytes;
  return step == HalfStep::kPatterns ? bins + kPatternWords * 5 + 2 * kHalfBins * 4 : bins;
}
constexpr int half_shared_bytes(HalfStep step, HalfShape shape) {
  return half_record_offset(step, shape.threads) + static_cast<int>(shape.tile_items()) * (step == HalfStep::kHigh ? 6 : 4);
}

static_assert(half_shared_bytes(HalfStep::kHigh, kHalfGridShapes[1]) <= half_shared_bytes(HalfStep::kLow, half_shape(HalfStep::kLow)),
              "the one launch, and the last pass by 1024 threads, fit where the passes do");

// Three tables of counters with a bank for each lane, and a set of patterns.
constexpr int kHalfHistogramSharedBytes = 3 * kHalfBins * 32 * 4 + kPatternWords * 5 + 256;

struct HalfSortPlan {
  bool used = false;
  HalfShape grid = {0, 0};       // of a block where one launch does all; no threads: passes
  int64_t tiles[3] = {0, 0, 0};  // by HalfStep
  bool keeps_ranks = false;      // the partition by the low byte keeps the ranks of its counts
  int histogram_grid = 0;
  int first_grid = 0;    // the partition by the low byte or by pattern, or the one launch
  int last_threads = 0;  // of a block of the last pass
  int last_grid = 0;

  // Byte offsets into the workspace, each a multiple of 256; control words come first. What the other way needs is not there: 0.
  int64_t bins_offset = 0;  // low bytes, high bytes, patterns
  int64_t patterns_offset = 0;
  int64_t look_back_offset[2] = {0, 0};
  int64_t grid_counts_offset = 0;
  int64_t grid_unsorted_offset = 0;
  int64_t indices_offset = 0;  // between the partitions
  int64_t keys_offset = 0;
  int64_t cleared_bytes = 0;  // from the start of the workspace on
  int64_t workspace_bytes = 0;
};

inline HalfSortPlan plan_half_sort(const SortProblem& problem, const DeviceTraits& device) {
  auto ceil_div = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  HalfSortPlan plan;
  if (problem.key.bytes != 2 || problem.rows != 1 || problem.indices_out == nullptr || !problem.whole_key()) return plan;
  for (HalfStep step : {HalfStep::kLow, HalfStep::kHigh, HalfStep::kPatterns}) {
    if (half_shared_bytes(step, half_shape(step)) > device.shared_bytes_per_block) return plan;
  }
  if (kHalfHistogramSharedBytes > device.shared_bytes_per_block) return plan;
  plan.used = true;

  int64_t used = kHalfControlBytes;
  auto take = [&](int64_t bytes) {
    const int64_t offset = ceil_div(used, 256) * 256;
    used = offset + bytes;
    return offset;
  };
  for (HalfShape shape : kHalfGridShapes) {
    if (plan.grid.threads == 0 && problem.length <= shape.tile_items() * device.sm_count) plan.grid = shape;
  }
  if (plan.grid.threads != 0) {
    const int64_t tiles = ceil_div(problem.length, plan.grid.tile_items());
    plan.first_grid = static_cast<int>(tiles);
    plan.grid_counts_offset = take(2 * tiles * kHalfBins * 2);
    plan.grid_unsorted_offset = take(tiles * 4);
  } else {
    auto blocks = [&](int64_t most) { return static_cast<int>(std::min<int64_t>(most, device.sm_count)); };
    auto tiles = [&](HalfStep step) -> int64_t& { return plan.tiles[static_cast<int>(step)]; };
    for (HalfStep step : {HalfStep::kLow, HalfStep::kHigh, HalfStep::kPatterns}) {
      tiles(step) = ceil_div(problem.length, half_shape(step).tile_items());
    }
    plan.keeps_ranks = problem.length >= kMinLengthKeepingRanks;
    const int64_t first_tiles = std::max(tiles(HalfStep::kLow), tiles(HalfStep::kPatterns));
    constexpr int64_t kHistogramKeys = 4096;  // of a block at least
    plan.histogram_grid = blocks(ceil_div(problem.length, kHistogramKeys));
    plan.first_grid = blocks(first_tiles);
    plan.last_threads = problem.length < kMinLengthOfFewThreads ? 1024 : 512;
    plan.last_grid = blocks(tiles(HalfStep::kHigh));
    constexpr int64_t kTableBytes = kHalfBins * 4;
    plan.bins_offset = take(3 * kTableBytes);
    plan.cleared_bytes = used;
    plan.patterns_offset = take(kPatternWords * 4);
    plan.look_back_offset[0] = take(first_tiles * kTableBytes);
    plan.look_back_offset[1] = take(tiles(HalfStep::kHigh) * kTableBytes);
  }
  plan.indices_offset = take(problem.length * 4);
  plan.keys_offset = take(problem.length * 2);
  plan.workspace_bytes = used;
  return plan;
}

}  // namespace gpusort
