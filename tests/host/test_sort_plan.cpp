// csrc/plan/sort_plan.h: which shapes the bucket sort is for, and what is left to others.
#include "../../csrc/plan/sort_plan.h"

#include <cstdint>
#include <string>
#include <variant>

#include "../../csrc/plan/bucket_launches.h"
#include "check.h"
#include "problems.h"

namespace {

using namespace gpusort;

SortAlgorithm chosen(const SortProblem& problem, SortAlgorithm requested = SortAlgorithm::kAuto) {
  return choose_sort_algorithm(problem, requested, DeviceTraits());
}

bool buckets_are_faster(const SortProblem& problem) {
  return sort_plan_detail::buckets_are_faster(problem, DeviceTraits());
}

void check_long_rows() {
  struct Shape {
    int key_bytes;
    int64_t rows, length;
  };
  const Shape shapes[] = {{4, 1024, 65536}, {4, 256, 1 << 18}, {4, 64, 1 << 20}, {4, 64, 128256}, {4, 128, 50257},
                          {4, 8, 128256},   {4, 2, 1 << 20},   {4, 1, 1 << 20},  {8, 1, 1 << 20}, {8, 256, 65536}};
  for (const Shape& shape : shapes) {
    for (int index_bytes : {4, 8}) {
      for (bool keys : {true, false}) {
        const SortProblem problem = make_problem(shape.key_bytes, shape.rows, shape.length, keys, index_bytes);
        CHECK(buckets_are_faster(problem));
        CHECK(chosen(problem) == SortAlgorithm::kBuckets);
        CHECK(chosen(problem, SortAlgorithm::kBuckets) == SortAlgorithm::kBuckets);
        CHECK(chosen(problem, SortAlgorithm::kRadix) == SortAlgorithm::kRadix);
      }
    }
  }
  CHECK(buckets_are_faster(make_problem(4, 32, 32000)));
  for (const SortProblem& problem :
       {make_problem(4, 3855, 17408), make_problem(8, 60, 17408), make_problem(4, 170, 24576), make_problem(4, 1, (1 << 20) + 1),
        make_problem(4, 1, 2162688), make_problem(4, 1, 1 << 22), make_problem(4, 16, 1 << 22), make_problem(8, 1, 1056768),
        make_problem(4, 4, 1 << 24), make_problem(4, 1, 1 << 24)}) {
    CHECK(chosen(problem) == SortAlgorithm::kBuckets);
  }
  for (const SortProblem& problem : {make_problem(4, 1, 1 << 20, true, 0), make_problem(4, 64, 1 << 20, true, 0),
                                     make_problem(4, 128, 50257, true, 0), make_problem(8, 1, 1 << 20, true, 0)}) {
    CHECK(chosen(problem) == SortAlgorithm::kBuckets);
    CHECK(std::holds_alternative<PulledBucketsPlan>(plan_bucket_launches(problem, DeviceTraits())));
  }
}

void check_what_is_left_to_others() {
  const SortProblem radix[] = {make_problem(4, 4, 1 << 24, true, 4),  make_problem(4, 1, (1 << 22) + 1),
                               make_problem(8, 1, 1 << 22),           make_problem(2, 256, 1 << 18),
                               make_problem(2, 64, 1 << 20, true, 0), make_problem(4, 1, (1 << 20) + 1, true, 0)};
  for (const SortProblem& problem : radix) {
    CHECK(!buckets_are_faster(problem));
    CHECK(chosen(problem) == SortAlgorithm::kRadix);
  }
  CHECK(!buckets_are_faster(make_problem(4, 1, 1 << 18)) && chosen(make_problem(4, 1, 1 << 18)) == SortAlgorithm::kGrid);
  CHECK(!buckets_are_faster(make_problem(4, 10000, 4096)) && chosen(make_problem(4, 10000, 4096)) == SortAlgorithm::kRows);
  SortProblem window = make_problem(4, 64, 1 << 20);
  window.begin_bit = 8;
  CHECK(!buckets_are_faster(window) && chosen(window) == SortAlgorithm::kRadix);
  CHECK(chosen(window, SortAlgorithm::kBuckets) == SortAlgorithm::kRadix);
}

// By name, a family runs the shapes that it takes, and no other.
void check_names() {
  SortAlgorithm algorithm;
  CHECK(parse_sort_algorithm("rows", &algorithm) && algorithm == SortAlgorithm::kRows);
  CHECK(chosen(make_problem(4, 10, 4096), algorithm) == SortAlgorithm::kRows);
  CHECK(chosen(make_problem(4, 10, 1 << 20), algorithm) == SortAlgorithm::kRadix);
  CHECK(parse_sort_algorithm("grid", &algorithm) && algorithm == SortAlgorithm::kGrid);
  CHECK(chosen(make_problem(4, 1, 4096), algorithm) == SortAlgorithm::kGrid);
  CHECK(chosen(make_problem(4, 1, 1 << 24), algorithm) == SortAlgorithm::kRadix);
  CHECK(parse_sort_algorithm("buckets", &algorithm) && algorithm == SortAlgorithm::kBuckets);
  CHECK(!parse_sort_algorithm("quick", &algorithm) && !parse_sort_algorithm("", &algorithm));
  for (const char* name : {"auto", "radix", "merge", "bitonic", "sample", "rows", "grid", "buckets"}) {
    CHECK(std::string(kSortAlgorithmNames).find(std::string("'") + name + "'") != std::string::npos);
  }
}

}  // namespace

int main() {
  check_long_rows();
  check_what_is_left_to_others();
  check_names();
  return report();
}
