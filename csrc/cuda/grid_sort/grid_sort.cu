// Entry of the one-launch grid sort: by key width.
#include "grid_sort.h"

#include "grid_sort_launch.cuh"

namespace gpusort {

cudaError_t launch_grid_sort(const SortProblem& problem, const GridSortPlan& plan, void* workspace, cudaStream_t stream) {
  if (problem.rows <= 0 || problem.length <= 0 || (!problem.keys_out && !problem.indices_out)) return cudaSuccess;
  if (plan.threads == 0) return cudaErrorInvalidValue;
  if (plan.by_partition) return launch_grid_partition(problem, plan, workspace, stream);
  return problem.key.bytes == 8 ? launch_wide_grid_sort(problem, plan, workspace, stream)
                                : launch_narrow_grid_sort(problem, plan, workspace, stream);
}

}  // namespace gpusort
