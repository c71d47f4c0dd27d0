// csrc/plan/bucket_sort_plan.h: every plan must cover its rows, fit its device, keep its parts of the workspace apart and within the
// budget.
#include "../../csrc/plan/bucket_sort_plan.h"

#include <cstdint>

#include "check.h"
#include "problems.h"
#include "workspace.h"

namespace {

using namespace gpusort;

void check_tiles_and_samples(const SortProblem& problem, const DeviceTraits& traits, const BucketSortPlan& plan) {
  const int64_t tiles = plan.tiles_per_row, tile = plan.tile_length;
  CHECK(tiles * tile >= problem.length && (tiles - 1) * tile < problem.length);
  CHECK(tile % bucket_sort_shapes::kThreads == 0 && tile <= int64_t{bucket_sort_shapes::kThreads} * plan.items);
  CHECK(tile <= 65536);  // a place in a tile has 16 bits
  CHECK(plan.items % bucket_sort_shapes::kGroup == 0);
  CHECK(plan.buckets_per_row >= 2 && plan.buckets_per_row <= kMostBuckets);
  CHECK((1 << plan.levels) >= plan.buckets_per_row && (1 << plan.levels) < 2 * plan.buckets_per_row);
  CHECK(plan.buckets_per_row <= 2 * bucket_sort_shapes::kThreads);  // a thread scans two buckets
  CHECK(plan.samples_per_row % kSampleChunk == 0 && plan.samples_per_row <= kMostBucketSamples);
  CHECK(plan.samples_per_row >= 2 * plan.buckets_per_row && plan.samples_per_row <= problem.length);
  CHECK(plan.sample_blocks >= 1 && plan.sample_blocks <= plan.samples_per_row / kSampleChunk);
  const int code_bytes = problem.key.bytes == 8 ? 8 : 4;
  CHECK(plan.samples_per_row * (code_bytes + 4) <= plan.shared_limit);
  CHECK(plan.partition_shared_bytes <= plan.shared_limit && plan.shared_limit < traits.shared_bytes_per_block);
  const PartitionLayout layout =
      partition_layout(problem.key.bytes, bucket_sort_shapes::kThreads, plan.items, plan.buckets_per_row, 1 << plan.levels);
  CHECK(layout.bytes == plan.partition_shared_bytes);
  CHECK(layout.counter_stride >= 2 * plan.buckets_per_row && layout.counter_stride % 16 == 0);
  CHECK(layout.keys % 16 == 0 && layout.splitters % 16 == 0 && layout.words % 16 == 0);
}

void check_workspace(const SortProblem& problem, const BucketSortPlan& plan) {
  const int64_t buckets = problem.rows * plan.buckets_per_row, key_bytes = problem.key.bytes, numel = problem.numel();
  WorkspaceParts parts = {{plan.splitters_offset, buckets * (key_bytes == 8 ? 8 : 4)},
                          {plan.begins_offset, (buckets + problem.rows) * 4},
                          {plan.totals_offset, buckets * 4},
                          {plan.overflow_offset, (2 * buckets + 2) * 4}};
  CHECK((plan.keys_offset >= 0) == (problem.keys_out == nullptr));
  CHECK((plan.indices_offset >= 0) == (problem.indices_out != nullptr));
  if (plan.keys_offset >= 0) parts.push_back({plan.keys_offset, numel * key_bytes});
  if (plan.indices_offset >= 0) parts.push_back({plan.indices_offset, numel * 4});
  const int64_t counts = buckets * plan.tiles_per_row * 4;
  if (plan.spare_keys_offset >= 0) parts.push_back({plan.spare_keys_offset, numel * key_bytes});
  // Counts may lie where spare keys are written later.
  if (plan.counts_offset == plan.spare_keys_offset) {
    CHECK(counts <= numel * key_bytes);
  } else {
    parts.push_back({plan.counts_offset, counts});
  }
  check_apart(parts, plan.workspace_bytes);
  // The results' owner pays at most so much more: both outputs with 64-bit indices.
  if (problem.keys_out != nullptr && problem.indices_out != nullptr && problem.index_bytes == 8 && numel >= 100000) {
    // Of 64-bit keys a little more: bounds and lists of the buckets.
    CHECK(plan.workspace_bytes <= (key_bytes == 8 ? 12 * numel + numel / 16 : 8 * numel));
  }
}

void check_shapes() {
  const int64_t lengths[] = {5600, 5601, 8192, 16384, 32000, 50257, 65536, 65537, 128256, 262144, 1000003, 1 << 20, 1 << 22, 5000000};
  for (int key_bytes : {2, 4, 8}) {
    for (int64_t rows : {1, 2, 3, 7, 8, 64, 131, 132, 133, 1024, 20000}) {
      for (int64_t length : lengths) {
        for (int outputs = 0; outputs < 5; ++outputs) {
          const SortProblem problem = make_problem(key_bytes, rows, length, outputs < 3, outputs == 0 ? 0 : outputs % 2 ? 8 : 4);
          for (int sm_count : {1, 108, 132}) {
            DeviceTraits traits;
            traits.sm_count = sm_count;
            const BucketSortPlan plan = plan_bucket_sort(problem, traits);
            CHECK(plan.possible);
            if (!plan.possible) continue;
            check_tiles_and_samples(problem, traits, plan);
            check_workspace(problem, plan);
            // Buckets are at most half full on average, so that chance does not overfill them, up to the longest rows that this sort is
            // for.
            if (length <= 1 << 22) CHECK(plan.bucket_capacity * int64_t{plan.buckets_per_row} >= 2 * length);
          }
        }
      }
    }
  }
}

void check_what_is_left_to_others() {
  const DeviceTraits traits;
  CHECK(!plan_bucket_sort(make_problem(1, 1, 1 << 20, true, 8), traits).possible);
  CHECK(!plan_bucket_sort(make_problem(4, 1, 1000, true, 8), traits).possible);
  CHECK(!plan_bucket_sort(make_problem(4, 0, 1 << 20, true, 8), traits).possible);
  CHECK(!plan_bucket_sort(make_problem(4, 1, (int64_t{1} << 30) + 1, true, 8), traits).possible);
  SortProblem window = make_problem(4, 1, 1 << 20, true, 8);
  window.end_bit = 31;
  CHECK(!plan_bucket_sort(window, traits).possible);
  DeviceTraits small;
  small.shared_bytes_per_block = 100 * 1024;
  CHECK(!plan_bucket_sort(make_problem(4, 1, 1 << 20, true, 8), small).possible);
}

void check_options() {
  BucketSortOptions options;
  options.capacity = 1000;
  options.buckets = 77;
  options.samples_per_bucket = 4;
  options.items = 8;
  const SortProblem problem = make_problem(4, 3, 1 << 20, true, 8);
  const BucketSortPlan plan = plan_bucket_sort(problem, DeviceTraits(), options);
  CHECK(plan.possible && plan.bucket_capacity == 1000 && plan.buckets_per_row == 77 && plan.items == 8);
  CHECK(plan.samples_per_row == 384);
  check_tiles_and_samples(problem, DeviceTraits(), plan);
}

}  // namespace

int main() {
  check_shapes();
  check_what_is_left_to_others();
  check_options();
  return report();
}
