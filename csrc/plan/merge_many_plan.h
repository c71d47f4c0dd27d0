// Plans a merge of many sorted runs of any lengths into one. Pure: sizes in, numbers out; where the runs begin is only known on the device.
#pragma once

#include <cstdint>

#include "multiway_plan.h"
#include "row_plan.h"
#include "sort_problem.h"

namespace gpusort {

// Merge the runs keys_in[offsets[r], offsets[r + 1]), each sorted, into one. Ties are taken from the earlier run.
// Offsets that do not rise from 0 to `length` are taken as the nearest that do.
struct MergeManyProblem {
  KeyType key;
  bool descending = false;
  int64_t length = 0;
  int64_t runs = 0;
  const int64_t* offsets = nullptr;  // runs + 1, on the device
  const void* keys_in = nullptr;
  void* keys_out = nullptr;     // null: values are not wanted
  void* indices_out = nullptr;  // null: indices are not wanted; else positions in keys_in
  int index_bytes = 8;          // 4 or 8
};

struct MergeManyPlan {
  bool wide_indices = false;
  MultiwaySchedule stages;
  int64_t clean_offsets_offset = 0;            // runs + 1 offsets that rise
  int64_t tile_begin_offset[kMaxStages] = {};  // per stage, groups + 1: tiles before each group
  int64_t flags_offset = 0;                    // per stage, 4 bytes: cuts contradict each other
  int64_t buffer_offset[2] = {0, 0};
  int64_t cuts_offset = 0;
  int64_t workspace_bytes = 0;
};

inline MergeManyPlan plan_merge_many(const MergeManyProblem& problem, const DeviceTraits& traits,
                                     int64_t narrow_index_length = kNarrowIndexLength) {
  MergeManyPlan plan;
  if (problem.length <= 0 || problem.runs <= 0) return plan;
  plan.wide_indices = problem.length > narrow_index_length;
  plan.stages = plan_multiway(problem.key.bytes, plan.wide_indices, 1, problem.length, problem.runs, 0, traits);
  int64_t end = 0;
  const auto take = [&](int64_t bytes) {
    const int64_t begin = end;
    end += round_up(bytes, 256);
    return begin;
  };
  const int64_t records = problem.length * record_bytes(problem.key.bytes, plan.wide_indices);
  plan.clean_offsets_offset = take((problem.runs + 1) * 8);
  for (int s = 0; s < plan.stages.count; ++s) plan.tile_begin_offset[s] = take((plan.stages.stage[s].groups + 1) * 8);
  plan.flags_offset = take(kMaxStages * 4);
  plan.buffer_offset[0] = take(plan.stages.count > 1 ? records : 0);
  plan.buffer_offset[1] = take(plan.stages.count > 2 ? records : 0);
  plan.cuts_offset = take(plan.stages.cuts_bytes);
  plan.workspace_bytes = end;
  return plan;
}

}  // namespace gpusort
