// S4, the lexicographic sort: several key columns as one wide unsigned integer (core/key_columns.h), sorted by its words.
//
//   one word      columns that fit 64 bits together are packed and sorted once
//   a chain       wider ones, least significant word first, every sort stable: the principle of the radix sort itself (Knuth, "The Art of
//                 Computer Programming", vol. 3, section 5.2.5)
//   leading word  large sorts of wider keys. Ranges of all columns are found first, so that columns of small range take few bits. One sort
//                 by the leading 64 bits then is nearly everything: what ties is mended in runs (mend_runs.cu). The narrowed key may even
//                 fit the word. Where runs are too many or too long, the chain sorts by the words behind, and last by the runs' numbers.
//
// The host launches both ways; the device decides which of them does the work, and the kernels of the other leave at once. Two int64 columns of random keys: 16 bytes an element for the ranges, 16 for the words, one sort of 64-bit keys
// with index, 8 for the runs.
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

constexpr int kRangeBlocksPerSm = 8;
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

  // With a control: unless the chain is called off.
  cudaError_t sort(const WordSort& sort, void* indices_out, const LexsortControl* control, cudaStream_t stream) const {
    SortProblem problem = sort.problem;
    if (control != nullptr) problem.called_off = &control->chain_called_off;
    problem.keys_in = at(plan.words_offset);
    problem.keys_out = at(plan.sorted_words_offset);
    problem.indices_out = indices_out;
    void* const sort_workspace = at(plan.sort_offset);
    if (sort.algorithm == SortAlgorithm::kRows) return launch_row_sort(problem, sort.row, sort_workspace, stream);
    if (sort.algorithm == SortAlgorithm::kGrid) return launch_grid_sort(problem, sort.grid, sort_workspace, stream);
    return launch_radix_sort(problem, sort.radix, sort_workspace, stream);
  }
};

// Positions by the words from the last one up to `first_word`: in `indices_out`, or in an order buffer, which *which then names.
cudaError_t launch_chain(const LexsortArguments& arguments, const LexsortMemory& memory, int64_t first_word, int64_t* indices_out,
                         int* which, cudaStream_t stream) {
  const LexsortPlan& plan = memory.plan;
  *which = 0;
  Positions order;  // of the input
  for (int64_t word = plan.words - 1; word >= first_word; --word) {
    const bool first_sort = order.data == nullptr;
    cudaError_t status = launch_column_words(arguments, word, order, memory.at(plan.words_offset), 8, true, stream);
    if (status != cudaSuccess) return status;
    if (!first_sort) *which ^= 1;
    const Positions sorted = memory.order(*which);
    status = memory.sort(plan.word_sort, sorted.data, arguments.control, stream);
    if (status == cudaSuccess && !first_sort) {
      const bool final = word == first_word && indices_out != nullptr;
      status = launch_compose(arguments, order, sorted, final ? Positions{indices_out, 8} : sorted, stream);
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
  const auto* sorted_words = memory.at<const uint64_t>(plan.sorted_words_offset);
  auto* const run_numbers = memory.at<uint32_t>(plan.run_offset);
  cudaError_t status = cudaMemsetAsync(arguments.control, 0, static_cast<size_t>(plan.control_bytes), stream);
  if (status == cudaSuccess) status = launch_column_ranges(arguments, plan.sm_count * kRangeBlocksPerSm, stream);
  if (status == cudaSuccess) status = launch_column_words(arguments, 0, {}, memory.at(plan.words_offset), 8, false, stream);
  if (status == cudaSuccess) status = memory.sort(plan.lead_sort, problem.indices_out, nullptr, stream);
  if (status == cudaSuccess) {
    status = launch_mend_runs(arguments, sorted_words, problem.indices_out, memory.at<int64_t>(plan.order_offset[0]),
                              plan.sm_count * kMendBlocksPerSm, stream);
  }
  if (status == cudaSuccess) status = launch_run_numbers(arguments, sorted_words, problem.indices_out, run_numbers, stream);
  int which = 0;
  if (status == cudaSuccess) status = launch_chain(arguments, memory, 1, nullptr, &which, stream);
  const Positions order = memory.order(which), by_run = memory.order(which ^ 1);
  if (status == cudaSuccess) {
    status = launch_fetch_run_numbers(arguments, run_numbers, order, memory.at<uint32_t>(plan.words_offset), stream);
  }
  if (status == cudaSuccess) status = memory.sort(plan.run_sort, by_run.data, arguments.control, stream);
  if (status == cudaSuccess) status = launch_compose(arguments, order, by_run, {problem.indices_out, 8}, stream);
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
  const LexsortMemory memory{static_cast<char*>(workspace), plan};
  if (plan.way == LexsortWay::kLeading) return launch_leading(problem, arguments, memory, stream);
  if (plan.way == LexsortWay::kOneWord) {
    const int word_bytes = plan.word_sort.problem.key.bytes;
    const cudaError_t status = launch_column_words(arguments, 0, {}, memory.at(plan.words_offset), word_bytes, false, stream);
    return status == cudaSuccess ? memory.sort(plan.word_sort, problem.indices_out, nullptr, stream) : status;
  }
  int which = 0;
  return launch_chain(arguments, memory, 0, problem.indices_out, &which, stream);  // two words or more
}

}  // namespace gpusort
