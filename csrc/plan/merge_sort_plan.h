// Plans a merge sort: runs sorted on chip, then multiway merge stages. Pure: shapes in, numbers out.
//
// Rows that fit on chip are sorted there at once. Longer ones become runs of 8192 (the length at which the row kernels do most per byte,
// H200: 2^26 float32 in 600 us), which are merged. Keys to 32 bits of large problems take wide stages (wide_merge_plan.h): 2^26 keys are
// 2^13 runs and take two of 128 and 64 ways. The others take narrow ones (multiway_plan.h), for so many runs three of 32, 16 and 16 ways.
//
// Memory, per element: two buffers of records (8 bytes for keys to 32 bits, 12 for 64). The sorted runs (keys, positions) lie where the
// second buffer will be, and rows padded to whole runs where the first will be. The buffer that the last stage does not read lies in the
// results, which nobody else reads before, where they are large enough (int64 indices, and values where records are not packed): 8 or 12
// bytes beyond the results are then all there is.
#pragma once

#include <algorithm>
#include <cstdint>

#include "multiway_plan.h"
#include "row_plan.h"
#include "sort_problem.h"
#include "wide_merge_plan.h"

namespace gpusort {

constexpr int64_t kMergeRunLength = 8192;
constexpr int64_t kShortestMergeRun = 1024;  // for arrays that would not give every multiprocessor a run

struct MergeSortPlan {
  bool possible = true;  // false: this device has no room for a run on chip
  bool on_chip = false;  // rows are one run each: row_plan is all there is to do
  RowPlan row_plan;      // all runs, but for the tail
  RowPlan tail_plan;     // one row: the last, shorter run
  int64_t run_length = 0;
  int64_t runs_per_row = 0;
  int64_t tail_length = 0;    // one row: elements of the last, shorter run; 0: none
  int64_t padded_length = 0;  // several rows: their length padded to whole runs; 0: they are whole already
  bool wide_indices = false;
  MultiwaySchedule stages;
  WideMergeSchedule wide;             // these stages instead, if there are any; what they need beside the records lies in the keys' results
  int results_buffer = -1;            // the record buffer that lies in the results; -1: none
  int64_t buffer_offset[2] = {0, 0};  // of the record buffers in the workspace
  int64_t run_keys_offset = 0;        // the sorted runs, unless results_buffer is 1: keys, and positions within the run
  int64_t run_positions_offset = 0;
  int64_t cuts_offset = 0;
  int64_t workspace_bytes = 0;

