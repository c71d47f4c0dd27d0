// What the kernels of the bucket sort are given where buckets pull their keys from ordered tiles, and its launchers by key width.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "../../plan/pulled_buckets_plan.h"
#include "bucket_arguments.h"
#include "partition_arguments.h"

namespace gpusort {

// A value that is found so often that it fills several buckets lies in the last of them alone (splitter_tree.cuh); its keys are divided
// among all. A word of `shares`: 0, or kOneCode | the first bucket after these << 15 | the first of them.
constexpr uint32_t kOneCode = 1u << 31;
constexpr int kShareBits = 15;
static_assert(kMostBuckets < 1 << kShareBits, "");

template <class U>
struct PulledArguments {
  PartitionArguments<U> partition;   // `keys_to` are the tiles' ordered keys, [row][row_stride]; `counts` is not used
  BucketArguments<U> buckets;        // as other kernels find the buckets that are left to them
  BucketCode<U>* samples = nullptr;  // [row][sample], where they are sorted in runs
  uint16_t* tile_places = nullptr;   // [row][row_stride]: of the ordered keys, before, in their tile
  uint32_t* starts = nullptr;        // [row][tile][pair of buckets]: how many keys of the tile lie in buckets before, 16 bits to each
  uint32_t* shares = nullptr;        // [row][bucket]: see kOneCode
  int64_t row_stride = 0;
  int pairs = 0;      // of buckets
  int run_lanes = 0;  // that a part of a tile is given
};

template <class U>
PulledArguments<U> make_pulled_arguments(const SortProblem& problem, const PulledBucketsPlan& plan, void* workspace) {
  char* const base = static_cast<char*>(workspace);
  const auto words = [&](int64_t offset) { return reinterpret_cast<uint32_t*>(base + offset); };
  PulledArguments<U> arguments;
  arguments.samples = reinterpret_cast<BucketCode<U>*>(base + plan.samples_offset);
  arguments.tile_places = reinterpret_cast<uint16_t*>(base + plan.tile_places_offset);
  arguments.starts = words(plan.starts_offset);
  arguments.shares = words(plan.shares_offset);
  arguments.row_stride = pulled_shapes::row_stride(problem.length);
  arguments.pairs = plan.pairs();
  arguments.run_lanes = plan.run_lanes;

  PartitionArguments<U>& partition = arguments.partition;
  partition.order = problem.key.order<U>(problem.descending);
  partition.keys_in = static_cast<const U*>(problem.keys_in);
  partition.keys_to = reinterpret_cast<U*>(base + plan.tile_keys_offset);
  partition.splitters = reinterpret_cast<BucketCode<U>*>(base + plan.splitters_offset);
  partition.begins = words(plan.begins_offset);
  partition.totals = partition.begins;  // cleared by a kernel that both forms share, and not used
  partition.overflow = words(plan.overflow_offset);
  partition.rows = static_cast<uint32_t>(problem.rows);
  partition.length = static_cast<uint32_t>(problem.length);
  partition.tiles_per_row = plan.tiles_per_row;
  partition.tile_length = plan.tile_length;
  partition.buckets = plan.buckets_per_row;
  partition.levels = plan.levels;
  partition.samples = plan.samples_per_row;
  partition.sample_blocks = plan.sample_blocks;
  partition.sample_seed = fresh_sample_seed();
  partition.sample_step = (static_cast<uint64_t>(problem.length) << 32) / static_cast<uint64_t>(plan.samples_per_row);

  BucketArguments<U>& buckets = arguments.buckets;
  buckets = make_bucket_arguments<U>(problem);
  buckets.keys = static_cast<const U*>(problem.keys_out);
  buckets.indices_in_result = true;
  buckets.begins = partition.begins;
  buckets.buckets_per_row = plan.buckets_per_row;
  buckets.bucket_capacity = plan.bucket_capacity;
  buckets.overflow = partition.overflow;
  buckets.spare_keys = reinterpret_cast<U*>(base + plan.tile_keys_offset);
  return arguments;
}

// U is uint32_t or uint64_t.
template <class U>
cudaError_t launch_pulled_rows(const SortProblem& problem, const PulledBucketsPlan& plan, void* workspace, cudaStream_t stream);

template <>
cudaError_t launch_pulled_rows<uint32_t>(const SortProblem&, const PulledBucketsPlan&, void*, cudaStream_t);
template <>
cudaError_t launch_pulled_rows<uint64_t>(const SortProblem&, const PulledBucketsPlan&, void*, cudaStream_t);

}  // namespace gpusort
