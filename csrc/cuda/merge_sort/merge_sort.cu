// S1 to S3, the merge sort: runs sorted on chip by the row kernels, then stages that merge many runs at a time.
//
//   runs      keys and 32-bit positions of each run, sorted: one read and one write of the data
//   cuts      where each tile of a stage's output cuts its runs
//   tiles     the tiles, merged in shared memory: one read and one write of the data per stage
//
// Stages are wide or narrow. A wide one merges up to 128 runs: splitters of a regular sample cut (wide_cuts.cuh), tiles are sorted by
// distribution (wide_tile.cuh). A narrow one merges up to 32: cuts are near their ranks (multiway_cuts.cuh), tiles are merged two by two
// (multiway_tile.cuh); it serves all keys, and sorts the samples of the wide ones.
//
// Between stages a record holds the code of its key and its index within the row, so that merges compare integers. The last stage turns
// codes back into keys; those whose bits a code does not tell (zeros, NaNs) it fetches from the input. 2^26 float32 with int64 indices
// cross memory three times: 12 bytes for the runs, 16 for the inner stage and 20 for the last, 48 in all (narrow: 64).
// Source of the scheme: Knuth, "The Art of Computer Programming", vol. 3, section 5.4.1 (multiway merging).
//
// Invariant: after stage s each row is made of sorted runs, and of equal keys the one with the smaller index comes first: within a run
// because it was sorted stably, between runs because they follow each other in the row and ties are taken from the earlier one.
#include "merge_sort.h"

#include <algorithm>

#include "../rows/row_sort.h"
#include "multiway_launch.h"
#include "wide_launch.h"

namespace gpusort {
namespace {

constexpr int kPadThreads = 256;

// Rows of `length` keys, each followed by keys that come after every other, up to `padded_length`.
template <class U>
__global__ void __launch_bounds__(kPadThreads)
    pad_rows_kernel(const U* in, U* out, int64_t rows, int64_t length, int64_t padded_length, U last_key) {
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    for (int64_t place = static_cast<int64_t>(blockIdx.x) * kPadThreads + threadIdx.x; place < padded_length;
         place += static_cast<int64_t>(gridDim.x) * kPadThreads) {
      out[row * padded_length + place] = place < length ? in[row * length + place] : last_key;
    }
  }
}

template <class U>
cudaError_t launch_pad_rows(const SortProblem& problem, const MergeSortPlan& plan, U* padded, cudaStream_t stream) {
  const KeyOrder<U> order = problem.key.order<U>(problem.descending);
  const U last_key = order.from_ordered(problem.descending ? U{0} : order.clamp);
  const dim3 blocks(static_cast<unsigned>(std::min<int64_t>((plan.padded_length + 4 * kPadThreads - 1) / (4 * kPadThreads), 65535)),
                    static_cast<unsigned>(std::min<int64_t>(problem.rows, 65535)));
  pad_rows_kernel<U><<<blocks, kPadThreads, 0, stream>>>(static_cast<const U*>(problem.keys_in), padded, problem.rows, problem.length,
                                                         plan.padded_length, last_key);
  return cudaGetLastError();
}

// Sorted runs: keys at `keys`, positions within the run at `positions`.
template <class U>
cudaError_t launch_runs(const SortProblem& problem, const MergeSortPlan& plan, U* padded, U* keys, uint32_t* positions,
                        cudaStream_t stream) {
  const void* keys_in = problem.keys_in;
  if (plan.padded_length > 0) {
    const cudaError_t status = launch_pad_rows<U>(problem, plan, padded, stream);
    if (status != cudaSuccess) return status;
    keys_in = padded;
  }
  const int64_t runs = problem.rows * plan.runs_per_row - (plan.tail_length > 0 ? 1 : 0);
  SortProblem run_problem = merge_sort_runs(problem, runs, plan.run_length);
  run_problem.keys_in = keys_in;
  run_problem.keys_out = keys;
  run_problem.indices_out = positions;
  const cudaError_t status = launch_row_sort(run_problem, plan.row_plan, nullptr, stream);
  if (status != cudaSuccess || plan.tail_length == 0) return status;

  SortProblem tail = merge_sort_runs(problem, 1, plan.tail_length);
  tail.keys_in = static_cast<const U*>(keys_in) + runs * plan.run_length;
  tail.keys_out = keys + runs * plan.run_length;
  tail.indices_out = positions + runs * plan.run_length;
  return launch_row_sort(tail, plan.tail_plan, nullptr, stream);
}

// Where things lie: in the workspace, or in the results.
template <class U, class Index>
struct MergeSortMemory {
  RecordArray<U, Index> records[2];
  U* padded;
  U* run_keys;
  uint32_t* run_positions;

