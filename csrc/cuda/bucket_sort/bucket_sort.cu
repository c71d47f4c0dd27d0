// Sample sort in one partition: rows are cut into buckets that fit a block, which are then sorted like short rows.
//
//   splitters   choose_splitters.cuh  samples of each row, ranked
//   count       count_buckets.cuh     reads the keys
//   positions   count_buckets.cuh
//   partition   partition.cuh         reads the keys, writes keys and 32-bit positions, stable
//   buckets     bucket_rows.cuh       reads those, writes the results in place
//
// Stable because every step is: equal keys are in one bucket in the order of the row, and the bucket's sort is stable. The data is read
// three times and written twice, where four passes of a radix sort read it five times and write it four times. Source: Leischner, Osipov,
// Sanders, "GPU sample sort" (2010).
#include "bucket_sort.h"

#include "bucket_arguments.h"
#include "partition_arguments.h"

namespace gpusort {
namespace {

template <class U>
cudaError_t sort_rows_of(const SortProblem& problem, const BucketSortPlan& plan, void* workspace, cudaStream_t stream) {
  const PartitionArguments<U> partition = make_partition_arguments<U>(problem, plan, workspace);
  const cudaError_t error = launch_partition(partition, plan, stream);
  if (error != cudaSuccess) return error;
  return launch_bucket_rows(make_partitioned_buckets(problem, partition, plan, workspace), plan.device, stream);
}

}  // namespace

cudaError_t launch_bucket_sort(const SortProblem& problem, const BucketSortPlan& plan, void* workspace, cudaStream_t stream) {
  if (problem.numel() == 0 || (!problem.keys_out && !problem.indices_out)) return cudaSuccess;
  if (!plan.possible) return cudaErrorInvalidValue;
  switch (problem.key.bytes) {
    case 2: return sort_rows_of<uint16_t>(problem, plan, workspace, stream);
    case 4: return sort_rows_of<uint32_t>(problem, plan, workspace, stream);
    case 8: return sort_rows_of<uint64_t>(problem, plan, workspace, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace gpusort
