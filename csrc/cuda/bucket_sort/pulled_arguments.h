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
  uint16_t* tile_places = nullptr;   // [row][row_stride]: of the ordered keys, before, in their tile; null for keys alone
  uint32_t* starts = nullptr;        // [row][tile][pair of buckets]: how many keys of the tile lie in buckets before, 16 bits to each
  uint32_t* shares = nullptr;        // [row][bucket]: see kOneCode
  int64_t row_stride = 0;
  int pairs = 0;      // of buckets
  int run_lanes = 0;  // that a part of a tile is given
};

template <class U>
PulledArguments<U> make_pulled_arguments(const SortProblem& problem, const PulledBucketsPlan& plan, void* workspace) {
  char* const base = static_cast<char*>(workspace);
  PulledArguments<U> arguments;
  arguments.samples = reinterpret_cast<BucketCode<U>*>(base + plan.samples_offset);
  if (plan.indexed()) arguments.tile_places = reinterpret_cast<uint16_t*>(base + plan.tile_places_offset);
  arguments.starts = reinterpret_cast<uint32_t*>(base + plan.starts_offset);
  arguments.shares = reinterpret_cast<uint32_t*>(base + plan.shares_offset);
  arguments.row_stride = pulled_shapes::row_stride(problem.length);
  arguments.pairs = plan.pairs();
  arguments.run_lanes = plan.run_lanes;

  PartitionArguments<U>& partition = arguments.partition;
  partition = begin_partition_arguments<U>(problem, plan, workspace);
  set_row_samples(partition, plan);
  partition.keys_to = reinterpret_cast<U*>(base + plan.tile_keys_offset);
  partition.totals = partition.begins;  // cleared by a kernel that both forms share, and not used

  BucketArguments<U>& buckets = arguments.buckets;
  buckets = begin_bucket_arguments(problem, partition, plan);
  buckets.keys = static_cast<const U*>(problem.keys_out);
  buckets.indices_in_result = plan.indexed();
  buckets.spare_keys = partition.keys_to;
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
