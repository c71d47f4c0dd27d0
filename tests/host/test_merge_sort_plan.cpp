// plan/merge_sort_plan.h, plan/merge_many_plan.h and plan/multiway_plan.h: stages end in one run, tiles fit, workspace parts do not overlap
// while both are in use.
#include "../../csrc/plan/merge_sort_plan.h"

#include <cstdint>

#include "../../csrc/plan/merge_many_plan.h"
#include "check.h"
#include "problems.h"

using namespace gpusort;

namespace {

void check_stages(const MultiwaySchedule& stages, int key_bytes, bool wide, int64_t rows, int64_t row_length, int64_t runs) {
  int64_t left = runs, stride = 1;
  for (int s = 0; s < stages.count; ++s) {
    const MultiwayStage& stage = stages.stage[s];
    CHECK(stage.runs == left && stage.stride == stride);
    CHECK(stage.ways >= 1 && stage.ways <= kMaxWays);
    CHECK(stage.groups == (left + stage.ways - 1) / stage.ways);
    CHECK(stage.threads % 32 == 0 && stage.threads >= kFewestMultiwayThreads && stage.threads <= kMultiwayThreads);
    // However a tile falls into pieces, they fit its slots when each starts at a whole thread.
    const int items = multiway_items(key_bytes, wide);
    CHECK(stage.tile > 2 * kCutSlack);
    CHECK(stage.tile + 2 * kCutSlack + int64_t{stage.ways} * (items - 1) <= int64_t{stage.threads} * items);
    CHECK(stage.threads * items < (1 << kSlotBits));
    CHECK(stage.tiles * stage.tile >= rows * row_length || stage.run_length == 0);
    CHECK(stages.cuts_bytes >= stage.tiles * stage.ways * 8);
    left = stage.groups;
    // A stage's groups are the next one's runs: only a row's single group may have fewer ways than the stride says.
    CHECK(stage.groups == 1 || (stage.ways & (stage.ways - 1)) == 0);
    stride *= stage.ways;
    if (stage.run_length > 0 && stage.groups > 1) CHECK(stage.tiles_per_group * stage.tile >= stage.run_length * stage.ways);
    if (stage.run_length > 0 && stage.groups == 1) CHECK(stage.tiles_per_group * stage.tile >= row_length);
    if (stage.run_length > 0) CHECK(stage.run_length * stage.runs >= row_length && stage.run_length * (stage.runs - 1) < row_length);
  }
  CHECK(left == 1);
}

void check_sort(int key_bytes, int64_t rows, int64_t length, int64_t narrow_limit) {
  const DeviceTraits traits;
  const SortProblem problem = make_problem(key_bytes, rows, length, false, 0);
  const MergeSortPlan plan = plan_merge_sort(problem, traits, narrow_limit);
  CHECK(plan.possible);
  if (length <= row_sort_max_length(key_bytes, traits)) {
    CHECK(plan.on_chip && plan.stages.count == 0 && plan.workspace_bytes == 0);
    return;
  }
  CHECK(!plan.on_chip && plan.row_plan.kernel != RowKernel::kNone);
  CHECK(plan.wide_indices == (length > narrow_limit));
  CHECK(plan.runs_per_row == (length + plan.run_length - 1) / plan.run_length);
  const bool ragged = length % plan.run_length != 0;
  CHECK((plan.tail_length > 0) == (ragged && rows == 1));
  CHECK((plan.padded_length > 0) == (ragged && rows > 1));
  if (plan.tail_length > 0) CHECK(plan.tail_plan.kernel != RowKernel::kNone);
  const int64_t run_elements = plan.padded_length > 0 ? rows * plan.padded_length : rows * length;
  CHECK(plan.row_plan.blocks * plan.row_plan.rows_per_block * plan.run_length + plan.tail_length >= run_elements);
  check_stages(plan.stages, key_bytes, plan.wide_indices, rows, length, plan.runs_per_row);

  const int64_t records = rows * length * record_bytes(key_bytes, plan.wide_indices);
  const int64_t first_end = plan.buffer_offset[0] + (plan.stages.count > 1 ? records : 0);
  const int64_t second_end = plan.buffer_offset[1] + (plan.stages.count > 2 ? records : 0);
  if (plan.padded_length > 0) CHECK(plan.buffer_offset[0] + run_elements * key_bytes <= plan.buffer_offset[1]);
  CHECK(first_end <= plan.buffer_offset[1] && second_end <= plan.cuts_offset);
  CHECK(plan.results_buffer == -1 && plan.run_keys_offset >= plan.buffer_offset[1]);
  CHECK(plan.run_keys_offset + run_elements * key_bytes <= plan.run_positions_offset);
  CHECK(plan.run_positions_offset + run_elements * 4 <= plan.cuts_offset);
  CHECK(plan.cuts_offset + plan.stages.cuts_bytes <= plan.workspace_bytes);
  for (const int64_t offset : {plan.buffer_offset[0], plan.buffer_offset[1], plan.run_positions_offset, plan.cuts_offset})
    CHECK(offset % 256 == 0);
}

// With int64 indices and values wanted: the results serve as the buffer that the last stage does not read.
void check_memory(int key_bytes, int64_t length, int64_t bytes_per_element) {
  static int64_t somewhere;
  SortProblem problem = make_problem(key_bytes, 1, length, false, 0);
  problem.keys_out = &somewhere;
  problem.indices_out = &somewhere;
  const MergeSortPlan plan = plan_merge_sort(problem, DeviceTraits{});
  const int stages = plan.stage_count();
  const int last_reads = stages == 1 ? 1 : (stages - 2) % 2;
  CHECK(stages == 1 || plan.results_buffer == 1 - last_reads);
  const int64_t cuts = plan.wide.count > 0 ? plan.wide.workspace_bytes : plan.stages.cuts_bytes;
  CHECK(plan.workspace_bytes <= length * bytes_per_element + cuts + 1024);
  CHECK(plan.stages.cuts_bytes < length / 16 + 65536);
  problem.keys_out = nullptr;
  CHECK((plan_merge_sort(problem, DeviceTraits{}).results_buffer >= 0) == (plan.results_buffer >= 0 && key_bytes <= 4));
  problem.index_bytes = 4;
  CHECK(plan_merge_sort(problem, DeviceTraits{}).results_buffer == -1);
}

void check_many(int key_bytes, int64_t length, int64_t runs, int64_t narrow_limit) {
  MergeManyProblem problem;
  problem.key.bytes = key_bytes;
  problem.length = length;
  problem.runs = runs;
  const MergeManyPlan plan = plan_merge_many(problem, DeviceTraits{}, narrow_limit);
  check_stages(plan.stages, key_bytes, plan.wide_indices, 1, length, runs);
  int64_t end = (runs + 1) * 8;
  CHECK(plan.clean_offsets_offset == 0);
  for (int s = 0; s < plan.stages.count; ++s) {
    CHECK(plan.tile_begin_offset[s] >= end);
    end = plan.tile_begin_offset[s] + (plan.stages.stage[s].groups + 1) * 8;
    // Every group may end in a tile that is not full.
    CHECK(plan.stages.stage[s].tiles >= length / plan.stages.stage[s].tile + plan.stages.stage[s].groups);
  }
  CHECK(plan.flags_offset >= end);
  const int64_t records = length * record_bytes(key_bytes, plan.wide_indices);
  CHECK(plan.buffer_offset[0] >= plan.flags_offset + kMaxStages * 4);
  CHECK(plan.buffer_offset[1] >= plan.buffer_offset[0] + (plan.stages.count > 1 ? records : 0));
  CHECK(plan.cuts_offset >= plan.buffer_offset[1] + (plan.stages.count > 2 ? records : 0));
  CHECK(plan.workspace_bytes >= plan.cuts_offset + plan.stages.cuts_bytes);
  if (!plan.wide_indices) {  // what merge_many's docstring says: arrays of records, 17 bytes for each run, and about nothing
    const int64_t arrays = runs <= 32 ? 0 : runs <= 1024 ? 1 : 2;
    CHECK(plan.workspace_bytes <= arrays * records + 17 * runs + length * 3 / 10 + 4096);
    CHECK(plan.workspace_bytes >= arrays * records + 16 * runs);
  }
}

}  // namespace

