// What the bucket sort with its partition in one launch is given, and its launchers by key width.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "../../plan/one_launch_plan.h"
#include "bucket_arguments.h"
#include "partition_arguments.h"

namespace gpusort {

template <class U>
struct OneLaunchArguments {
  PartitionArguments<U> partition;   // `counts` is [row][tile][pair of buckets]; tile_length is the longest tile's
  BucketArguments<U> buckets;        // as the partition leaves them
  BucketCode<U>* samples = nullptr;  // [row][tile][sample], each tile's in order
  uint32_t* group_counts = nullptr;  // [row][group of tiles][bucket], an even number of buckets
  uint32_t groups_per_row = 0;
};

template <class U>
OneLaunchArguments<U> make_one_launch_arguments(const SortProblem& problem, const OneLaunchPlan& plan, void* workspace) {
  char* const base = static_cast<char*>(workspace);
  const auto words = [&](int64_t offset) { return reinterpret_cast<uint32_t*>(base + offset); };
  OneLaunchArguments<U> arguments;
  arguments.samples = reinterpret_cast<BucketCode<U>*>(base + plan.samples_offset);
  arguments.group_counts = words(plan.group_counts_offset);
  arguments.groups_per_row = plan.groups_per_row;

  PartitionArguments<U>& partition = arguments.partition;
  partition.order = problem.key.order<U>(problem.descending);
  partition.keys_in = static_cast<const U*>(problem.keys_in);
  partition.keys_to = plan.keys_offset < 0 ? static_cast<U*>(problem.keys_out) : reinterpret_cast<U*>(base + plan.keys_offset);
  partition.indices_to = words(plan.indices_offset);
  partition.splitters = reinterpret_cast<BucketCode<U>*>(base + plan.splitters_offset);
  partition.begins = words(plan.begins_offset);
  partition.counts = words(plan.counts_offset);
  partition.overflow = words(plan.overflow_offset);
  partition.rows = static_cast<uint32_t>(problem.rows);
  partition.length = static_cast<uint32_t>(problem.length);
  partition.tiles_per_row = plan.tiles_per_row;
  partition.tile_length = plan.tile_length;
  partition.buckets = plan.buckets_per_row;
  partition.levels = plan.levels;
  partition.sample_seed = fresh_sample_seed();

  BucketArguments<U>& buckets = arguments.buckets;
  buckets = make_bucket_arguments<U>(problem);
  buckets.keys = partition.keys_to;
  buckets.indices = partition.indices_to;
  buckets.begins = partition.begins;
  buckets.buckets_per_row = plan.buckets_per_row;
  buckets.bucket_capacity = plan.bucket_capacity;
  buckets.overflow = partition.overflow;
  if (plan.spare_keys_offset >= 0) buckets.spare_keys = reinterpret_cast<U*>(base + plan.spare_keys_offset);
  return arguments;
}

// U is uint32_t or uint64_t.
template <class U>
cudaError_t launch_one_launch_rows(const SortProblem& problem, const OneLaunchPlan& plan, void* workspace, cudaStream_t stream);

template <>
cudaError_t launch_one_launch_rows<uint32_t>(const SortProblem&, const OneLaunchPlan&, void*, cudaStream_t);
template <>
cudaError_t launch_one_launch_rows<uint64_t>(const SortProblem&, const OneLaunchPlan&, void*, cudaStream_t);

}  // namespace gpusort
