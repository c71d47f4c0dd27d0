// The grid sort of 64-bit keys.
#include "grid_sort_launch.cuh"

namespace gpusort {

cudaError_t launch_wide_grid_sort(const SortProblem& problem, const GridSortPlan& plan, void* workspace, cudaStream_t stream) {
  return launch_grid_sort_words<WideWord>(problem, plan, workspace, stream);
}

}  // namespace gpusort
