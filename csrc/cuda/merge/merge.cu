// Entry points of the merges: choose the key width.
#include "merge.h"

#include "merge_arguments.cuh"

namespace gpusort {

// Defined in merge_<bits>.cu.
template <class U>
cudaError_t launch_merge_of_width(const MergeProblem& problem, const MergePlan& plan, void* workspace, cudaStream_t stream);
extern template cudaError_t launch_merge_of_width<uint8_t>(const MergeProblem&, const MergePlan&, void*, cudaStream_t);
extern template cudaError_t launch_merge_of_width<uint16_t>(const MergeProblem&, const MergePlan&, void*, cudaStream_t);
extern template cudaError_t launch_merge_of_width<uint32_t>(const MergeProblem&, const MergePlan&, void*, cudaStream_t);
extern template cudaError_t launch_merge_of_width<uint64_t>(const MergeProblem&, const MergePlan&, void*, cudaStream_t);

cudaError_t launch_merge(const MergeProblem& problem, const MergePlan& plan, void* workspace, cudaStream_t stream) {
  if (plan.pieces_per_row == 0) return cudaSuccess;
  switch (problem.key.bytes) {
    case 1: return launch_merge_of_width<uint8_t>(problem, plan, workspace, stream);
    case 2: return launch_merge_of_width<uint16_t>(problem, plan, workspace, stream);
    case 4: return launch_merge_of_width<uint32_t>(problem, plan, workspace, stream);
    case 8: return launch_merge_of_width<uint64_t>(problem, plan, workspace, stream);
    default: return cudaErrorInvalidValue;
  }
}

template <class U>
__global__ void co_rank_kernel(MergeArguments<U> m, const int64_t* ranks, int64_t rank_count, int64_t* counts_out) {
  for (int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; index < rank_count;
       index += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    counts_out[index] = global_co_rank(m, 0, max(int64_t{0}, min(ranks[index], m.row_outputs())));
  }
}

template <class U>
cudaError_t launch_co_rank_of_width(const MergeProblem& problem, const int64_t* ranks, int64_t rank_count, int64_t* counts_out,
                                    cudaStream_t stream) {
  constexpr int kThreads = 128;
  const int64_t blocks = (rank_count + kThreads - 1) / kThreads;
  co_rank_kernel<U><<<static_cast<unsigned>(blocks < (1 << 20) ? blocks : 1 << 20), kThreads, 0, stream>>>(
      make_merge_arguments<U>(problem, MergePlan{}, nullptr), ranks, rank_count, counts_out);
  return cudaGetLastError();
}

cudaError_t launch_co_rank(const MergeProblem& problem, const int64_t* ranks, int64_t rank_count, int64_t* counts_out,
                           cudaStream_t stream) {
  if (rank_count == 0) return cudaSuccess;
  switch (problem.key.bytes) {
    case 1: return launch_co_rank_of_width<uint8_t>(problem, ranks, rank_count, counts_out, stream);
    case 2: return launch_co_rank_of_width<uint16_t>(problem, ranks, rank_count, counts_out, stream);
    case 4: return launch_co_rank_of_width<uint32_t>(problem, ranks, rank_count, counts_out, stream);
    case 8: return launch_co_rank_of_width<uint64_t>(problem, ranks, rank_count, counts_out, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace gpusort
