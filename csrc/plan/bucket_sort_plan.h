// How rows too long for one block are cut once into buckets that fit one: a pure function of (key width, rows, length, outputs, device).
//
//   samples     `samples_per_row` keys from places spread over the row; every samples / buckets-th of them in order is a splitter
//   partition   one counting read and one stable pass move every key to its bucket; work is divided into tiles of one row each
//   buckets     every bucket is sorted on chip
//
// A bucket holds s = samples / buckets samples, so for random keys its size has the Gamma distribution of shape s. It exceeds r times its
// mean with the probability that a Poisson variable of mean r * s stays below s: r = 2: 7e-4 for s = 16, 4e-6 for s = 32; r = 2.93: 1e-5
// for s = 10. What exceeds the capacity all the same is listed and sorted exactly by a slower kernel, so no input is sorted wrongly.
//
// Memory beyond the results, per element: 4 bytes of indices, the keys of an argsort, 4 * buckets / tile_length bytes of counts, and a
// spare key for buckets above the capacity unless 64-bit indices of keys to 32 bits are wanted, which leave room for it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sort_problem.h"

namespace gpusort {

constexpr int kMostBuckets = 1024;        // of a row
constexpr int kSampleChunk = 128;         // samples sorted by one warp
constexpr int kMostBucketSamples = 8192;  // of a row: a block sorts them, 16 to a thread
constexpr int64_t kMostBucketedLength = int64_t{1} << 30;

namespace bucket_sort_shapes {

struct BucketSizes {
  int capacity;
  int mean;     // aimed at
  int samples;  // of a bucket
};

// Few large buckets make the partition fast, and full ones their sorting; small ones need less shared memory, of which 64-bit keys take
// more. H200, float32 with index, partition + buckets in us: [1024, 65536], mean 1024 of 2048: 553 + 565, 2048 of 4096: 506 + 605;
// [64, 128256], 1024 of 2048: 93 + 106, 2048 of 4096: 84 + 79; [1, 2^20], 1365 of 4096: 43 + 12, 2796 of 8192: 31 + 15.
// A bucket above the capacity adds about 30 us however small the rest is: while all rows together are short it must be rare.
constexpr int64_t kFewKeys = int64_t{1} << 22;

constexpr BucketSizes bucket_sizes(int key_bytes, int64_t numel, int64_t length) {
  if (length > int64_t{1} << 20) return {8192, 4096, 16};
  if (key_bytes == 8) {
    if (numel <= kFewKeys / 2) return {4096, 1280, 8};
    return length <= int64_t{1} << 18 ? BucketSizes{2048, 1024, 16} : BucketSizes{4096, 2048, 16};
  }
  if (numel <= kFewKeys) return {8192, 2796, 10};
  return {4096, 2048, 32};
}

constexpr int64_t kShortestLength = 5600;  // of a row
constexpr int kThreads = 512;              // of a partition block
constexpr int kGroup = 4;                  // items looked up and ranked together

// Items to a thread. Long tiles write long runs; short ones give every multiprocessor some when there is little to do.
constexpr int items_of_tile(int key_bytes, bool small) {
  if (small) return 8;
  return key_bytes == 8 ? 12 : 16;
}

}  // namespace bucket_sort_shapes

// Shared memory of a partition block: counters of the warps | offsets of the buckets | splitters | staged keys | staged words.
struct PartitionLayout {
  int counter_stride = 0;  // bytes of one warp's counters of 16 bits
  int offsets = 0;
  int splitters = 0;
  int keys = 0;
  int words = 0;
  int bytes = 0;
};

GPUSORT_HD constexpr PartitionLayout partition_layout(int key_bytes, int threads, int items, int buckets, int leaves) {
  PartitionLayout layout;
  layout.counter_stride = (buckets * 2 + 15) / 16 * 16;
  layout.offsets = threads / 32 * layout.counter_stride;
  layout.splitters = layout.offsets + (buckets * 4 + 15) / 16 * 16;
  layout.keys = layout.splitters + (leaves * (key_bytes == 8 ? 8 : 4) + 15) / 16 * 16;
  layout.words = layout.keys + threads * items * key_bytes;
  layout.bytes = layout.words + threads * items * 4;
  return layout;
}

struct BucketSortPlan {
  bool possible = false;
  int buckets_per_row = 0;
  int bucket_capacity = 0;
  int levels = 0;           // of the tree of splitters: buckets_per_row <= 2^levels
  int samples_per_row = 0;  // a multiple of kSampleChunk
  int sample_blocks = 0;    // that rank the samples of one row
  int items = 0;            // to a thread of a partition block at most
  int tile_length = 0;      // a multiple of the threads
  int tiles_per_row = 0;
  int partition_shared_bytes = 0;
  int shared_limit = 0;  // one value for every launch on a device, so that concurrent callers agree
  DeviceTraits device;

