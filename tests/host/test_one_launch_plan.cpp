// csrc/plan/one_launch_plan.h: every plan must cover its rows with resident blocks, fit its device, and keep its parts of the workspace
// apart and within the budget.
#include "../../csrc/plan/one_launch_plan.h"

#include <cstdint>

#include "check.h"
#include "problems.h"
#include "workspace.h"

namespace {

using namespace gpusort;

void check_shape(const SortProblem& problem, const DeviceTraits& traits, const OneLaunchPlan& plan) {
  using namespace one_launch_shapes;
  const int64_t tiles = plan.tiles_per_row;
  CHECK(tiles >= 1 && problem.rows * tiles <= int64_t{kBlocksPerSm} * traits.sm_count);  // all blocks are resident
  CHECK(tiles * plan.tile_length >= problem.length && tiles * (plan.tile_length - 1) < problem.length);
  CHECK(plan.tile_length <= kThreads * plan.items && plan.tile_length <= 65536);
  CHECK(problem.length / tiles >= plan.samples);  // no sample is taken twice
  CHECK(plan.groups_per_row * kOneLaunchGroup >= tiles && (plan.groups_per_row - 1) * kOneLaunchGroup < tiles);
  CHECK(plan.buckets_per_row % tiles == 0 && plan.buckets_per_row <= kMostBuckets && plan.buckets_per_row < 16 * tiles);
  CHECK((1 << plan.levels) >= plan.buckets_per_row && plan.pairs() <= kThreads);
  // Samples of a bucket, and how far the capacity is above the mean: see the head of the plan.
  const double samples = static_cast<double>(plan.samples) * tiles / plan.buckets_per_row;
  const double mean = static_cast<double>(problem.length) / plan.buckets_per_row;
  CHECK(problem.key.bytes == 8 ? samples >= 10 && plan.bucket_capacity >= 2.99 * mean : samples >= 31 && plan.bucket_capacity >= 2 * mean);
  CHECK(plan.shared_bytes <= plan.shared_limit);
  CHECK(kBlocksPerSm * (plan.shared_limit + kOneLaunchStaticBytes) <= traits.shared_bytes_per_sm);
  CHECK(plan.tiles_per_row * plan.samples * problem.key.bytes + plan.samples * 4 <= plan.shared_bytes);
  CHECK(partition_layout(problem.key.bytes, kThreads, plan.items, plan.buckets_per_row, 1 << plan.levels).bytes <= plan.shared_bytes);
  // What find_positions() keeps of all buckets lies where the counters were.
  CHECK(16 * plan.pairs() <= partition_layout(problem.key.bytes, kThreads, plan.items, plan.buckets_per_row, 1 << plan.levels).offsets);
}

void check_workspace(const SortProblem& problem, const OneLaunchPlan& plan) {
  const int64_t rows = problem.rows, buckets = rows * plan.buckets_per_row, tiles = rows * plan.tiles_per_row, numel = problem.numel();
  const int64_t key_bytes = problem.key.bytes;
  WorkspaceParts lasting = {{plan.splitters_offset, buckets * key_bytes},
                            {plan.begins_offset, (buckets + rows) * 4},
                            {plan.overflow_offset, bucket_overflow_words(rows, plan.buckets_per_row) * 4},
                            {plan.indices_offset, numel * 4}};
  CHECK((plan.keys_offset >= 0) == (problem.keys_out == nullptr));
  if (plan.keys_offset >= 0) lasting.push_back({plan.keys_offset, numel * key_bytes});
  auto early = lasting, late = lasting;
  early.push_back({plan.samples_offset, tiles * plan.samples * key_bytes});
  early.push_back({plan.counts_offset, tiles * plan.pairs() * 4});
  early.push_back({plan.group_counts_offset, rows * plan.groups_per_row * plan.pairs() * 8});
  check_apart(early, plan.workspace_bytes);
  const bool room = problem.index_bytes == 8 && key_bytes == 4;
  CHECK((plan.spare_keys_offset >= 0) == !room);
  if (!room) late.push_back({plan.spare_keys_offset, numel * key_bytes});
  check_apart(late, plan.workspace_bytes);
}

void check_all() {
  const int64_t lengths[] = {5600, 8192, 10007, 32000, 50257, 65536, 128256, 262144, 1 << 20, (1 << 20) + 1, 2000003, 1 << 21};
  int possible = 0;
  for (const int key_bytes : {4, 8}) {
    for (const int64_t rows : {1, 2, 7, 8, 32, 100, 132}) {
      for (const int64_t length : lengths) {
        for (int outputs = 0; outputs < 4; ++outputs) {
          const SortProblem problem = make_problem(key_bytes, rows, length, outputs < 2, outputs % 2 ? 8 : 4);
          for (const int sm_count : {1, 16, 132}) {
            DeviceTraits traits;
            traits.sm_count = sm_count;
            const OneLaunchPlan plan = plan_one_launch(problem, traits);
            if (!plan.possible) continue;
            ++possible;
            check_shape(problem, traits, plan);
            check_workspace(problem, plan);
          }
        }
      }
    }
  }
  CHECK(possible > 400);
}

void check_reach() {
  const DeviceTraits traits;
  for (const SortProblem& problem : {make_problem(4, 1, 1 << 20), make_problem(4, 8, 128256), make_problem(4, 32, 32000),
                                     make_problem(4, 2, 1 << 20), make_problem(4, 1, 1 << 21), make_problem(8, 1, 1 << 20)}) {
    CHECK(plan_one_launch(problem, traits).possible);
  }
  CHECK(!plan_one_launch(make_problem(4, 64, 128256), traits).possible);           // more than the chip holds
  CHECK(!plan_one_launch(make_problem(4, 1, 1 << 20, true, 0), traits).possible);  // no indices
  CHECK(!plan_one_launch(make_problem(2, 1, 1 << 20), traits).possible);
  CHECK(!plan_one_launch(make_problem(4, 1, 1000), traits).possible);
  DeviceTraits small;
  small.shared_bytes_per_sm = 100 * 1024;
  small.shared_bytes_per_block = 99 * 1024;
  small.compute_major = 8;
  CHECK(!plan_one_launch(make_problem(4, 1, 1 << 20), small).possible);
}

}  // namespace

int main() {
  check_all();
  check_reach();
  return report();
}
