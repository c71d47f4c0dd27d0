// Sample sort in one partition that is never written out: tiles are ordered by bucket where they lie, and buckets pull their parts of all.
//
//   splitters   choose_splitters.cuh or many_samples.cuh
//   tiles       order_tiles.cuh   reads the keys, writes them and their 16-bit places
//   buckets     pulled_rows.cuh   reads those, writes the results in place
//
// Stable because every step is: tiles keep the order of equal keys, a bucket's parts stand in the order of tiles, and the bucket's sort is
// stable. The data is read and written twice. Sources: Leischner, Osipov, Sanders, "GPU sample sort" (2010); sorting tiles and then
// gathering from them is how sample sort works on distributed memory (Shi, Schaeffer, "Parallel sorting by regular sampling", 1992).
#include "pulled_buckets.h"

#include "pulled_arguments.h"

namespace gpusort {

cudaError_t launch_pulled_bucket_sort(const SortProblem& problem, const PulledBucketsPlan& plan, void* workspace, cudaStream_t stream) {
  if (problem.numel() == 0) return cudaSuccess;
  if (!plan.possible) return cudaErrorInvalidValue;
  return problem.key.bytes == 8 ? launch_pulled_rows<uint64_t>(problem, plan, workspace, stream)
                                : launch_pulled_rows<uint32_t>(problem, plan, workspace, stream);
}

}  // namespace gpusort
