// csrc/plan/mapped_buckets_plan.h: every plan must cover its rows by few enough
// digits, have room for the partly filled chunks, keep its tables apart, and
// take no more memory than the radix sort.
#include "../../csrc/plan/mapped_buckets_plan.h"

#include <cstdint>

#include "../../csrc/plan/explain_sort.h"
#include "check.h"
#include "problems.h"
#include "workspace.h"

namespace {

using namespace gpusort;
using namespace mapped_shapes;

void check_plan(const SortProblem& problem, const MappedBucketsPlan& plan) {
  const int64_t rows = problem.rows, length = problem.length, numel = problem.numel(), regions = plan.regions(rows);
  const int bits = plan.region_bits + plan.part_bits;
  CHECK(length >> bits <= kMeanBucket && length >> (bits - 1) > kMeanBucket);
  CHECK(2 * kMeanBucket == kBucket.threads * kBucket.items);
  CHECK(plan.region_bits >= 1 && plan.part_bits >= plan.region_bits && plan.part_bits <= kMostDigitBits);
  CHECK(plan.region_bits + plan.part_bits <= kBinBits && regions <= kMostRegions && length <= int64_t{1} << kIndexBits);
  CHECK(plan.tiles_per_row * kTile >= length && (plan.tiles_per_row - 1) * kTile < length);
  // Whole blocks of samples and of bins; a thread judges four bins, of one
  // bucket or more.
  CHECK(plan.sample_bits >= bits + 3 && plan.sample_bits >= 10 && (rows << plan.sample_bits) > int64_t{1} << (kSampleBits - 1));
  CHECK(plan.tested_bits >= bits && plan.tested_bits <= bits + 2 && plan.tested_bits <= kBinBits && plan.tested_bits >= 11);
  CHECK(length >> plan.sample_bits >= 1);
  // A tile meets two chunks at most, a region has a number for every chunk it
  // may need, and there is room for all.
  const int64_t chunk = int64_t{1} << plan.chunk_bits;
  CHECK(chunk >= kTile && plan.chunks_per_region * chunk > length);
  CHECK(plan.first_chunks * chunk <= numel);
  const int64_t second_chunks = plan.cells_offset / (8 * chunk);
  CHECK(plan.first_chunks + second_chunks >= numel / chunk + regions);
  // The words in the upper bits of the first indices of the workspace.
  CHECK(kTableBits * (regions + 2) <= numel);

  // Blocks of the buckets: no more than buckets, in at most kMostTurns turns.
  const int64_t fitting = int64_t{kBucketBlocksPerSm} * plan.device.sm_count, blocks = plan.bucket_blocks(rows);
  CHECK(blocks >= fitting && blocks <= kMostTurns * fitting && blocks <= plan.buckets(rows));

  check_apart({{0, plan.radix.cleared_bytes},
               {plan.cells_offset, rows * 4 << kCellBits},
               {plan.claims_offset, regions * 4},
               {plan.pairs_offset, rows * 8},
               {plan.control_offset, 64},
               {plan.bins_offset, rows * 4 << plan.tested_bits},
               {plan.chunk_offset, regions * plan.chunks_per_region * 4},
               {plan.map_offset, rows * 4 << kCellBits},
               {plan.samples_offset, rows * 4 << plan.sample_bits}},
              numel * 4);
  CHECK(plan.cells_offset + plan.zeroed_bytes >= plan.control_offset + 64 && plan.cells_offset + plan.zeroed_bytes <= plan.bins_offset);
  CHECK(plan.workspace_bytes == numel * 8 && plan.radix.workspace_bytes == numel * 8 && plan.radix.cleared_before);
  CHECK(plan.radix.records_offset == 0 && plan.radix.lent_offset == 0 && plan.radix.borrowed_begin >= 0);

  const SortExplanation explanation = explain_sort(problem, SortAlgorithm::kAuto, DeviceTraits{});
  CHECK(explanation.algorithm == "buckets" && explanation.steps.size() == 3 && explanation.bytes_moved() == 48 * numel);
  CHECK(explanation.workspace_bytes == numel * 8);
}

void check_all() {
  int possible = 0;
  for (const int64_t rows : {1, 2, 3, 4, 7, 15, 16, 31}) {
    for (const int64_t length :
         {(1 << 22) + 0, (1 << 22) + 1, 5000001, 1 << 23, 9000001, 1 << 24, (1 << 24) + 77, 33000000, 50000001, 1 << 26, 1 << 27}) {
      SortProblem problem = make_problem(4, rows, length);
      problem.key.kind = KeyKind::kFloat;
      const MappedBucketsPlan plan = plan_mapped_buckets(problem, {});
      const int64_t numel = problem.numel();
      const bool long_enough = length >= kMinLength || (length >= kShortMinLength && numel >= kShortMinNumel);
      const bool few_regions = rows <= (length >> 11 <= kMeanBucket ? 16 : length >> 13 <= kMeanBucket ? 8 : 4);
      CHECK(plan.possible == (numel >= kMinNumel && numel <= kMaxNumel && length <= kMaxLength && long_enough && few_regions));
      if (!plan.possible) continue;
      ++possible;
      check_plan(problem, plan);
    }
  }
  CHECK(possible > 20);
}

void check_reach() {
  const auto possible = [](const SortProblem& problem, const DeviceTraits& traits = {}) {
    return plan_mapped_buckets(problem, traits).possible;
  };
  const int64_t length = 1 << 25;
  CHECK(possible(make_problem(4, 1, length)) && !possible(make_problem(4, 1, 1 << 22)));
  const auto of_kind = [](KeyKind kind, int64_t rows, int64_t keys) {
    SortProblem problem = make_problem(4, rows, keys);
    problem.key.kind = kind;
    return problem;
  };
  CHECK(possible(of_kind(KeyKind::kFloat, 1, 1 << 27)) && !possible(of_kind(KeyKind::kFloat, 1, (1 << 27) + 1)));
  for (const KeyKind integers : {KeyKind::kSigned, KeyKind::kUnsigned}) {
    CHECK(possible(of_kind(integers, 1, kMaxIntegerLength)) && !possible(of_kind(integers, 1, kMaxIntegerLength + 1)));
    CHECK(possible(of_kind(integers, 4, 1 << 24)) && !possible(of_kind(integers, 4, (1 << 24) + 1)));
  }
  CHECK(!possible(make_problem(2, 1, length)) && !possible(make_problem(8, 1, length)));
  CHECK(!possible(make_problem(4, 1, length, false)) && !possible(make_problem(4, 1, length, true, 4)) &&
        !possible(make_problem(4, 1, length, true, 0)));
  CHECK(!possible(make_problem(4, 1 << 10, 1 << 16)));
  SortProblem window = make_problem(4, 1, length);
  window.end_bit = 24;
  CHECK(!possible(window));
  DeviceTraits old;
  old.compute_major = 8;
  CHECK(!possible(make_problem(4, 1, length), old));
  DeviceTraits small;
  small.shared_bytes_per_sm = 100 << 10;
  CHECK(!possible(make_problem(4, 1, length), small));
  small = {};
  small.shared_bytes_per_block = kOrderSharedBytes - 1;
  CHECK(!possible(make_problem(4, 1, length), small));
}

}  // namespace

int main() {
  check_all();
  check_reach();
  return report();
}
