// The merge kernels with another number of outputs to a thread: a library of one function for benchmarks/merge_coarsening.py. Two sorted
// arrays of float32, keys alone. The cuts are found by the kernel that the product uses, which is part of the time.
#include <cuda_runtime_api.h>

#include "../csrc/cuda/merge/merge_launch.cuh"

namespace {

using namespace gpusort;

constexpr int kTiledThreads = 128, kRingThreads = 224, kBasicThreads = 128;

// Two tiles of 224 x 32 need the larger ring.
constexpr int ring_for(int items) {
  return items <= 16 ? 8192 : 16384;
}

template <int kItems>
cudaError_t launch_tiled_of(const MergeArguments<uint32_t>& m, cudaStream_t stream) {
  return launch_tiled_keys<uint32_t, kTiledThreads, kItems>(m, false, stream);
}

template <int kItems>
cudaError_t launch_circular_of(const MergeArguments<uint32_t>& m, cudaStream_t stream) {
  return launch_circular<uint32_t, kRingThreads, kItems, ring_for(kItems)>(m, stream);
}

MergeArguments<uint32_t> arguments_of(const MergeProblem& problem, int64_t piece, void* workspace) {
  MergePlan plan;
  plan.piece = piece;
  plan.pieces_per_row = (problem.a_length + problem.b_length + piece - 1) / piece;
  plan.cuts_in_workspace = true;
  return make_merge_arguments<uint32_t>(problem, plan, workspace);
}

}  // namespace

// kernel: 0 basic, 1 tiled, 2 circular. The workspace holds 8 bytes for every output. Returns a cudaError_t.
extern "C" int merge_with_outputs(int kernel, int outputs, const float* a, const float* b, int64_t length, float* out, void* workspace,
                                  int multiprocessors, cudaStream_t stream) {
  MergeProblem problem;
  problem.key = {4, KeyKind::kFloat, 0x7f800000};
  problem.a_keys = a;
  problem.b_keys = b;
  problem.keys_out = out;
  problem.rows = 1;
  problem.a_length = problem.b_length = length;
  int64_t piece = outputs;
  if (kernel == 1) piece = int64_t{kTiledThreads} * outputs;
  if (kernel == 2) {  // a run of tiles for each block of one wave, in whole tiles
    const int64_t tile = int64_t{kRingThreads} * outputs, blocks = int64_t{multiprocessors} * 3;
    piece = ((2 * length + blocks - 1) / blocks + tile - 1) / tile * tile;
  }
  const MergeArguments<uint32_t> m = arguments_of(problem, piece, workspace);
  const cudaError_t error = launch_cuts(m, false, stream);
  if (error != cudaSuccess) return error;
  if (kernel == 0) {
    merge_basic_kernel<uint32_t><<<grid_blocks((m.pieces_per_row + kBasicThreads - 1) / kBasicThreads), kBasicThreads, 0, stream>>>(m);
    return cudaGetLastError();
  }
  switch (outputs) {
    case 1: return kernel == 1 ? launch_tiled_of<1>(m, stream) : launch_circular_of<1>(m, stream);
    case 2: return kernel == 1 ? launch_tiled_of<2>(m, stream) : launch_circular_of<2>(m, stream);
    case 4: return kernel == 1 ? launch_tiled_of<4>(m, stream) : launch_circular_of<4>(m, stream);
    case 8: return kernel == 1 ? launch_tiled_of<8>(m, stream) : launch_circular_of<8>(m, stream);
    case 16: return kernel == 1 ? launch_tiled_of<16>(m, stream) : launch_circular_of<16>(m, stream);
    case 32: return kernel == 1 ? launch_tiled_of<32>(m, stream) : launch_circular_of<32>(m, stream);
    default: return cudaErrorInvalidValue;
  }
}
