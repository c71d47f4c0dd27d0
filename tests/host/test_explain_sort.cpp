// What explain says of a sort: the algorithm that is chosen, the workspace of its plan, and the bytes that its passes move.
#include "../../csrc/plan/explain_sort.h"

#include <cstdint>
#include <string>
#include <vector>

#include "check.h"
#include "problems.h"

using namespace gpusort;

namespace {

// Steps follow each other: the first reads the input, the last writes the results, and no step moves nothing.
void check_steps(const SortProblem& problem, const SortExplanation& explanation) {
  CHECK(!explanation.steps.empty());
  const int64_t input = problem.numel() * problem.key.bytes;
  const int64_t output = explain_detail::output_bytes(problem);
  CHECK(explanation.steps.front().bytes_read >= input);
  const int64_t written = explanation.steps.back().bytes_written;
  const bool keys_in_workspace = explanation.note.find("the keys are sorted too") != std::string::npos;
  CHECK(written == output + (keys_in_workspace ? input : 0));
  if (keys_in_workspace) CHECK(problem.key.bytes == 8 && problem.rows == 1 && problem.keys_out == nullptr);
  CHECK(explanation.bytes_moved() >= input + output);
  CHECK(explanation.workspace_bytes >= 0);
  for (const ExplainedStep& step : explanation.steps) {
    CHECK(!step.name.empty() && step.name.find('"') == std::string::npos);
    CHECK(step.bytes_read + step.bytes_written > 0);
    CHECK(step.blocks >= 0 && step.threads >= 0 && step.threads <= 1024 && step.tile >= 0 && step.shared_bytes >= 0);
    CHECK(step.shared_bytes <= 232448);
  }
}

// Every shape to 2^40 elements has a plan that a device can run, whatever the device has of shared memory and clusters.
void check_every_shape_on_every_device() {
  DeviceTraits ampere, ada;
  ampere.sm_count = 108, ampere.shared_bytes_per_block = 166912, ampere.shared_bytes_per_sm = 167936, ampere.compute_major = 8;
  ada.sm_count = 128, ada.shared_bytes_per_block = 101376, ada.shared_bytes_per_sm = 102400, ada.compute_major = 8, ada.compute_minor = 9;
  for (const DeviceTraits& traits : {DeviceTraits(), ampere, ada}) {
    for (const int key_bytes : {1, 2, 4, 8}) {
      for (int64_t length = 1; length <= int64_t{1} << 40; length = length < 70 ? length + 1 : length + length / 3) {
        for (int64_t rows = 1; rows <= (int64_t{1} << 40) / length; rows = rows * 5 + 1) {
          const SortProblem problem = make_problem(key_bytes, rows, length);
          const SortExplanation explanation = explain_sort(problem, SortAlgorithm::kAuto, traits);
          CHECK(!explanation.steps.empty() && explanation.steps.back().bytes_written == explain_detail::output_bytes(problem));
          // At most two copies of keys and indices; tables are a constant and a few bytes for each row or tile.
          CHECK(explanation.workspace_bytes >= 0);
          CHECK(explanation.workspace_bytes / (problem.numel() + (1 << 22)) <= 2 * (key_bytes + 8) + 8);
          for (const ExplainedStep& step : explanation.steps) {
            CHECK(step.blocks >= 0 && step.threads <= 1024 && step.shared_bytes <= traits.shared_bytes_per_block);
          }
        }
      }
    }
  }
}

void check_the_choice_is_the_planners() {
  const DeviceTraits traits;
  for (int key_bytes : {1, 2, 4, 8}) {
    for (const int64_t rows : {1, 3, 1000, 100000}) {
      for (int64_t length = 1; length <= int64_t{1} << 36; length = length * 3 + 1) {
        for (const int index_bytes : {0, 4, 8}) {
          if (index_bytes == 4 && length > int64_t{1} << 31) continue;
          for (const bool keys : {true, false}) {
            if (!keys && index_bytes == 0) continue;
            const SortProblem problem = make_problem(key_bytes, rows, length, keys, index_bytes);
            const SortExplanation explanation = explain_sort(problem, SortAlgorithm::kAuto, traits);
            check_steps(problem, explanation);
            switch (choose_sort_algorithm(problem, SortAlgorithm::kAuto, traits)) {
              case SortAlgorithm::kRows:
                CHECK(explanation.algorithm == "rows" && explanation.workspace_bytes == plan_row_sort(problem, traits).workspace_bytes);
                break;
              case SortAlgorithm::kGrid:
                CHECK(explanation.algorithm == "grid" && explanation.workspace_bytes == plan_grid_sort(problem, traits).workspace_bytes);
                break;
              case SortAlgorithm::kRadix:
                CHECK(explanation.algorithm == "radix" && explanation.workspace_bytes == plan_radix_sort(problem, traits).workspace_bytes);
                break;
              default: CHECK(explanation.algorithm != "radix" && explanation.algorithm != "rows" && explanation.algorithm != "grid");
            }
          }
        }
      }
    }
  }
}

void check_clusters_are_named() {
  DeviceTraits traits;
  const SortProblem problem = make_problem(4, 3, 1000);
  const ExplainedStep clusters = explain_sort(problem, SortAlgorithm::kAuto, traits).steps.front();
  CHECK(clusters.name == "sort a row to a cluster of 8 blocks" && clusters.blocks == 24 && clusters.threads == 128 && clusters.tile == 125);
  traits.compute_major = 8;
  const ExplainedStep blocks = explain_sort(problem, SortAlgorithm::kAuto, traits).steps.front();
  CHECK(blocks.name == "sort a row to a block" && blocks.blocks == 3);
}

void check_named_algorithms() {
  const DeviceTraits traits;
  for (int key_bytes : {1, 2, 4, 8}) {
    for (const int64_t rows : {1, 5, 300}) {
      for (const int64_t length : {1, 100, 5000, 70000, 1000003}) {
        const SortProblem problem = make_problem(key_bytes, rows, length);
        const auto check_one = [&](SortAlgorithm algorithm, const std::string& name, int64_t workspace) {
          const SortExplanation explanation = explain_sort(problem, algorithm, traits);
          check_steps(problem, explanation);
          CHECK(explanation.algorithm == name);
          CHECK(explanation.workspace_bytes == workspace);
        };
        check_one(SortAlgorithm::kMerge, "merge", plan_merge_sort(problem, traits).workspace_bytes);
        check_one(SortAlgorithm::kBitonic, "bitonic", plan_bitonic_sort(problem).workspace_bytes);
        check_one(SortAlgorithm::kSample, "sample", plan_sample_sort(problem).workspace_bytes);
        check_one(SortAlgorithm::kRadix, "radix", plan_radix_sort(problem, traits).workspace_bytes);
        check_one(SortAlgorithm::kRadixScanScatter, "radix, kernel 'scan_scatter'", plan_radix_scan_scatter(problem).workspace_bytes);
        check_one(SortAlgorithm::kRadixBlock, "radix, kernel 'block'", plan_radix_block(problem, 8).workspace_bytes);
      }
    }
  }
}

int64_t moved(const SortProblem& problem, SortAlgorithm algorithm, int digit_bits = 8) {
  return explain_sort(problem, algorithm, DeviceTraits{}, digit_bits).bytes_moved();
}

// By hand, per element.
void check_bytes() {
  constexpr int64_t n = int64_t{1} << 26;
  // One histogram, four passes with 8-byte records in between: 4 + (4 + 8) + 2 * (8 + 8) + (8 + 12).
  CHECK(moved(make_problem(4, 1, n), SortAlgorithm::kRadix) == 68 * n);
  CHECK(moved(make_problem(4, 1, n, true, 0), SortAlgorithm::kRadix) == 36 * n);
  CHECK(moved(make_problem(4, 1, n, true, 4), SortAlgorithm::kRadix) == 64 * n);
  CHECK(moved(make_problem(4, 1, n, false), SortAlgorithm::kRadix) == 64 * n);
  // Records of 12 bytes: 8 + (8 + 12) + 6 * 24 + (12 + 16).
  CHECK(moved(make_problem(8, 1, n), SortAlgorithm::kRadix) == 200 * n);
  CHECK(moved(make_problem(1, 1, n, true, 0), SortAlgorithm::kRadix) == 2 * n);  // counted, and written from the counts
  CHECK(moved(make_problem(4, n / 16, 16), SortAlgorithm::kAuto) == 16 * n);     // one read, one write
  CHECK(moved(make_problem(4, 1, 65536), SortAlgorithm::kAuto) == (4 + 8 + 8 + 12) * 65536);
  // Runs of 8192 on chip (4 + 8), then two stages (8 + 8) + (8 + 12), or three of 12-byte records.
  CHECK(moved(make_problem(4, 1, n), SortAlgorithm::kMerge) == 48 * n);
  CHECK(moved(make_problem(8, 1, n), SortAlgorithm::kMerge) == (8 + 12 + 5 * 12 + 16) * n);
  // 32 passes by one bit: mask 4 + 4, scan 12, scatter 4 + record + record; the first record is the key alone, the last is the results.
  CHECK(moved(make_problem(4, 1, n), SortAlgorithm::kRadixScanScatter) == (32 * 40 - 4 + 4) * n);
  CHECK(moved(make_problem(4, 1, n), SortAlgorithm::kRadixBlock, 4) == (8 * 4 + 8 * 16 - 4 + 4) * n);
  SortProblem window = make_problem(4, 1, n);
  window.begin_bit = 8;
  window.end_bit = 20;  // two digits
  CHECK(moved(window, SortAlgorithm::kRadix) == (4 + 4 + 8 + 8 + 12) * n);
  window.end_bit = 8;
  CHECK(moved(window, SortAlgorithm::kRadix) == 16 * n);
  CHECK(explain_sort(window, SortAlgorithm::kRadix, DeviceTraits{}).steps.size() == 1);
  const SortProblem rows = make_problem(4, 16, int64_t{1} << 20);
  const BucketSortPlan buckets = plan_bucket_sort(rows, DeviceTraits{});
  CHECK(buckets.possible);
  const SortExplanation explanation = explain_buckets(rows, buckets);
  check_steps(rows, explanation);
  CHECK(explanation.bytes_moved() == (4 + 4 + 8 + 8 + 12) * rows.numel());
  CHECK(explanation.workspace_bytes == buckets.workspace_bytes);
}

void check_other_devices() {
  DeviceTraits small;
  small.shared_bytes_per_block = 99 * 1024;
  small.compute_major = 8;
  for (const int64_t length : {16, 4096, 16384, 1 << 20}) {
    const SortProblem problem = make_problem(8, 4, length);
    const SortExplanation explanation = explain_sort(problem, SortAlgorithm::kAuto, small);
    check_steps(problem, explanation);
    for (const ExplainedStep& step : explanation.steps) CHECK(step.shared_bytes <= small.shared_bytes_per_block);
  }
  DeviceTraits none;
  none.shared_bytes_per_block = 16 * 1024;
  CHECK(explain_sort(make_problem(4, 1, 100000), SortAlgorithm::kMerge, none).steps.empty());
  CHECK(explain_sort(make_problem(4, 0, 5), SortAlgorithm::kAuto, small).algorithm == "none");
  CHECK(explain_sort(make_problem(4, 5, 0), SortAlgorithm::kRadix, small).bytes_moved() == 0);
}

}  // namespace

int main() {
  check_every_shape_on_every_device();
  check_the_choice_is_the_planners();
  check_clusters_are_named();
  check_named_algorithms();
  check_bytes();
  check_other_devices();
  return report();
}