  int stage_count() const { return wide.count > 0 ? wide.count : stages.count; }
};

// Whether the results have room for a record of every element.
inline bool results_hold_records(const SortProblem& problem, bool wide_indices) {
  return problem.indices_out != nullptr && problem.index_bytes == 8 &&
         (records_packed(problem.key.bytes, wide_indices) || problem.keys_out != nullptr);
}

// The runs, as a problem of the row kernels. Pointers are filled in by the launcher.
inline SortProblem merge_sort_runs(const SortProblem& problem, int64_t runs, int64_t run_length) {
  SortProblem run_problem = problem;
  run_problem.rows = runs;
  run_problem.length = run_length;
  run_problem.index_bytes = 4;
  return run_problem;
}

// Wide stages where they do: records are words, runs are many, and the keys' results have room for what the stages need beside the records.
inline WideMergeSchedule plan_wide_stages(const SortProblem& problem, const DeviceTraits& traits, bool wide_indices,
                                          int64_t fewest_elements) {
  WideMergeSchedule schedule;
  const bool runs_possible = row_sort_max_length(problem.key.bytes, traits) >= kMergeRunLength &&
                             problem.length > kMaxWays * kMergeRunLength && (problem.rows == 1 || problem.length % kMergeRunLength == 0);
  const bool words = records_packed(problem.key.bytes, wide_indices) && problem.length <= kNarrowIndexLength / 2;
  const bool room =
      results_hold_records(problem, wide_indices) && problem.keys_out != nullptr && traits.shared_bytes_per_block >= kWideSharedBytes;
  if (!runs_possible || !words || !room || problem.numel() > kMostWideElements) return schedule;
  schedule = plan_wide_merge(problem.key.bytes, problem.rows, problem.length, kMergeRunLength, traits);
  const bool large = problem.numel() >= (schedule.count == 1 ? fewest_elements : fewest_elements + fewest_elements / 2);
  if (!large || schedule.scratch_bytes > problem.numel() * problem.key.bytes) schedule.count = 0;
  return schedule;
}

inline MergeSortPlan plan_merge_sort(const SortProblem& problem, const DeviceTraits& traits,
                                     int64_t narrow_index_length = kNarrowIndexLength, int64_t fewest_wide_elements = kFewestWideElements) {
  MergeSortPlan plan;
  const int64_t on_chip = row_sort_max_length(problem.key.bytes, traits);
  if (problem.rows <= 0 || problem.length <= 0 || problem.length <= on_chip) {
    plan.on_chip = true;
    plan.row_plan = plan_row_sort(problem, traits);
    return plan;
  }
  plan.possible = on_chip >= kShortestMergeRun;
  if (!plan.possible) return plan;

  const auto runs_of = [&](int64_t run_length) { return (problem.length + run_length - 1) / run_length; };
  plan.wide_indices = problem.length > narrow_index_length;
  plan.wide = plan_wide_stages(problem, traits, plan.wide_indices, fewest_wide_elements);
  const bool wide = plan.wide.count > 0;
  plan.run_length = std::min(kMergeRunLength, on_chip);
  while (!wide && plan.run_length / 2 >= kShortestMergeRun && problem.rows * runs_of(plan.run_length) < traits.sm_count &&
         multiway_stage_count(runs_of(plan.run_length / 2)) == multiway_stage_count(runs_of(plan.run_length))) {
    plan.run_length /= 2;
  }
  plan.runs_per_row = runs_of(plan.run_length);
  const int64_t tail = problem.length % plan.run_length;
  if (problem.rows == 1) {
    plan.tail_length = tail;
    plan.row_plan = plan_row_sort(merge_sort_runs(problem, problem.length / plan.run_length, plan.run_length), traits);
    if (tail > 0) plan.tail_plan = plan_row_sort(merge_sort_runs(problem, 1, tail), traits);
  } else {
    plan.padded_length = tail > 0 ? plan.runs_per_row * plan.run_length : 0;
    plan.row_plan = plan_row_sort(merge_sort_runs(problem, problem.rows * plan.runs_per_row, plan.run_length), traits);
  }

  if (!wide) {
    plan.stages =
        plan_multiway(problem.key.bytes, plan.wide_indices, problem.rows, problem.length, plan.runs_per_row, plan.run_length, traits);
  }
  const int stages = plan.stage_count();
  const auto aligned = [](int64_t bytes) { return round_up(bytes, 256); };
  const int64_t run_elements = plan.padded_length > 0 ? problem.rows * plan.padded_length : problem.numel();
  const int64_t records = aligned(problem.numel() * record_bytes(problem.key.bytes, plan.wide_indices));
  const int64_t padded = plan.padded_length > 0 ? aligned(run_elements * problem.key.bytes) : 0;
  const int64_t run_keys = aligned(run_elements * problem.key.bytes), run_positions = aligned(run_elements * 4);
  const bool in_results = results_hold_records(problem, plan.wide_indices) && plan.padded_length == 0 && stages > 1;
  if (in_results) plan.results_buffer = (stages - 1) % 2;
  const int64_t first = plan.results_buffer == 0 ? 0 : std::max(padded, stages > 1 ? records : 0);
  const int64_t second = plan.results_buffer == 1 ? 0 : std::max(run_keys + run_positions, stages > 2 ? records : 0);
  plan.buffer_offset[1] = first;
  plan.run_keys_offset = first;
  plan.run_positions_offset = first + run_keys;
  plan.cuts_offset = first + second;
  plan.workspace_bytes = plan.cuts_offset + (wide ? plan.wide.workspace_bytes : plan.stages.cuts_bytes);
  return plan;
}

}  // namespace gpusort
