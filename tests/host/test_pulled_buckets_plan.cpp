// csrc/plan/pulled_buckets_plan.h: every plan must cover its rows, fit its device, take enough samples, and keep its parts of the workspace
// apart and within the budget.
#include "../../csrc/plan/pulled_buckets_plan.h"

#include <algorithm>
#include <cstdint>

#include "check.h"
#include "problems.h"
#include "workspace.h"

namespace {

using namespace gpusort;

void check_shape(const SortProblem& problem, const DeviceTraits& traits, const PulledBucketsPlan& plan) {
  using namespace pulled_shapes;
  const int64_t tiles = plan.tiles_per_row, length = problem.length;
  CHECK(tiles >= 1 && tiles <= kMostTiles && tiles * plan.tile_length >= length && (tiles - 1) * plan.tile_length < length);
  CHECK(plan.tile_length % kThreads == 0 && plan.tile_length <= kThreads * items_of(problem.key.bytes));
  CHECK(plan.buckets_per_row >= 2 && plan.buckets_per_row <= kMostBuckets && (1 << plan.levels) >= plan.buckets_per_row);
  CHECK(plan.bucket_capacity * plan.buckets_per_row >= 2 * length);
  CHECK(plan.samples_per_row >= kLeastSamples * plan.buckets_per_row && plan.samples_per_row % kSampleChunk == 0);
  CHECK(plan.samples_per_row >= 32 * plan.buckets_per_row || problem.key.bytes == 8);
  CHECK(plan.sample_blocks >= 1 && plan.sample_blocks <= std::max<int64_t>(traits.sm_count / problem.rows, 1));
  if (plan.samples_per_row > kMostBucketSamples) {
    CHECK(plan.samples_per_row % kSampleRun == 0 && plan.samples_per_row * problem.key.bytes <= plan.sample_shared_limit);
    CHECK(plan.sample_shared_limit + kRankStaticBytes <= traits.shared_bytes_per_block);
  }
  CHECK(plan.tile_shared_bytes <= plan.shared_limit && 2 * plan.shared_limit < traits.shared_bytes_per_sm);
  // The words of the tiles' parts lie behind the sources, in the records of the bucket.
  CHECK(plan.bucket_capacity * 4 + (tiles + 1) * 4 <= (plan.bucket_capacity + 4) * 8);
  CHECK(plan.run_lanes >= 8 && plan.run_lanes <= 32 && (plan.run_lanes & (plan.run_lanes - 1)) == 0);
}

void check_workspace(const SortProblem& problem, const PulledBucketsPlan& plan) {
  const int64_t rows = problem.rows, buckets = rows * plan.buckets_per_row, key_bytes = problem.key.bytes;
  const int64_t stride = pulled_shapes::row_stride(problem.length);
  CHECK(stride >= problem.length && stride % 8 == 0);
  WorkspaceParts parts = {{plan.splitters_offset, buckets * key_bytes},
                          {plan.begins_offset, (buckets + rows) * 4},
                          {plan.overflow_offset, bucket_overflow_words(rows, plan.buckets_per_row) * 4},
                          {plan.shares_offset, buckets * 4},
                          {plan.starts_offset, rows * plan.tiles_per_row * plan.pairs() * 4},
                          {plan.tile_keys_offset, rows * stride * key_bytes}};
  CHECK(plan.indexed() == (problem.indices_out != nullptr));
  if (plan.indexed()) parts.push_back({plan.tile_places_offset, rows * stride * 2});
  check_apart(parts, plan.workspace_bytes);
  // The samples are there before the tiles' keys.
  CHECK(plan.samples_offset == plan.tile_keys_offset);
  CHECK(plan.samples_per_row <= kMostBucketSamples || plan.samples_per_row <= stride);
  CHECK(plan.workspace_bytes <= problem.numel() * (key_bytes + (plan.indexed() ? 4 : 2)) + 256);
}

void check_all() {
  const int64_t lengths[] = {5600,   8192,    10007,         17409,   32000,   50257,   128256,
                             262144, 1 << 20, (1 << 20) + 1, 2000003, 1 << 21, 4194303, 1 << 22};
  int possible = 0;
  for (const int key_bytes : {4, 8}) {
    for (const int64_t rows : {1, 2, 7, 16, 128, 1000, 4000}) {
      for (const int64_t length : lengths) {
        for (const int sm_count : {1, 16, 132}) {
          DeviceTraits traits;
          traits.sm_count = sm_count;
          for (const int index_bytes : {0, 8}) {
            const SortProblem problem = make_problem(key_bytes, rows, length, true, index_bytes);
            const PulledBucketsPlan plan = plan_pulled_buckets(problem, traits);
            if (!plan.possible) continue;
            ++possible;
            check_shape(problem, traits, plan);
            check_workspace(problem, plan);
          }
        }
      }
    }
  }
  CHECK(possible > 800);
}

void check_reach() {
  const DeviceTraits traits;
  for (const SortProblem& problem : {make_problem(4, 1, 1 << 22), make_problem(4, 16, 1 << 22), make_problem(4, 128, 50257),
                                     make_problem(4, 1024, 65536), make_problem(8, 1, 1 << 21), make_problem(8, 64, 128256)}) {
    CHECK(plan_pulled_buckets(problem, traits).possible);
  }
  CHECK(plan_pulled_buckets(make_problem(4, 1, 1 << 20), traits).tile_length == 4096);  // two to every SM
  CHECK(plan_pulled_buckets(make_problem(4, 1, 1 << 22), traits).tile_length == 8192);
  CHECK(!plan_pulled_buckets(make_problem(4, 1, (1 << 22) + 1), traits).possible);     // more buckets than a tile counts
  CHECK(!plan_pulled_buckets(make_problem(4, 1, 1 << 20, true, 4), traits).possible);  // no room for what is left over
  CHECK(!plan_pulled_buckets(make_problem(4, 1, 1 << 20, false, 8), traits).possible);
  CHECK(plan_pulled_buckets(make_problem(4, 1, 1 << 20, true, 0), traits).possible);  // keys alone leave nothing but keys
  CHECK(!plan_pulled_buckets(make_problem(2, 1, 1 << 20), traits).possible);
}

}  // namespace

int main() {
  check_all();
  check_reach();
  return report();
}
