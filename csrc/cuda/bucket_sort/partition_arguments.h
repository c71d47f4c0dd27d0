// What the kernels that cut rows into buckets are given, and their launcher.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

#include "../../core/key_order.h"
#include "../../plan/bucket_sort_plan.h"
#include "bucket_arguments.h"
#include "sample_seed.h"

namespace gpusort {

// Codes as integers of 32 or 64 bits: what kernels compute with.
template <class U>
using BucketCode = std::conditional_t<sizeof(U) == 8, uint64_t, uint32_t>;

template <class U>
struct PartitionArguments {
  KeyOrder<U> order;
  const U* keys_in = nullptr;
  U* keys_to = nullptr;            // [row][length], in buckets
  uint32_t* indices_to = nullptr;  // the same; null: not wanted
  BucketCode<U>* splitters = nullptr;
  uint32_t* begins = nullptr;
  uint32_t* totals = nullptr;
  uint32_t* counts = nullptr;  // of each tile; then where in the row the tile's part of each bucket goes
  uint32_t* overflow = nullptr;
  uint32_t rows = 0;
  uint32_t length = 0;
  uint32_t tiles_per_row = 0;
  uint32_t tile_length = 0;
  int buckets = 0;
  int levels = 0;
  int samples = 0;        // of a row
  int sample_blocks = 0;  // of a row
  uint32_t sample_seed = 0;
  uint64_t sample_step = 0;  // keys of the row to a run of samples, in units of 2^-32
};

// What every plan of this folder says: how rows are cut, and where splitters and the places of buckets are in the workspace.
template <class U, class Plan>
PartitionArguments<U> begin_partition_arguments(const SortProblem& problem, const Plan& plan, void* workspace) {
  char* const base = static_cast<char*>(workspace);
  PartitionArguments<U> arguments;
  arguments.order = problem.key.order<U>(problem.descending);
  arguments.keys_in = static_cast<const U*>(problem.keys_in);
  arguments.splitters = reinterpret_cast<BucketCode<U>*>(base + plan.splitters_offset);
  arguments.begins = reinterpret_cast<uint32_t*>(base + plan.begins_offset);
  arguments.overflow = reinterpret_cast<uint32_t*>(base + plan.overflow_offset);
  arguments.rows = static_cast<uint32_t>(problem.rows);
  arguments.length = static_cast<uint32_t>(problem.length);
  arguments.tiles_per_row = plan.tiles_per_row;
  arguments.tile_length = plan.tile_length;
  arguments.buckets = plan.buckets_per_row;
  arguments.levels = plan.levels;
  arguments.sample_seed = fresh_sample_seed();
  return arguments;
}

// Where keys and positions go, and the counts of the tiles. Keys go to the problem's results where it has room for them.
template <class U, class Plan>
void set_partition_outputs(PartitionArguments<U>& arguments, const SortProblem& problem, const Plan& plan, void* workspace) {
  char* const base = static_cast<char*>(workspace);
  arguments.keys_to = plan.keys_offset < 0 ? static_cast<U*>(problem.keys_out) : reinterpret_cast<U*>(base + plan.keys_offset);
  if (plan.indices_offset >= 0) arguments.indices_to = reinterpret_cast<uint32_t*>(base + plan.indices_offset);
  arguments.counts = reinterpret_cast<uint32_t*>(base + plan.counts_offset);
}

// Samples that are drawn from the whole row by a kernel of their own.
template <class U, class Plan>
void set_row_samples(PartitionArguments<U>& arguments, const Plan& plan) {
  arguments.samples = plan.samples_per_row;
  arguments.sample_blocks = plan.sample_blocks;
  arguments.sample_step = (static_cast<uint64_t>(arguments.length) << 32) / static_cast<uint64_t>(plan.samples_per_row);
}

template <class U>
PartitionArguments<U> make_partition_arguments(const SortProblem& problem, const BucketSortPlan& plan, void* workspace) {
  PartitionArguments<U> arguments = begin_partition_arguments<U>(problem, plan, workspace);
  set_partition_outputs(arguments, problem, plan, workspace);
  set_row_samples(arguments, plan);
  arguments.totals = reinterpret_cast<uint32_t*>(static_cast<char*>(workspace) + plan.totals_offset);
  return arguments;
}

// The buckets as any of these plans cuts them; where their keys and positions lie is the caller's to say.
template <class U, class Plan>
BucketArguments<U> begin_bucket_arguments(const SortProblem& problem, const PartitionArguments<U>& partition, const Plan& plan) {
  BucketArguments<U> buckets = make_bucket_arguments<U>(problem);
  buckets.begins = partition.begins;
  buckets.buckets_per_row = plan.buckets_per_row;
  buckets.bucket_capacity = plan.bucket_capacity;
  buckets.overflow = partition.overflow;
  return buckets;
}

// The buckets as a partition that wrote keys and positions leaves them.
template <class U, class Plan>
BucketArguments<U> make_partitioned_buckets(const SortProblem& problem, const PartitionArguments<U>& partition, const Plan& plan,
                                            void* workspace) {
  BucketArguments<U> buckets = begin_bucket_arguments(problem, partition, plan);
  buckets.keys = partition.keys_to;
  buckets.indices = partition.indices_to;
  if (plan.spare_keys_offset >= 0) buckets.spare_keys = reinterpret_cast<U*>(static_cast<char*>(workspace) + plan.spare_keys_offset);
  return buckets;
}

// Splitters, counts, positions and the partition itself.
template <class U>
cudaError_t launch_partition(const PartitionArguments<U>& arguments, const BucketSortPlan& plan, cudaStream_t stream);

template <>
cudaError_t launch_partition<uint16_t>(const PartitionArguments<uint16_t>&, const BucketSortPlan&, cudaStream_t);
template <>
cudaError_t launch_partition<uint32_t>(const PartitionArguments<uint32_t>&, const BucketSortPlan&, cudaStream_t);
template <>
cudaError_t launch_partition<uint64_t>(const PartitionArguments<uint64_t>&, const BucketSortPlan&, cudaStream_t);

}  // namespace gpusort