int main() {
  for (const int key_bytes : {1, 2, 4, 8}) {
    for (const int64_t length : {1, 2, 1000, 16384, 16385, 20000, 65536, 100003, 1 << 20, (1 << 26) - 1, 1 << 26}) {
      for (const int64_t rows : {1, 3, 1000}) {
        check_sort(key_bytes, rows, length, kNarrowIndexLength);
        check_sort(key_bytes, rows, length, 50000);
      }
    }
    for (const int64_t length : {20000, 100003, 1 << 20, 1 << 26}) check_memory(key_bytes, length, key_bytes <= 4 ? 8 : 12);
    check_sort(key_bytes, 1, (int64_t{1} << 33) + 5, kNarrowIndexLength);
    for (const int64_t runs : {1, 2, 3, 9, 31, 32, 33, 1000, 1024, 1025, 5000, 70000}) {
      for (const int64_t length : {1, 1000, 100000, 1 << 26}) check_many(key_bytes, length, runs, runs == 9 ? 10 : kNarrowIndexLength);
    }
  }
  CHECK(plan_merge_sort(make_problem(4, 0, 10, false, 0), DeviceTraits{}).workspace_bytes == 0);
  CHECK(plan_merge_sort(make_problem(4, 1, int64_t{1} << 26, false, 0), DeviceTraits{}).stages.count == 3);
  CHECK(plan_merge_many(MergeManyProblem{}, DeviceTraits{}).stages.count == 0);
  DeviceTraits small;
  small.shared_bytes_per_block = 16 * 1024;
  CHECK(!plan_merge_sort(make_problem(4, 1, 1 << 20, false, 0), small).possible);
  return report();
}
