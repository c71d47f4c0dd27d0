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
//
// Of 32-bit keys, tiles need not be sorted: the splitters are every kGridPartitionSamples-th of as many keys to a bucket, taken at places
// that a hash spreads over the row. Buckets of any input are then as long as if the keys were random (standard deviation 25 %, one of 128
// above kGridPartitionMost times the mean in 3 calls of 10^6), unless it was made with the hash in mind. Either way a longer one makes all
// blocks sort by sorted tiles after all.
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
constexpr int64_t kGridLentAlignment = 16;

// What blocks sort: (code, index) words as they are, or 32-bit stand-ins.
enum class GridWords { kExact, kPackedBuckets, kPacked };

struct GridSortPlan {
  bool by_partition = false;  // tiles are partitioned by samples, not sorted; everything is laid out for both
  int threads = 0;            // to a block; 0: not for this kernel
  int items = 0;              // words to a thread in a tile; a bucket may have twice as many
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
  int shared_limit = 0;  // one value for every launch on a device, so that concurrent callers agree
  // In bytes. The words are at the beginning of the workspace. Samples and table lie in the index output, or else in the key output,
  // where there is room: all have read them when the first result is written.
  bool in_results = false;
  int64_t samples_offset = 0;
  int64_t table_offset = 0;      // by_partition
  int64_t splitters_offset = 0;  // in the workspace
  int64_t overflow_offset = 0;
  uint64_t sample_step = 0;  // between samples, times 2^32
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

// By partition, at most a tile to an SM: long tiles, since every block sorts as many samples as there are buckets. Single float32 arrays on
// an H200, in a graph, against sorted tiles: 2^13 8.3 us, 2^14 8.5 (11.3), 2^15 9.2 (13.4), 2^16 10.4 (16.2; as 512 x 1 11.7), 2^17 12.7
// (19.6), 2^18 16.0 (25.6); 2^17 equal keys 17.6 (20.2), two values 26.2 (20.8).
constexpr Shape kPartitionShapes[] = {{512, 1, 64}, {512, 2, 128}, {512, 4, 128}};
constexpr int64_t kPartitionMinNumel = 6144;

// By registers: 64 a thread for the longest tiles, of which an SM gets several, else 128.
GPUSORT_HD constexpr int blocks_per_sm(int threads, int items) {
  return items >= 4 ? 1024 / threads : 512 / threads;
}

constexpr int64_t kStaticSharedBytes = 5120;  // the kernel's own variables and what the driver keeps of each block
constexpr int64_t kPartitionStaticSharedBytes = 8192;

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

// By partition: samples to a bucket, and how long a bucket may be, in tiles.
constexpr int kGridPartitionSamples = 16;
constexpr int kGridPartitionMost = 3;

GPUSORT_HD uint32_t grid_partition_sample_place(uint32_t sample, uint64_t step) {
  const uint64_t hash = static_cast<uint32_t>((sample + 1) * 2654435769u);
  return static_cast<uint32_t>(sample * step >> 32) + static_cast<uint32_t>(hash * (step >> 32) >> 32);
}
GPUSORT_HD constexpr int grid_partition_sample_items(int threads) {
  return kGridMaxTilesPerRow * kGridPartitionSamples / threads;
}
GPUSORT_HD constexpr int grid_partition_most_items(int threads, int items) {
  return kGridPartitionMost * items > grid_partition_sample_items(threads) ? kGridPartitionMost * items
                                                                           : grid_partition_sample_items(threads);
}
GPUSORT_HD constexpr int grid_partition_bin_items(int items) {
  return items <= 2 ? 4 : 8;
}
// Words, bins and places (cuda/grid_sort/grid_spread.cuh).
GPUSORT_HD constexpr int grid_spread_bytes(int threads, int items) {
  const int most = grid_partition_most_items(threads, items);
  return (threads * most + 2) * 8 + (threads * grid_partition_bin_items(items) + 4) * 4 + (threads * ((most + 3) / 4 * 4) + 4) * 4;
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

// The same for sorting by partition, and by tiles if need be.
inline int partition_shared_bytes(const grid_sort_shapes::Shape& shape, int tiles) {
  const int places = shape.threads * grid_partition_most_items(shape.threads, shape.items);
  const int by_tiles = grid_shared_word_bytes(false, tiles * kGridSamples) +
                       grid_sort_bytes(false, GridWords::kPackedBuckets, 2 * shape.threads * shape.items);
  return std::max({grid_spread_bytes(shape.threads, shape.items), grid_shared_word_bytes(false, places), by_tiles});
}

inline const grid_sort_shapes::Shape* partition_shape(const SortProblem& problem, const DeviceTraits& traits) {
  if (problem.key.bytes != 4 || problem.numel() < grid_sort_shapes::kPartitionMinNumel) return nullptr;
  for (const auto& shape : grid_sort_shapes::kPartitionShapes) {
    const int64_t tiles = tiles_per_row(shape, problem.length);
    if (tiles < 2 || tiles > shape.max_tiles_per_row || tiles * problem.rows > traits.sm_count) continue;
    if (partition_shared_bytes(shape, static_cast<int>(tiles)) + grid_sort_shapes::kPartitionStaticSharedBytes >
        traits.shared_bytes_per_block) {
      continue;
    }
    return &shape;
  }
  return nullptr;
}

inline void set_memory(const SortProblem& problem, int64_t tiles, GridSortPlan& plan) {
  const int64_t word_bytes = problem.key.bytes == 8 ? 16 : 8;
  const int64_t samples = tiles * kGridSamples * word_bytes, table = plan.by_partition ? tiles * plan.tiles_per_row * 4 : 0;
  const int64_t results = problem.numel() * (problem.indices_out != nullptr ? problem.index_bytes : problem.key.bytes);
  // Where a block has tiles of several rows it reads samples of one when others write results.
  plan.in_results = (problem.rows == 1 || tiles <= plan.blocks) && samples + table + kGridLentAlignment <= results;
  plan.splitters_offset = tiles * plan.tile_length * word_bytes;
  plan.overflow_offset = plan.splitters_offset + tiles * word_bytes;
  plan.samples_offset = plan.in_results ? 0 : (plan.overflow_offset + 4 + word_bytes - 1) / word_bytes * word_bytes;
  plan.table_offset = plan.samples_offset + samples;
  plan.workspace_bytes = plan.in_results ? plan.overflow_offset + 4 : plan.table_offset + table;
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
  if (const grid_sort_shapes::Shape* partition = partition_shape(problem, traits)) {
    chosen = partition;
    plan.by_partition = true;
  }
  plan.tiles_per_row = static_cast<int>(tiles_per_row(*chosen, problem.length));
  plan.tile_length = static_cast<int>((problem.length + plan.tiles_per_row - 1) / plan.tiles_per_row);
  plan.gap = (plan.tile_length + kGridSamples - 1) / kGridSamples;
  for (int tile = 0; tile < plan.tiles_per_row; ++tile) {
    const int length =
        static_cast<int>(std::min<int64_t>(plan.tile_length, problem.length - static_cast<int64_t>(tile) * plan.tile_length));
    plan.samples_per_row += grid_sample_count(length, grid_sample_offset(tile, plan.gap), plan.gap);
  }
  plan.items = chosen->items;
  plan.words = plan.by_partition ? GridWords::kPackedBuckets : words_of(*chosen, problem.key.bytes);
  if (!set_grid_bucket_capacity(plan, 2 * chosen->threads * chosen->items)) return plan;
  plan.shared_bytes = plan.by_partition ? partition_shared_bytes(*chosen, plan.tiles_per_row)
                                        : shared_bytes(*chosen, problem.key.bytes, plan.tiles_per_row);
  plan.shared_limit = static_cast<int>(traits.shared_bytes_per_block - (plan.by_partition ? grid_sort_shapes::kPartitionStaticSharedBytes
                                                                                          : grid_sort_shapes::kStaticSharedBytes));
  const int64_t tiles = plan.tiles_per_row * problem.rows;
  const int64_t by_memory = traits.shared_bytes_per_sm / (plan.shared_bytes + grid_sort_shapes::kStaticSharedBytes);
  const int64_t per_sm =
      std::max<int64_t>(1, std::min<int64_t>(grid_sort_shapes::blocks_per_sm(chosen->threads, chosen->items), by_memory));
  plan.blocks = static_cast<int>(std::min(tiles, per_sm * traits.sm_count));
  if (plan.by_partition) {
    plan.blocks = static_cast<int>(tiles);
    plan.sample_step = (static_cast<uint64_t>(problem.length) << 32) / static_cast<uint64_t>(plan.tiles_per_row * kGridPartitionSamples);
  }
  set_memory(problem, tiles, plan);
  plan.threads = chosen->threads;
  return plan;
}

}  // namespace gpusort
