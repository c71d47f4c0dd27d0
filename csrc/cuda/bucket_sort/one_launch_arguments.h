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
  OneLaunchArguments<U> arguments;
  arguments.samples = reinterpret_cast<BucketCode<U>*>(base + plan.samples_offset);
  arguments.group_counts = reinterpret_cast<uint32_t*>(base + plan.group_counts_offset);
  arguments.groups_per_row = plan.groups_per_row;
  arguments.partition = begin_partition_arguments<U>(problem, plan, workspace);
  set_partition_outputs(arguments.partition, problem, plan, workspace);
  arguments.buckets = make_partitioned_buckets(problem, arguments.partition, plan, workspace);
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
