// Plans the sort of 16-bit keys alone by counting (cuda/radix/counting_sort_16.cu). Pure: shapes in, numbers out.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sort_problem.h"

namespace gpusort {

// Counters of all patterns of 16 bits, two to a word. Adding up the counters of all blocks takes as long as a few passes over 2^20 keys,
// and that for every row.
constexpr int kCountingSharedBytes = 1 << 17;
constexpr int64_t kMinCountedLength = int64_t{1} << 20;
constexpr int64_t kMinCountedLengthOfRows = int64_t{1} << 22;

// Vectors with zeros and NaNs that a block lists for the order among equals: one in 8, but not more than this, so that with the head and
// the tail of the row there are 2048.
constexpr int64_t kMostListed = 2046;

struct CountingPlan {
  bool used = false;
  int blocks = 0;                 // that count
  int64_t vectors_per_block = 0;  // of 8 keys each, a multiple of 32
  int64_t list_capacity = 0;      // 0: no floats

  // Byte offsets into the workspace, each a multiple of 256.
  int64_t control_offset = 0;
  int64_t counts_offset = 0;    // a word for each pattern
  int64_t cleared_bytes = 0;    // from the start
  int64_t runs_offset = 0;      // where the runs of equal keys end
  int64_t patterns_offset = 0;  // what they consist of
  int64_t findings_offset = 0;  // 8 bytes for each block, then 4
  int64_t lists_offset = 0;     // a word for each vector that may be listed
  int64_t workspace_bytes = 0;
};

inline CountingPlan plan_counting_sort(const SortProblem& problem, const DeviceTraits& device) {
  auto ceil_div = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  CountingPlan plan;
  plan.used = problem.key.bytes == 2 && problem.indices_out == nullptr && problem.whole_key() &&
              problem.length >= (problem.rows == 1 ? kMinCountedLength : kMinCountedLengthOfRows) &&
              device.shared_bytes_per_block >= kCountingSharedBytes + 1024;
  if (!plan.used) return plan;
  const int64_t vectors = problem.length / 8;  // one less where the row does not begin at a multiple of 16 bytes
  plan.vectors_per_block = std::max<int64_t>(ceil_div(ceil_div(vectors, device.sm_count), 32) * 32, 1024);
  plan.blocks = static_cast<int>(ceil_div(vectors, plan.vectors_per_block));
  if (problem.key.kind == KeyKind::kFloat) plan.list_capacity = std::min(plan.vectors_per_block / 8, kMostListed);

  int64_t used = 0;
  auto take = [&](int64_t bytes) {
    const int64_t offset = ceil_div(used, 256) * 256;
    used = offset + bytes;
    return offset;
  };
  constexpr int64_t kPatterns = 1 << 16;
  plan.control_offset = take(1024);
  plan.counts_offset = take(kPatterns * 4);
  plan.cleared_bytes = used;
  plan.runs_offset = take(kPatterns * 4);
  plan.patterns_offset = take(kPatterns * 2);
  plan.findings_offset = take(int64_t{plan.blocks} * 12);
  plan.lists_offset = take(plan.blocks * plan.list_capacity * 4);
  plan.workspace_bytes = used;
  return plan;
}

}  // namespace gpusort
