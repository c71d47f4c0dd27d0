// How the bucket sort runs when buckets pull their keys from tiles that are ordered where they lie: a pure function of (key width, rows,
// length, outputs, device).
//
//   samples   of every row; those of the right ranks are splitters
//   tiles     every tile is ordered by bucket, in one read of the keys, and a table says where its parts begin
//   buckets   a block pulls its bucket's parts from all tiles of the row and sorts them on chip
//
// Next to plan/bucket_sort_plan.h there is no counting read, no scan of counts, and what a tile writes is one run. A bucket holds s
// samples, and its capacity is twice the mean, so s = 32 makes it exceed that in 4 of a million cases (see there);
// where samples have no room, s is at least 24.
//
// Memory beyond the results, per element: a key, two bytes of place in the tile where indices are wanted, and 2 * buckets / tile_length
// bytes of tables.
#pragma once

#include <algorithm>
#include <cstdint>

#include "bucket_shape.h"
#include "bucket_sort_plan.h"
#include "sort_problem.h"

namespace gpusort {

namespace pulled_shapes {

constexpr int kThreads = bucket_sort_shapes::kThreads;
constexpr int kMostTiles = 1024;  // of a row

// Keys to a thread of a tile.
GPUSORT_HD constexpr int items_of(int key_bytes) {
  return key_bytes == 8 ? 8 : 16;
}

// Where there are more samples than kMostBucketSamples, a block sorts kSampleRun of them, and one that ranks some looks through all.
constexpr int kSampleRun = 1024;
constexpr int64_t kRankStaticBytes = 8192;  // the ranking kernel's own variables and what the driver keeps of each block
constexpr int kLeastSamples = 24;           // of a bucket

// Of a bucket, twice the mean. Large ones make long parts, small ones fill the SMs better.
inline int capacity_of(int key_bytes, int64_t length) {
  return key_bytes == 4 && length > int64_t{1} << 20 ? 8192 : 4096;
}

// Rows of tile_keys and tile_places begin at multiples of 16 bytes.
GPUSORT_HD constexpr int64_t row_stride(int64_t length) {
  return (length + 7) / 8 * 8;
}

}  // namespace pulled_shapes

struct PulledBucketsPlan {
  bool possible = false;
  int buckets_per_row = 0;
  int bucket_capacity = 0;
  int levels = 0;           // of the tree of splitters
  int samples_per_row = 0;  // a multiple of kSampleChunk; above kMostBucketSamples of kSampleRun
  int sample_blocks = 0;    // that rank the samples of one row
  int sample_shared_limit = 0;
  int tile_length = 0;  // a multiple of the threads
  int tiles_per_row = 0;
  int run_lanes = 0;  // that copy the part of one tile, a power of two
  int tile_shared_bytes = 0;
  int shared_limit = 0;  // one value for every launch on a device, so that concurrent callers agree
  DeviceTraits device;

  // Byte offsets into the workspace, each a multiple of 256.
  int64_t splitters_offset = 0;    // [row][bucket], codes; the first of a row is not used
  int64_t begins_offset = 0;       // [row][bucket + 1]
  int64_t overflow_offset = 0;     // two counts of buckets that other kernels sort, and which
  int64_t shares_offset = 0;       // [row][bucket]
  int64_t starts_offset = 0;       // [row][tile][pair of buckets], 16 bits to each
  int64_t tile_keys_offset = 0;    // [row][row_stride]
  int64_t tile_places_offset = 0;  // the same, 16 bits to each; -1 for keys alone
  int64_t samples_offset = 0;      // [row][sample], codes in runs, in the place of tile_keys
  int64_t workspace_bytes = 0;