  // Byte offsets into the workspace, each a multiple of 256. -1: not there.
  int64_t splitters_offset = 0;  // [row][bucket], codes; the first of a row is not used
  int64_t begins_offset = 0;     // [row][bucket + 1]
  int64_t totals_offset = 0;     // [row][bucket]
  int64_t counts_offset = 0;     // [row][tile][bucket]
  int64_t overflow_offset = 0;   // two counts of buckets that other kernels sort, and which
  int64_t keys_offset = -1;      // in buckets, when the result holds none
  int64_t indices_offset = -1;
  int64_t spare_keys_offset = -1;  // for buckets above the capacity, when the result has no room that is free until the end
  int64_t workspace_bytes = 0;
};

// What tests force: 0 is the plan's own choice.
struct BucketSortOptions {
  int capacity = 0;  // a small one sends buckets to the overflow list
  int buckets = 0;
  int samples_per_bucket = 0;  // few make uneven buckets
  int items = 0;
};

namespace bucket_sort_detail {

constexpr int64_t kStaticSharedBytes = 2048;  // the kernels' own variables and what the driver keeps of each block

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

inline int levels_of(int buckets) {
  int levels = 0;
  while ((1 << levels) < buckets) ++levels;
  return levels;
}

inline int64_t take(int64_t* used, int64_t bytes) {
  const int64_t offset = *used;
  *used += ceil_div(bytes, 256) * 256;
  return offset;
}

}  // namespace bucket_sort_detail

// Rows this sort can take. Whole keys of 16 to 64 bits only.
inline bool bucket_sort_can_run(const SortProblem& problem, const DeviceTraits& traits) {
  const int64_t shortest = bucket_sort_shapes::kShortestLength;
  return problem.whole_key() && problem.key.bytes >= 2 && problem.rows >= 1 && problem.length >= shortest &&
         problem.length <= kMostBucketedLength && traits.sm_count >= 1 && traits.compute_major >= 8 &&
         traits.shared_bytes_per_block >= 160 * 1024 && problem.numel() / shortest < (int64_t{1} << 31) / 4;
}

inline BucketSortPlan plan_bucket_sort(const SortProblem& problem, const DeviceTraits& traits, const BucketSortOptions& options = {}) {
  using namespace bucket_sort_detail;
  using namespace bucket_sort_shapes;
  BucketSortPlan plan;
  if (!bucket_sort_can_run(problem, traits)) return plan;
  const int64_t rows = problem.rows, length = problem.length;
  plan.device = traits;
  plan.shared_limit = static_cast<int>(traits.shared_bytes_per_block - kStaticSharedBytes);
  const BucketSizes sizes = bucket_sizes(problem.key.bytes, problem.numel(), length);
  plan.bucket_capacity = options.capacity > 0 ? options.capacity : sizes.capacity;

  const int64_t wanted = options.buckets > 0 ? options.buckets : ceil_div(length, sizes.mean);
  plan.buckets_per_row = static_cast<int>(std::min<int64_t>(std::max<int64_t>(wanted, 2), kMostBuckets));
  plan.levels = levels_of(plan.buckets_per_row);

  const int64_t samples_per_bucket = options.samples_per_bucket > 0 ? options.samples_per_bucket : sizes.samples;
  const int64_t samples = ceil_div(plan.buckets_per_row * samples_per_bucket, kSampleChunk) * kSampleChunk;
  plan.samples_per_row = static_cast<int>(std::min<int64_t>(samples, kMostBucketSamples));
  const int chunks = plan.samples_per_row / kSampleChunk;
  // Blocks that share a row rank their samples in every chunk; a single one merges chunks, which takes fewer steps than few blocks need.
  const int64_t blocks = std::min<int64_t>(std::max<int64_t>(traits.sm_count / rows, 1), std::min(chunks, 64));
  plan.sample_blocks = blocks * levels_of(chunks) > chunks ? static_cast<int>(blocks) : 1;

  // As few tiles as hold the row, of equal length; the short ones when the long ones would leave multiprocessors without a second block.
  const auto tiles_of = [&](int items) { return ceil_div(length, static_cast<int64_t>(kThreads) * items); };
  const bool small = rows * tiles_of(items_of_tile(problem.key.bytes, false)) < 2 * traits.sm_count;
  plan.items = options.items > 0 ? options.items : items_of_tile(problem.key.bytes, small);
  plan.tiles_per_row = static_cast<int>(tiles_of(plan.items));
  plan.tile_length = static_cast<int>(ceil_div(ceil_div(length, plan.tiles_per_row), kThreads) * kThreads);
  plan.tiles_per_row = static_cast<int>(ceil_div(length, plan.tile_length));
  plan.partition_shared_bytes = partition_layout(problem.key.bytes, kThreads, plan.items, plan.buckets_per_row, 1 << plan.levels).bytes;
  if (plan.partition_shared_bytes > plan.shared_limit || rows * plan.tiles_per_row >= (int64_t{1} << 31)) return plan;

  int64_t* used = &plan.workspace_bytes;
  const int64_t buckets = rows * plan.buckets_per_row;
  plan.splitters_offset = take(used, buckets * (problem.key.bytes == 8 ? 8 : 4));
  plan.begins_offset = take(used, (buckets + rows) * 4);
  plan.totals_offset = take(used, buckets * 4);
  plan.overflow_offset = take(used, (2 * buckets + 2) * 4);
  if (problem.keys_out == nullptr) plan.keys_offset = take(used, problem.numel() * problem.key.bytes);
  if (problem.indices_out != nullptr) plan.indices_offset = take(used, problem.numel() * 4);
  const bool results_have_room = problem.indices_out != nullptr && problem.index_bytes == 8 && problem.key.bytes <= 4;
  if (!results_have_room) plan.spare_keys_offset = take(used, problem.numel() * problem.key.bytes);
  // The partition is the last to read the counts, and spare keys are written after it.
  const int64_t counts_bytes = buckets * plan.tiles_per_row * 4;
  const bool counts_fit = plan.spare_keys_offset >= 0 && counts_bytes <= problem.numel() * problem.key.bytes;
  plan.counts_offset = counts_fit ? plan.spare_keys_offset : take(used, counts_bytes);
  plan.possible = true;
  return plan;
}

}  // namespace gpusort
