// How the bucket sort runs when all rows together are short, with its partition in one launch: a pure function of (key width, rows, length,
// outputs, device).
//
// Every block is resident and has one tile, which it holds on chip from the first read of the keys until they are in their buckets. So rows
// are cut into as many tiles as blocks fit the device at once, of equal length but for one key, and into a whole number of buckets for each
// tile, so that the buckets of 32-bit keys, too, fit it at once.
//
// Every tile has equally many samples, `samples` of them, so a bucket holds s = samples * tiles / buckets, at least 10 for 64-bit keys and
// 31 for shorter ones; plan/bucket_sort_plan.h says how seldom a bucket then exceeds the capacity, three and two times the mean.
#pragma once

#include <algorithm>
#include <cstdint>

#include "bucket_shape.h"
#include "bucket_sort_plan.h"
#include "sort_problem.h"

namespace gpusort {

constexpr int kOneLaunchGroup = 16;  // tiles whose counts are also added up, so that no block reads the counts of all

namespace one_launch_shapes {

constexpr int kThreads = bucket_sort_shapes::kThreads;
constexpr int kBlocksPerSm = 2;
constexpr int kShortItems = 8;  // of a thread in a tile
constexpr int kLongItems = 16;  // keys to 32 bits

// To a thread that sorts a bucket.
GPUSORT_HD constexpr int bucket_items(int key_bytes) {
  return key_bytes == 8 ? 8 : 16;
}

// The longest bucket aimed at.
GPUSORT_HD constexpr int longest_mean(int key_bytes) {
  return key_bytes == 8 ? 1366 : 4096;
}

// Of a tile. A warp sorts them.
GPUSORT_HD constexpr int samples_of_tile(int items) {
  return items > kShortItems ? 64 : 32;
}

constexpr int64_t kOneLaunchStaticBytes = 2048;  // the kernel's own variables and what the driver keeps of each block

}  // namespace one_launch_shapes

struct OneLaunchPlan {
  bool possible = false;
  int items = 0;        // to a thread of a tile at most
  int tile_length = 0;  // the longest; some are one key shorter
  int tiles_per_row = 0;
  int groups_per_row = 0;  // of tiles
  int samples = 0;         // of a tile
  int buckets_per_row = 0;
  int bucket_capacity = 0;
  int levels = 0;  // of the tree of splitters
  int shared_bytes = 0;
  int shared_limit = 0;  // one value for every launch on a device, so that concurrent callers agree
  DeviceTraits device;

  // Byte offsets into the workspace, each a multiple of 256. -1: not there.
  int64_t samples_offset = 0;       // [row][tile][sample], codes
  int64_t splitters_offset = 0;     // [row][bucket], codes; the first of a row is not used
  int64_t counts_offset = 0;        // [row][tile][pair of buckets], 16 bits to each
  int64_t group_counts_offset = 0;  // [row][group][bucket], an even number of them
  int64_t begins_offset = 0;        // [row][bucket + 1]
  int64_t overflow_offset = 0;      // two counts of buckets that the next kernel sorts, and which
  int64_t keys_offset = -1;         // in buckets, when the result holds none
  int64_t indices_offset = 0;
  int64_t spare_keys_offset = -1;  // for buckets above the capacity, when the result has no room that is free until the end
  int64_t workspace_bytes = 0;

  int pairs() const { return (buckets_per_row + 1) / 2; }
};

// Rows of at least two tiles of a thousand keys, that fit the device in one wave of blocks.
inline OneLaunchPlan plan_one_launch(const SortProblem& problem, const DeviceTraits& traits) {
  using namespace bucket_sort_detail;
  using namespace one_launch_shapes;
  OneLaunchPlan plan;
  if (!bucket_sort_can_run(problem, traits) || problem.key.bytes < 4 || problem.indices_out == nullptr) return plan;
  const int key_bytes = problem.key.bytes, code_bytes = key_bytes;
  const int64_t rows = problem.rows, length = problem.length, blocks = int64_t{kBlocksPerSm} * traits.sm_count;
  if (rows > blocks / 2) return plan;
  plan.device = traits;
  plan.tiles_per_row = static_cast<int>(std::min(blocks / rows, length / 1024));
  plan.tile_length = static_cast<int>(std::min<int64_t>(ceil_div(length, plan.tiles_per_row), 1 << 20));
  plan.items = plan.tile_length <= kThreads * kShortItems || key_bytes == 8 ? kShortItems : kLongItems;
  if (plan.tile_length > kThreads * plan.items) return plan;
  plan.groups_per_row = static_cast<int>(ceil_div(plan.tiles_per_row, kOneLaunchGroup));
  plan.samples = samples_of_tile(plan.items);
  plan.buckets_per_row = static_cast<int>(plan.tiles_per_row * ceil_div(plan.tile_length, longest_mean(key_bytes)));
  plan.bucket_capacity = kThreads * bucket_items(key_bytes);
  if (plan.buckets_per_row > kMostBuckets) return plan;
  plan.levels = levels_of(plan.buckets_per_row);

  const int sample_bytes = plan.tiles_per_row * plan.samples * code_bytes + plan.samples * 4;
  const int partition_bytes = partition_layout(key_bytes, kThreads, plan.items, plan.buckets_per_row, 1 << plan.levels).bytes;
  plan.shared_bytes = std::max(sample_bytes, partition_bytes);
  plan.shared_limit =
      static_cast<int>(std::min(traits.shared_bytes_per_sm / kBlocksPerSm, traits.shared_bytes_per_block) - kOneLaunchStaticBytes);
  if (plan.shared_bytes > plan.shared_limit) return plan;

  int64_t* used = &plan.workspace_bytes;
  const int64_t buckets = rows * plan.buckets_per_row, tiles = rows * plan.tiles_per_row;
  plan.splitters_offset = take(used, buckets * code_bytes);
  plan.begins_offset = take(used, (buckets + rows) * 4);
  plan.overflow_offset = take(used, bucket_overflow_words(rows, plan.buckets_per_row) * 4);
  if (problem.keys_out == nullptr) plan.keys_offset = take(used, problem.numel() * key_bytes);
  plan.indices_offset = take(used, problem.numel() * 4);
  // The partition is the last to read samples and counts, and spare keys are written after it.
  int64_t early = 0;
  plan.samples_offset = take(&early, tiles * plan.samples * code_bytes);
  plan.counts_offset = take(&early, tiles * plan.pairs() * 4);
  plan.group_counts_offset = take(&early, rows * plan.groups_per_row * plan.pairs() * 8);
  const bool results_have_room = problem.index_bytes == 8 && key_bytes == 4;
  const int64_t spare = results_have_room ? 0 : problem.numel() * key_bytes;
  const int64_t start = take(used, std::max(early, spare));
  if (!results_have_room) plan.spare_keys_offset = start;
  plan.samples_offset += start;
  plan.counts_offset += start;
  plan.group_counts_offset += start;
  plan.possible = true;
  return plan;
}

}  // namespace gpusort