  bool indexed() const { return tile_places_offset >= 0; }
  int pairs() const { return (buckets_per_row + 1) / 2; }
};

// Rows of at least two tiles whose buckets fit a block. Keys and 64-bit indices are wanted, or keys alone: what other kernels sort lies in
// them before.
inline PulledBucketsPlan plan_pulled_buckets(const SortProblem& problem, const DeviceTraits& traits,
                                             const BucketSortOptions& options = {}) {
  using namespace bucket_sort_detail;
  using namespace pulled_shapes;
  PulledBucketsPlan plan;
  const int key_bytes = problem.key.bytes;
  const bool indexed = problem.indices_out != nullptr;
  if (!bucket_sort_can_run(problem, traits) || key_bytes < 4 || problem.keys_out == nullptr || (indexed && problem.index_bytes != 8)) {
    return plan;
  }
  const int64_t rows = problem.rows, length = problem.length;
  plan.device = traits;
  plan.bucket_capacity = options.capacity > 0 ? options.capacity : capacity_of(key_bytes, length);
  const int64_t mean = plan.bucket_capacity / 2;
  const int64_t wanted = options.buckets > 0 ? options.buckets : ceil_div(length, mean);
  if (wanted > kMostBuckets) return plan;
  plan.buckets_per_row = static_cast<int>(std::max<int64_t>(wanted, 2));
  plan.levels = levels_of(plan.buckets_per_row);

  const int64_t samples = int64_t{plan.buckets_per_row} * (options.samples_per_bucket > 0 ? options.samples_per_bucket : 32);
  const int64_t chunk = samples > kMostBucketSamples ? kSampleRun : kSampleChunk;
  plan.sample_shared_limit = static_cast<int>(traits.shared_bytes_per_block - kRankStaticBytes);
  const int64_t most = plan.sample_shared_limit / (chunk * key_bytes);
  plan.samples_per_row = static_cast<int>(std::min(ceil_div(samples, chunk), most) * chunk);
  if (options.samples_per_bucket == 0 && plan.samples_per_row < kLeastSamples * plan.buckets_per_row) return plan;
  if (plan.samples_per_row > kMostBucketSamples) {
    plan.sample_blocks = static_cast<int>(std::min<int64_t>(std::max<int64_t>(traits.sm_count / rows, 1), plan.samples_per_row / 256));
  } else {
    const int chunks = plan.samples_per_row / kSampleChunk;
    const int64_t blocks = std::min<int64_t>(std::max<int64_t>(traits.sm_count / rows, 1), std::min(chunks, 64));
    plan.sample_blocks = blocks * levels_of(chunks) > chunks ? static_cast<int>(blocks) : 1;
  }

  // As few tiles as hold the row, of equal length; short ones of few keys give every multiprocessor two.
  const int items = items_of(key_bytes);
  const bool few = rows * length < int64_t{3} * traits.sm_count * kThreads * items / 2;
  const int64_t longest = int64_t{kThreads} * (few ? items / 2 : items);
  if (ceil_div(length, longest) > kMostTiles) return plan;
  plan.tile_length = static_cast<int>(ceil_div(ceil_div(length, ceil_div(length, longest)), kThreads) * kThreads);
  plan.tiles_per_row = static_cast<int>(ceil_div(length, plan.tile_length));
  if (rows * plan.tiles_per_row >= (int64_t{1} << 31)) return plan;
  const int mean_run = plan.tile_length / plan.buckets_per_row;
  plan.run_lanes = mean_run >= 64 ? 32 : mean_run >= 24 ? 16 : 8;
  plan.tile_shared_bytes = partition_layout(key_bytes, kThreads, items, plan.buckets_per_row, 1 << plan.levels).bytes;
  plan.shared_limit = static_cast<int>(std::min(traits.shared_bytes_per_sm / 2, traits.shared_bytes_per_block) - kStaticSharedBytes);
  if (plan.tile_shared_bytes > plan.shared_limit) return plan;

  int64_t* used = &plan.workspace_bytes;
  const int64_t buckets = rows * plan.buckets_per_row, code_bytes = key_bytes;
  plan.splitters_offset = take(used, buckets * code_bytes);
  plan.begins_offset = take(used, (buckets + rows) * 4);
  plan.overflow_offset = take(used, bucket_overflow_words(rows, plan.buckets_per_row) * 4);
  plan.shares_offset = take(used, buckets * 4);
  plan.starts_offset = take(used, rows * plan.tiles_per_row * plan.pairs() * 4);
  plan.tile_keys_offset = take(used, rows * std::max<int64_t>(row_stride(length), plan.samples_per_row) * key_bytes);
  plan.tile_places_offset = indexed ? take(used, rows * row_stride(length) * 2) : -1;
  plan.samples_offset = plan.tile_keys_offset;
  plan.possible = true;
  return plan;
}

}  // namespace gpusort