  MergeSortMemory(const SortProblem& problem, const MergeSortPlan& plan, char* workspace) {
    for (const int buffer : {0, 1}) records[buffer] = make_record_array<U, Index>(workspace + plan.buffer_offset[buffer], problem.numel());
    padded = reinterpret_cast<U*>(workspace + plan.buffer_offset[0]);
    run_keys = reinterpret_cast<U*>(workspace + plan.run_keys_offset);
    run_positions = reinterpret_cast<uint32_t*>(workspace + plan.run_positions_offset);
    if (plan.results_buffer < 0) return;

    RecordArray<U, Index>& in_results = records[plan.results_buffer];
    in_results.words = static_cast<uint64_t*>(problem.indices_out);
    in_results.codes = static_cast<U*>(problem.keys_out);
    in_results.indices = static_cast<Index*>(problem.indices_out);
    if (plan.results_buffer == 0) return;
    run_positions = static_cast<uint32_t*>(problem.indices_out);  // half of the int64 indices; the keys have the other, or the values
    run_keys = RecordFormat<U, Index>::kPacked ? reinterpret_cast<U*>(run_positions + problem.numel()) : static_cast<U*>(problem.keys_out);
  }
};

template <class U>
cudaError_t launch_wide_stages(const SortProblem& problem, const MergeSortPlan& plan, const MergeSortMemory<U, uint32_t>& memory,
                               char* workspace, cudaStream_t stream) {
  cudaError_t status = cudaSuccess;
  for (int s = 0; s < plan.wide.count && status == cudaSuccess; ++s) {
    const WideMergeStage& stage = plan.wide.stage[s];
    const bool last = s + 1 == plan.wide.count;
    char* const scratch = static_cast<char*>(problem.keys_out);
    char* const cuts = last ? workspace + plan.cuts_offset : scratch + plan.wide.cuts_offset;
    WideMergeArguments<U> arguments =
        make_wide_arguments<U>(stage, problem.key.order<U>(problem.descending), problem.rows, problem.length, cuts);
    if (s == 0) {
      arguments.keys = memory.run_keys;
      arguments.positions = memory.run_positions;
    } else {
      arguments.words_in = memory.records[(s - 1) % 2].words;
    }
    if (last) {
      arguments.original = static_cast<const U*>(problem.keys_in);
      arguments.keys_out = static_cast<U*>(problem.keys_out);
      arguments.indices_wide = static_cast<int64_t*>(problem.indices_out);
    } else {
      arguments.words_out = memory.records[s % 2].words;
    }
    status = launch_wide_stage(arguments, stage, scratch, scratch + plan.wide.sample_cuts_offset, stream);
  }
  return status;
}

template <class U, class Index>
cudaError_t launch_of(const SortProblem& problem, const MergeSortPlan& plan, void* workspace, cudaStream_t stream) {
  char* const bytes = static_cast<char*>(workspace);
  const MergeSortMemory<U, Index> memory(problem, plan, bytes);
  cudaError_t status = launch_runs<U>(problem, plan, memory.padded, memory.run_keys, memory.run_positions, stream);
  if constexpr (RecordFormat<U, Index>::kPacked) {
    if (plan.wide.count > 0 && status == cudaSuccess) return launch_wide_stages<U>(problem, plan, memory, bytes, stream);
  }

  for (int s = 0; s < plan.stages.count && status == cudaSuccess; ++s) {
    const MultiwayStage& stage = plan.stages.stage[s];
    MultiwayArguments<U, Index> arguments =
        make_multiway_arguments<U, Index>(stage, problem.key.order<U>(problem.descending), problem.length);
    arguments.cuts = reinterpret_cast<int64_t*>(bytes + plan.cuts_offset);
    if (s == 0) {
      arguments.source = MultiwaySource::kRuns;
      arguments.keys = memory.run_keys;
      arguments.positions = memory.run_positions;
      if (plan.padded_length > 0) arguments.source_row_stride = plan.padded_length;
    } else {
      arguments.records_in = memory.records[(s - 1) % 2];
    }
    if (s + 1 < plan.stages.count) {
      arguments.records_out = memory.records[s % 2];
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
cudaError_t launch_of_width(const SortProblem& problem, const MergeSortPlan& plan, void* workspace, cudaStream_t stream) {
  return plan.wide_indices ? launch_of<U, uint64_t>(problem, plan, workspace, stream)
                           : launch_of<U, uint32_t>(problem, plan, workspace, stream);
}

}  // namespace

cudaError_t launch_merge_sort(const SortProblem& problem, const MergeSortPlan& plan, void* workspace, cudaStream_t stream) {
  if (problem.numel() <= 0 || (problem.keys_out == nullptr && problem.indices_out == nullptr)) return cudaSuccess;
  if (!plan.possible || !problem.whole_key()) return cudaErrorInvalidValue;
  if (plan.on_chip) return launch_row_sort(problem, plan.row_plan, workspace, stream);
  const bool results_needed = plan.results_buffer >= 0 || plan.wide.count > 0;
  const bool results_serve =
      !results_needed || (results_hold_records(problem, plan.wide_indices) && (plan.wide.count == 0 || problem.keys_out != nullptr));
  if (!results_serve) return cudaErrorInvalidValue;  // a plan made for more results than these
  switch (problem.key.bytes) {
    case 1: return launch_of_width<uint8_t>(problem, plan, workspace, stream);
    case 2: return launch_of_width<uint16_t>(problem, plan, workspace, stream);
    case 4: return launch_of_width<uint32_t>(problem, plan, workspace, stream);
    case 8: return launch_of_width<uint64_t>(problem, plan, workspace, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace gpusort
