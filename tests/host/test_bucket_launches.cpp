// csrc/plan/bucket_launches.h: one launch for few keys or where nothing else does without a scatter, pulled buckets where they are
// possible, else several launches, each with the plan of its own file.
#include "../../csrc/plan/bucket_launches.h"

#include <cstdint>
#include <initializer_list>

#include "../../csrc/plan/explain_sort.h"
#include "check.h"
#include "problems.h"

namespace {

using namespace gpusort;

bool in_one_launch(const SortProblem& problem, const DeviceTraits& traits = {}) {
  return std::holds_alternative<OneLaunchPlan>(plan_bucket_launches(problem, traits));
}

void check_known_shapes() {
  CHECK(in_one_launch(make_problem(4, 1, 1 << 19)) && in_one_launch(make_problem(8, 1, 1 << 19)));
  CHECK(!in_one_launch(make_problem(4, 32, 32000)) && !in_one_launch(make_problem(4, 8, 128256)));
  CHECK(in_one_launch(make_problem(4, 32, 32000, true, 4)) && !in_one_launch(make_problem(8, 1, 1 << 20)));
  CHECK(!in_one_launch(make_problem(4, 64, 128256)));  // more than the chip holds
  CHECK(!in_one_launch(make_problem(4, 1, 1 << 20, true, 0)));
  CHECK(!in_one_launch(make_problem(2, 1, 1 << 20)));
  const SortProblem long_row = make_problem(4, 1, 1 << 21), without_room = make_problem(4, 1, 1 << 21, true, 4);
  CHECK(!in_one_launch(long_row) && in_one_launch(without_room));
  CHECK(std::holds_alternative<PulledBucketsPlan>(plan_bucket_launches(long_row, {})));
  CHECK(std::holds_alternative<PulledBucketsPlan>(plan_bucket_launches(make_problem(4, 128, 50257), {})));
  CHECK(std::holds_alternative<MappedBucketsPlan>(plan_bucket_launches(make_problem(4, 1, 1 << 24), {})));
  DeviceTraits few;
  few.sm_count = 16;
  CHECK(!in_one_launch(make_problem(4, 1, 1 << 20), few));
}

void check_every_shape() {
  int one = 0, pulling = 0, several = 0, twice = 0;
  for (const int key_bytes : {2, 4, 8}) {
    for (const int64_t rows : {1, 4, 32, 132, 1024}) {
      for (const int64_t length : {5600, 32000, 65536, 128256, 1 << 20, 1 << 22, 1 << 24}) {
        for (const int index_bytes : {0, 4, 8}) {
          const SortProblem problem = make_problem(key_bytes, rows, length, true, index_bytes);
          const DeviceTraits traits;
          if (!bucket_sort_can_run(problem, traits)) continue;
          const BucketLaunches launches = plan_bucket_launches(problem, traits);
          const OneLaunchPlan one_launch = plan_one_launch(problem, traits);
          const PulledBucketsPlan pulled_buckets = plan_pulled_buckets(problem, traits);
          const BucketSortPlan bucket_sort = plan_bucket_sort(problem, traits);
          const SortExplanation explanation = explain_sort(problem, SortAlgorithm::kBuckets, traits);
          if (const auto* plan = std::get_if<OneLaunchPlan>(&launches)) {
            ++one;
            CHECK(one_launch.possible && plan->possible && plan->workspace_bytes == one_launch.workspace_bytes);
            CHECK(explanation.steps.size() == 2 && explanation.workspace_bytes == one_launch.workspace_bytes);
          } else if (const auto* pulled = std::get_if<PulledBucketsPlan>(&launches)) {
            ++pulling;
            CHECK(pulled_buckets.possible && pulled->possible && pulled->workspace_bytes == pulled_buckets.workspace_bytes);
            CHECK(explanation.steps.size() == 2 && explanation.workspace_bytes == pulled_buckets.workspace_bytes);
          } else if (const auto* mapped = std::get_if<MappedBucketsPlan>(&launches)) {
            ++twice;
            CHECK(mapped->possible && explanation.steps.size() == 3 && explanation.workspace_bytes == mapped->workspace_bytes);
          } else {
            ++several;
            CHECK(!one_launch.possible && !pulled_buckets.possible && std::get<BucketSortPlan>(launches).possible);
            CHECK(std::get<BucketSortPlan>(launches).workspace_bytes == bucket_sort.workspace_bytes);
            CHECK(explanation.steps.size() == 3 && explanation.workspace_bytes == bucket_sort.workspace_bytes);
          }
        }
      }
    }
  }
  CHECK(one > 20 && pulling > 20 && several > 80 && twice > 0);
}

}  // namespace

int main() {
  check_known_shapes();
  check_every_shape();
  return report();
}
