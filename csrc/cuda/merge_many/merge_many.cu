// merge_many: k sorted runs of any lengths into one, by the multiway stages of the merge sort (merge_sort/multiway_tile.cuh).
//
// Offsets are known on the device only. One block makes them rise from 0 to the length, so that nothing outside the input is read and every
// element has a run, and counts how many tiles each group of runs needs in each stage; a tile then finds its group by bisection. Cost:
// ceil(log32 k) stages, each one read and one write of the data. Stable by run order, as runs are merged with their neighbours.
#include "merge_many.h"

#include "../merge_sort/multiway_launch.h"

namespace gpusort {
namespace {

constexpr int kPrepareThreads = 1024;

struct PrepareArguments {
  const int64_t* offsets;
  int64_t* clean_offsets;
  int64_t runs, length;
  int stages;
  MultiwayStage stage[kMaxStages];
  int64_t* tile_begin[kMaxStages];
  uint32_t* flags;  // one per stage
};

// The scan of values over a block, each thread's with all before it; `total` is that of all threads. Combine is associative.
template <class Combine>
__device__ int64_t block_inclusive_scan(int64_t value, int64_t* shared, Combine combine, int64_t& total) {
  const int thread = threadIdx.x;
  shared[thread] = value;
  __syncthreads();
  for (int distance = 1; distance < kPrepareThreads; distance *= 2) {
    const int64_t before = thread >= distance ? shared[thread - distance] : value;
    __syncthreads();
    if (thread >= distance) shared[thread] = value = combine(before, value);
    __syncthreads();
  }
  total = shared[kPrepareThreads - 1];
  __syncthreads();
  return value;
}

__global__ void __launch_bounds__(kPrepareThreads) prepare_runs_kernel(const __grid_constant__ PrepareArguments m) {
  __shared__ int64_t shared[kPrepareThreads];
  const int thread = threadIdx.x;
  if (thread < kMaxStages) m.flags[thread] = 0;

  int64_t highest = 0;  // running maximum of the offsets before this chunk
  for (int64_t first = 0; first <= m.runs; first += kPrepareThreads) {
    const int64_t run = first + thread;
    int64_t offset = 0;
    if (run > 0 && run <= m.runs) offset = run == m.runs ? m.length : min(max(m.offsets[run], int64_t{0}), m.length);
    int64_t chunk_highest;
    const int64_t clean = block_inclusive_scan(
        offset, shared, [](int64_t x, int64_t y) { return max(x, y); }, chunk_highest);
    if (run <= m.runs) m.clean_offsets[run] = max(highest, clean);
    highest = max(highest, chunk_highest);
  }
  __syncthreads();

  for (int s = 0; s < m.stages; ++s) {
    const MultiwayStage& stage = m.stage[s];
    const int64_t group_stride = stage.stride * stage.ways;
    int64_t tiles_before = 0;
    for (int64_t first = 0; first < stage.groups; first += kPrepareThreads) {
      const int64_t group = first + thread;
      int64_t tiles = 0;
      if (group < stage.groups) {
        const int64_t begin = m.clean_offsets[min(group * group_stride, m.runs)],
                      end = m.clean_offsets[min((group + 1) * group_stride, m.runs)];
        tiles = (end - begin + stage.tile - 1) / stage.tile;
      }
      int64_t chunk_tiles;
      const int64_t up_to = block_inclusive_scan(
          tiles, shared, [](int64_t x, int64_t y) { return x + y; }, chunk_tiles);
      if (group < stage.groups) m.tile_begin[s][group] = tiles_before + up_to - tiles;
      tiles_before += chunk_tiles;
    }
    if (thread == 0) m.tile_begin[s][stage.groups] = tiles_before;
  }
}

template <class U, class Index>
cudaError_t launch_of(const MergeManyProblem& problem, const MergeManyPlan& plan, void* workspace, cudaStream_t stream) {
  char* const memory = static_cast<char*>(workspace);
  PrepareArguments prepare;
  prepare.offsets = problem.offsets;
  prepare.clean_offsets = reinterpret_cast<int64_t*>(memory + plan.clean_offsets_offset);
  prepare.runs = problem.runs;
  prepare.length = problem.length;
  prepare.stages = plan.stages.count;
  prepare.flags = reinterpret_cast<uint32_t*>(memory + plan.flags_offset);
  for (int s = 0; s < plan.stages.count; ++s) {
    prepare.stage[s] = plan.stages.stage[s];
    prepare.tile_begin[s] = reinterpret_cast<int64_t*>(memory + plan.tile_begin_offset[s]);
  }
  prepare_runs_kernel<<<1, kPrepareThreads, 0, stream>>>(prepare);
  cudaError_t status = cudaGetLastError();

  for (int s = 0; s < plan.stages.count && status == cudaSuccess; ++s) {
    const MultiwayStage& stage = plan.stages.stage[s];
    MultiwayArguments<U, Index> arguments =
        make_multiway_arguments<U, Index>(stage, problem.key.order<U>(problem.descending), problem.length);
    arguments.runs.offsets = prepare.clean_offsets;
    arguments.runs.original_runs = problem.runs;
    arguments.runs.tile_begin = prepare.tile_begin[s];
    arguments.cuts = reinterpret_cast<int64_t*>(memory + plan.cuts_offset);
    arguments.contradictory = prepare.flags + s;
    if (s == 0) {
      arguments.source = MultiwaySource::kKeys;
      arguments.keys = static_cast<const U*>(problem.keys_in);
    } else {
      arguments.records_in = make_record_array<U, Index>(memory + plan.buffer_offset[(s - 1) % 2], problem.length);
    }
    if (s + 1 < plan.stages.count) {
      arguments.records_out = make_record_array<U, Index>(memory + plan.buffer_offset[s % 2], problem.length);
    } else {
      arguments.last = true;
      arguments.original = static_cast<const U*>(problem.keys_in);
      arguments.keys_out = static_cast<U*>(problem.keys_out);
      if (problem.index_bytes == 8) {
        arguments.indices_wide = static_cast<int64_t*>(problem.indices_out);
      } else {
        arguments.indices_narrow = static_cast<int32_t*>(problem.indices_out);
      }
    }
    status = launch_multiway_stage(arguments, stage, stream);
  }
  return status;
}

template <class U>
cudaError_t launch_of_width(const MergeManyProblem& problem, const MergeManyPlan& plan, void* workspace, cudaStream_t stream) {
  return plan.wide_indices ? launch_of<U, uint64_t>(problem, plan, workspace, stream)
                           : launch_of<U, uint32_t>(problem, plan, workspace, stream);
}

}  // namespace

cudaError_t launch_merge_many(const MergeManyProblem& problem, const MergeManyPlan& plan, void* workspace, cudaStream_t stream) {
  if (problem.length <= 0 || (problem.keys_out == nullptr && problem.indices_out == nullptr)) return cudaSuccess;
  if (problem.runs <= 0) return cudaErrorInvalidValue;
  switch (problem.key.bytes) {
    case 1: return launch_of_width<uint8_t>(problem, plan, workspace, stream);
    case 2: return launch_of_width<uint16_t>(problem, plan, workspace, stream);
    case 4: return launch_of_width<uint32_t>(problem, plan, workspace, stream);
    case 8: return launch_of_width<uint64_t>(problem, plan, workspace, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace gpusort
