// How a few long rows are cut for the one-launch grid sort: a pure function of (key width, rows, length, device).
//
// Every row is cut into V tiles of `tile_length` keys (the last may be shorter), each sorted on chip, and then into V buckets by V - 1
// splitters taken from `kGridSamples` regular samples of each sorted tile. Words differ (code, index), so whatever the keys are:
//
//   Samples of a tile lie `gap` apart, fewer than gap words before the first and after the last. A bucket that holds k of a tile's samples
//   therefore holds fewer than (k + 1) * gap of its words, and all buckets hold at most ceil(samples / V) <= kGridSamples samples. So a
//   bucket has at most (kGridSamples + V) * gap words: twice a tile where V <= kGridSamples, five times a tile at V = 128.
//
// Random keys stay near the mean (standard deviation 18 %). A bucket above the capacity, twice a tile, is cut once more by the same
// argument: every piece_gap-th word of each of its V runs is a sample; all of them fit the block's sort, and between every
// `piece_samples`-th of them lie at most (piece_samples + V) * piece_gap <= capacity words. No input can overflow a block.
#pragma once

#include <algorithm>
#include <cstdint>

#include "row_plan.h"
#include "sort_problem.h"
#include "word_layout.h"

namespace gpusort {

constexpr int kGridSamples = 32;  // of each tile
constexpr int kGridMaxTilesPerRow = 128;
constexpr int kGridMaxPieces = 32;
constexpr int64_t kGridMaxTiles = 8192;  // of all rows

// What blocks sort: (code, index) words as they are, or 32-bit stand-ins.
enum class GridWords { kExact, kPackedBuckets, kPacked };

struct GridSortPlan {
  int threads = 0;  // to a block; 0: not for this kernel
  int items = 0;    // words to a thread in a tile; a bucket may have twice as many
  GridWords words = GridWords::kExact;
  int tiles_per_row = 0;
  int tile_length = 0;
  int gap = 0;              // between the samples of a tile
  int samples_per_row = 0;  // without padding
  int bucket_capacity = 0;  // a longer bucket goes in pieces
  int piece_gap = 0;
  int piece_samples = 0;
  int blocks = 0;  // all resident
  int shared_bytes = 0;
  bool dependent_launch = false;  // the device can start a kernel's blocks while its predecessor ends
  int shared_limit = 0;           // one value for every launch on a device, so that concurrent callers agree
  int64_t samples_offset = 0;     // in the workspace, in bytes; the words are at its beginning
  int64_t splitters_offset = 0;
  int64_t workspace_bytes = 0;
};

namespace grid_sort_shapes {

// A tile is threads * items. Single float32 arrays: 2^14 as 64 tiles, 2^16 to 2^18 as 128, one to an SM.
struct Shape {
  int threads;
  int items;
  int max_tiles_per_row;
};

constexpr Shape kShapes[] = {{256, 1, 64}, {256, 2, 128}, {512, 2, 128}, {512, 4, 128}};

// By registers: 64 a thread for the longest tiles, of which an SM gets several, else 128.
GPUSORT_HD constexpr int blocks_per_sm(int threads, int items) {
  return items >= 4 ? 1024 / threads : 512 / threads;
}

constexpr int64_t kStaticSharedBytes = 5120;  // the kernel's own variables and what the driver keeps of each block

}  // namespace grid_sort_shapes

// Samples of different tiles are staggered, so that tiles that resemble each other (periodic data) do not all sample the same keys.
GPUSORT_HD int grid_sample_offset(int tile_of_row, int gap) {
  return static_cast<int>((static_cast<uint32_t>(tile_of_row) * 2654435769u >> 16) % static_cast<uint32_t>(gap));
}
GPUSORT_HD int grid_sample_count(int tile_length, int offset, int gap) {
  return (tile_length + offset) / gap;
}
GPUSORT_HD int grid_sample_place(int sample, int offset, int gap) {
  return (sample + 1) * gap - 1 - offset;
}

// The most words of a bucket.
inline int grid_bucket_bound(const GridSortPlan& plan) {
  const int samples = (plan.samples_per_row + plan.tiles_per_row - 1) / plan.tiles_per_row;
  return std::min(samples + plan.tiles_per_row, kGridSamples + plan.tiles_per_row) * plan.gap;
}

// Sets the capacity, and how a longer bucket is cut; false where a capacity is too small for that.
inline bool set_grid_bucket_capacity(GridSortPlan& plan, int capacity) {
  const int bound = grid_bucket_bound(plan);
  plan.bucket_capacity = capacity;
  plan.piece_gap = (bound + capacity - 1) / capacity;
  plan.piece_samples = capacity / plan.piece_gap - plan.tiles_per_row;
  if (bound <= capacity) return true;
  return plan.piece_samples >= 1 && (bound / plan.piece_gap) / plan.piece_samples + 1 <= kGridMaxPieces;
}

GPUSORT_HD constexpr int grid_sort_bytes(bool wide, GridWords words, int places) {
  return words == GridWords::kExact ? grid_shared_word_bytes(wide, places) : grid_packed_bytes(wide, places);
}

namespace grid_sort_detail {

// Stand-ins take a few steps before and after. They pay where a word is 12 bytes or a thread has many, which it has twice as many of in a
// bucket: 2^17 float32 19.9 us exact, 19.2 with short buckets (H200). Keys to 16 bits have so many equal leading bits that putting them
// right would take longer.
inline GridWords words_of(const grid_sort_shapes::Shape& shape, int key_bytes) {
  if (key_bytes == 8) return GridWords::kPacked;
  if (key_bytes < 4) return GridWords::kExact;
  if (shape.items >= 4) return GridWords::kPacked;
  return shape.threads * shape.items >= 1024 ? GridWords::kPackedBuckets : GridWords::kExact;
}

inline int64_t tiles_per_row(const grid_sort_shapes::Shape& shape, int64_t length) {
  return (length + shape.threads * shape.items - 1) / (shape.threads * shape.items);
}

inline int shared_bytes(const grid_sort_shapes::Shape& shape, int key_bytes, int tiles) {
  const bool wide = key_bytes == 8;
  return grid_shared_word_bytes(wide, tiles * kGridSamples) +
         grid_sort_bytes(wide, words_of(shape, key_bytes), 2 * shape.threads * shape.items);
}

inline bool fits(const grid_sort_shapes::Shape& shape, int key_bytes, const DeviceTraits& traits) {
  return shared_bytes(shape, key_bytes, shape.max_tiles_per_row) + grid_sort_shapes::kStaticSharedBytes <= traits.shared_bytes_per_block;
}

inline bool can_run(const DeviceTraits& traits) {
  return traits.sm_count >= 1 && traits.compute_major >= 8;
}

}  // namespace grid_sort_detail

// The longest row this sort takes; 0 when it takes none.
inline int64_t grid_sort_max_length(int key_bytes, int64_t rows, const DeviceTraits& traits) {
  using namespace grid_sort_detail;
  if (rows <= 0 || !can_run(traits)) return 0;
  int64_t longest = 0;
  for (const auto& shape : grid_sort_shapes::kShapes) {
    if (!fits(shape, key_bytes, traits)) continue;
    const int64_t tiles = std::min<int64_t>(shape.max_tiles_per_row, kGridMaxTiles / rows);
    longest = std::max(longest, tiles * shape.threads * shape.items);
  }
  return longest;
}

inline GridSortPlan plan_grid_sort(const SortProblem& problem, const DeviceTraits& traits) {
  using namespace grid_sort_detail;
  GridSortPlan plan;
  const bool wide = problem.key.bytes == 8;
  if (problem.length <= 0 || problem.length > grid_sort_max_length(problem.key.bytes, problem.rows, traits)) return plan;
  // The shortest tiles that give every SM at most one; else the longest.
  const grid_sort_shapes::Shape* chosen = nullptr;
  for (const auto& shape : grid_sort_shapes::kShapes) {
    const int64_t tiles = tiles_per_row(shape, problem.length);
    if (tiles > shape.max_tiles_per_row || tiles * problem.rows > kGridMaxTiles || !fits(shape, problem.key.bytes, traits)) continue;
    chosen = &shape;
    if (tiles * problem.rows <= traits.sm_count) break;
  }
  if (chosen == nullptr) return plan;
  plan.tiles_per_row = static_cast<int>(tiles_per_row(*chosen, problem.length));
  plan.tile_length = static_cast<int>((problem.length + plan.tiles_per_row - 1) / plan.tiles_per_row);
  plan.gap = (plan.tile_length + kGridSamples - 1) / kGridSamples;
  for (int tile = 0; tile < plan.tiles_per_row; ++tile) {
    const int length =
        static_cast<int>(std::min<int64_t>(plan.tile_length, problem.length - static_cast<int64_t>(tile) * plan.tile_length));
    plan.samples_per_row += grid_sample_count(length, grid_sample_offset(tile, plan.gap), plan.gap);
  }
  plan.items = chosen->items;
  plan.words = words_of(*chosen, problem.key.bytes);
  plan.dependent_launch = traits.compute_major >= 9;
  if (!set_grid_bucket_capacity(plan, 2 * chosen->threads * chosen->items)) return plan;
  plan.shared_bytes = shared_bytes(*chosen, problem.key.bytes, plan.tiles_per_row);
  plan.shared_limit = static_cast<int>(traits.shared_bytes_per_block - grid_sort_shapes::kStaticSharedBytes);
  const int64_t tiles = plan.tiles_per_row * problem.rows;
  const int64_t by_memory = traits.shared_bytes_per_sm / (plan.shared_bytes + grid_sort_shapes::kStaticSharedBytes);
  const int64_t per_sm =
      std::max<int64_t>(1, std::min<int64_t>(grid_sort_shapes::blocks_per_sm(chosen->threads, chosen->items), by_memory));
  plan.blocks = static_cast<int>(std::min(tiles, per_sm * traits.sm_count));
  const int64_t word_bytes = wide ? 16 : 8;
  plan.samples_offset = tiles * plan.tile_length * word_bytes;
  plan.splitters_offset = plan.samples_offset + tiles * kGridSamples * word_bytes;
  plan.workspace_bytes = plan.splitters_offset + tiles * word_bytes;
  plan.threads = chosen->threads;
  return plan;
}

}  // namespace gpusort
