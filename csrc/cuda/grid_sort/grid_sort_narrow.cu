// The grid sort of 8-, 16- and 32-bit keys.
#include "grid_sort_launch.cuh"

namespace gpusort {

cudaError_t launch_narrow_grid_sort(const SortProblem& problem, const GridSortPlan& plan, void* workspace, cudaStream_t stream) {
  return launch_grid_sort_words<uint64_t>(problem, plan, workspace, stream);
}

}  // namespace gpusort
