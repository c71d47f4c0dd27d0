// S4, the lexicographic sort: several key columns as one wide unsigned integer (core/key_columns.h), sorted by its words.
//
//   one word      columns that fit 64 bits together are packed and sorted once
//   a chain       wider ones, least significant word first, every sort stable: the principle of the radix sort itself (Knuth, "The Art of
//                 Computer Programming", vol. 3, section 5.2.5)
//   leading word  large sorts of wider keys. Columns of small range are given few bits (column_ranges.cu). One sort by the leading 64 bits
//                 then is nearly everything: what ties is mended in runs (mend_runs.cu). The narrowed key may even fit the word. Where
//                 many leading words are equal, which a sample tells, the chain does it all; also where the runs turn out to be too many
//                 or too long.
//
// The host launches both ways; the device decides which of them does the work, and the kernels of the other leave at once. Two int64
// columns of random keys: 16 bytes an element for the words, one sort of 64-bit keys with index, 8 for the runs.
//
// Invariant of the leading way: after the first sort, elements with equal leading words are neighbours in the order of the input. Mending
// permutes within these runs only, so the elements of a run are the same whichever way ends the sort.
#include "lexsort.h"

#include "../grid_sort/grid_sort.h"
#include "../radix/radix_sort.h"
#include "../rows/row_sort.h"
#include "lexsort_arguments.h"

namespace gpusort {
namespace {

constexpr int kMendBlocksPerSm = 3;

// The plan's slices of the workspace.
struct LexsortMemory {
  char* workspace;
  const LexsortPlan& plan;

  template <class Type = void>
  Type* at(int64_t offset) const {
    return reinterpret_cast<Type*>(workspace + offset);
  }
  Positions order(int which) const { return {at(plan.order_offset[which]), plan.order_bytes}; }

  cudaError_t sort(const WordSort& sort, void* indices_out, const uint32_t* called_off, cudaStream_t stream) const {
    SortProblem problem = sort.problem;
    problem.called_off = called_off;
    problem.keys_in = at(plan.words_offset);
    problem.keys_out = at(plan.sorted_words_offset);
    problem.indices_out = indices_out;
    void* const sort_workspace = at(plan.sort_offset);
    if (sort.algorithm == SortAlgorithm::kRows) return launch_row_sort(problem, sort.row, sort_workspace, stream);
    if (sort.algorithm == SortAlgorithm::kGrid) return launch_grid_sort(problem, sort.grid, sort_workspace, stream);
    return launch_radix_sort(problem, sort.radix, sort_workspace, stream);
  }
};

// The indices by all words, two or more, from the last one up.
cudaError_t launch_chain(const LexsortArguments& arguments, const LexsortMemory& memory, int64_t* indices_out, const uint32_t* called_off,
                         cudaStream_t stream) {
  const LexsortPlan& plan = memory.plan;
  Positions order;  // of the input
  int which = 0;
  for (int64_t word = plan.words - 1; word >= 0; --word, which ^= 1) {
    const Positions sorted = memory.order(which);
    cudaError_t status = launch_column_words(arguments, word, order, memory.at(plan.words_offset), 8, called_off, stream);
    if (status == cudaSuccess) status = memory.sort(plan.word_sort, sorted.data, called_off, stream);
    if (status == cudaSuccess && order.data != nullptr) {
      status = launch_compose(arguments, order, sorted, word == 0 ? Positions{indices_out, 8} : sorted, called_off, stream);
    }
    if (status != cudaSuccess) return status;
    order = sorted;
  }
  return cudaSuccess;
}

cudaError_t launch_leading(const LexsortProblem& problem, LexsortArguments arguments, const LexsortMemory& memory, cudaStream_t stream) {
  const LexsortPlan& plan = memory.plan;
  arguments.control = memory.at<LexsortControl>(plan.control_offset);
  arguments.entries = reinterpret_cast<ColumnEntry*>(arguments.control + 1);
  const uint32_t* const lead_called_off = &arguments.control->lead_called_off;
  cudaError_t status = cudaMemsetAsync(arguments.control, 0, static_cast<size_t>(plan.control_bytes), stream);
  if (status == cudaSuccess) status = launch_column_ranges(arguments, stream);
  if (status == cudaSuccess) status = launch_column_words(arguments, 0, {}, memory.at(plan.words_offset), 8, lead_called_off, stream);
  if (status == cudaSuccess) status = memory.sort(plan.lead_sort, problem.indices_out, lead_called_off, stream);
  if (status == cudaSuccess) {
    status = launch_mend_runs(arguments, memory.at<const uint64_t>(plan.sorted_words_offset), problem.indices_out,
                              memory.at<int64_t>(plan.order_offset[0]), plan.sm_count * kMendBlocksPerSm, stream);
  }
  if (status == cudaSuccess) status = launch_chain(arguments, memory, problem.indices_out, &arguments.control->chain_called_off, stream);
  return status;
}

}  // namespace

cudaError_t launch_lexsort(const LexsortProblem& problem, const LexsortPlan& plan, void* workspace, cudaStream_t stream) {
  if (problem.numel() == 0) return cudaSuccess;
  if (problem.columns.count < 1) return cudaErrorInvalidValue;
  LexsortArguments arguments;
  arguments.columns = problem.columns;
  arguments.rows = problem.rows;
  arguments.length = problem.length;
  arguments.sm_count = plan.sm_count;
  const LexsortMemory memory{static_cast<char*>(workspace), plan};
  if (plan.way == LexsortWay::kLeading) return launch_leading(problem, arguments, memory, stream);
  if (plan.way == LexsortWay::kOneWord) {
    const int word_bytes = plan.word_sort.problem.key.bytes;
    const cudaError_t status = launch_column_words(arguments, 0, {}, memory.at(plan.words_offset), word_bytes, nullptr, stream);
    return status == cudaSuccess ? memory.sort(plan.word_sort, problem.indices_out, nullptr, stream) : status;
  }
  return launch_chain(arguments, memory, problem.indices_out, nullptr, stream);
}

}  // namespace gpusort
