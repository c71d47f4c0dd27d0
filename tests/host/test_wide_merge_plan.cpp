// plan/wide_merge_plan.h: stages end in one run, tiles have room for what random runs give them, parts of the memory do not overlap, and
// the samples of a run lie in it.
#include "../../csrc/plan/wide_merge_plan.h"

#include <cstdint>

#include "../../csrc/plan/merge_sort_plan.h"
#include "check.h"

using namespace gpusort;

namespace {

void check_schedule(int key_bytes, int64_t rows, int64_t row_length, int64_t run_length) {
  const WideMergeSchedule schedule = plan_wide_merge(key_bytes, rows, row_length, run_length, DeviceTraits{});
  CHECK(schedule.count >= 1 && schedule.count <= kMostWideStages);
  int64_t left = (row_length + run_length - 1) / run_length, length = run_length;
  for (int s = 0; s < schedule.count; ++s) {
    const WideMergeStage& stage = schedule.stage[s];
    CHECK(stage.runs == left && stage.run_length == length);
    CHECK(stage.ways >= 1 && stage.ways <= kMostWideWays && (stage.ways & (stage.ways - 1)) == 0);
    CHECK(stage.groups == (left + stage.ways - 1) / stage.ways);
    CHECK(stage.sample_run_length * kWideSampleStep == length);

    // Every sample of a run lies in it, the shorter last one too.
    const int64_t last_length = row_length - (stage.runs - 1) * length;
    const int64_t last_samples = stage.sample_row_length - (stage.runs - 1) * stage.sample_run_length;
    CHECK(last_samples >= 0 && last_samples <= stage.sample_run_length);
    for (int64_t run = 0; run < kWideSampleStep; ++run) {
      CHECK(wide_sample_phase(run) >= 0 && wide_sample_phase(run) < kWideSampleStep);
      CHECK(last_samples == 0 || (last_samples - 1) * kWideSampleStep + wide_sample_phase(run) < last_length);
    }
    const int64_t group_samples = stage.groups == 1 ? stage.sample_row_length : stage.ways * stage.sample_run_length;
    CHECK(stage.step >= 1 && stage.step <= kMostWideSamples);
    CHECK(stage.step * stage.tiles_per_group >= group_samples && stage.step * (stage.tiles_per_group - 1) < group_samples);
    CHECK(stage.tiles == rows * stage.groups * stage.tiles_per_group);

    // The narrow stages bring the samples of a group together and no more.
    int64_t sample_ways = 1;
    for (int n = 0; n < stage.sample_stages.count; ++n) sample_ways *= stage.sample_stages.stage[n].ways;
    const int64_t sample_runs = (stage.sample_row_length + stage.sample_run_length - 1) / stage.sample_run_length;
    CHECK(stage.groups > 1 ? sample_ways == stage.ways : sample_ways >= sample_runs);

    const int64_t bounds = rows * stage.groups * (stage.tiles_per_group + 1);
    CHECK(bounds * stage.ways * 4 <= stage.bounds_offset && stage.bounds_offset + bounds * 8 <= stage.begins_offset);
    CHECK(stage.begins_offset + bounds * 4 <= stage.lists_offset && stage.lists_offset + (2 + 2 * stage.tiles) * 4 <= stage.cuts_bytes);
    CHECK(2 * stage.samples_bytes <= schedule.sample_cuts_offset && stage.samples_bytes >= rows * stage.sample_row_length * 8);
    CHECK(schedule.sample_cuts_offset + stage.sample_stages.cuts_bytes <= schedule.cuts_offset);
    const bool last = s + 1 == schedule.count;
    CHECK(last ? stage.cuts_bytes <= schedule.workspace_bytes : schedule.cuts_offset + stage.cuts_bytes <= schedule.scratch_bytes);
    for (const int64_t offset : {stage.bounds_offset, stage.begins_offset, stage.lists_offset, schedule.cuts_offset})
      CHECK(offset % 256 == 0);
    left = stage.groups;
    length *= stage.ways;
  }
  CHECK(left == 1);
}

// What wide stages need beside the records fits the keys' results, and the rest is no more than the narrow stages' cuts.
void check_sort(int key_bytes, int64_t rows, int64_t length, bool wide) {
  static int64_t somewhere;
  SortProblem problem;
  problem.key.bytes = key_bytes;
  problem.rows = rows;
  problem.length = length;
  problem.end_bit = key_bytes * 8;
  problem.keys_out = &somewhere;
  problem.indices_out = &somewhere;
  const MergeSortPlan plan = plan_merge_sort(problem, DeviceTraits{});
  CHECK((plan.wide.count > 0) == wide);
  if (plan.wide.count > 0) {
    CHECK(plan.results_buffer == (plan.wide.count == 1 ? -1 : (plan.wide.count - 1) % 2));
    CHECK(plan.wide.scratch_bytes <= rows * length * key_bytes);
    CHECK(plan.workspace_bytes <= rows * length * 8 + rows * length / 10 + 4096);
  }
  for (const int index_bytes : {4, 8}) {  // without both results as they are above there is no room for wide stages
    problem.index_bytes = index_bytes;
    problem.keys_out = index_bytes == 4 ? &somewhere : nullptr;
    CHECK(plan_merge_sort(problem, DeviceTraits{}).wide.count == 0);
  }
}

}  // namespace

int main() {
  for (const int64_t run_length : {64, 1024, 8192}) {
    for (const int64_t runs : {2, 3, 100, 128, 129, 1000, 8192, 16384, 16385, 40000}) {
      for (const int64_t cut : {0, 1, 63, 1000}) {
        if (cut < run_length) check_schedule(4, run_length == 64 ? 3 : 1, runs * run_length - cut, run_length);
      }
    }
  }
  for (const int key_bytes : {1, 2, 4}) {
    check_sort(key_bytes, 1, int64_t{1} << 26, true);
    check_sort(key_bytes, 1, (int64_t{1} << 26) - 12345, true);
    check_sort(key_bytes, 1, int64_t{1} << 28, true);
    check_sort(key_bytes, 3, int64_t{1} << 24, true);
    check_sort(key_bytes, 3, (int64_t{1} << 24) + 1, false);  // rows padded to whole runs
    check_sort(key_bytes, 1, int64_t{1} << 20, false);
    check_sort(key_bytes, 64, int64_t{1} << 20, true);  // one stage
  }
  check_sort(4, 1, int64_t{1} << 22, false);  // two stages are not worth it yet
  check_sort(4, 1, 3 << 21, true);
  check_sort(8, 1, int64_t{1} << 26, false);
  CHECK(plan_wide_merge(4, 1, int64_t{1} << 26, 8192, DeviceTraits{}).count == 2);
  return report();
}
