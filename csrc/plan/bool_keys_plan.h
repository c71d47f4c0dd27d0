// Plans the sort of one long row of bools without their indices (cuda/radix/bool_keys.cu). Pure: shapes in, numbers out.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sort_problem.h"

namespace gpusort {

constexpr int64_t kMinBoolKeysLength = int64_t{1} << 17;
constexpr int kBoolKeysThreads = 512;
constexpr int kBoolKeysRounds = 2;  // 16-byte vectors of a thread in a tile

struct BoolKeysPlan {
  bool used = false;
  int blocks = 0;
  // Vectors of 16 bytes, a multiple of 32: a block's share, counted from the 16-byte boundary at or before the first key.
  int64_t vectors_per_block = 0;
  int64_t workspace_bytes = 0;  // a word for each block
};

inline BoolKeysPlan plan_bool_keys(const SortProblem& problem, const DeviceTraits& device) {
  auto ceil_div = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  constexpr int64_t kMostLength = (int64_t{1} << 32) - (1 << 17);  // positions have 32 bits
  constexpr int64_t kBlocksPerSm = 2;
  BoolKeysPlan plan;
  plan.used = problem.key.kind == KeyKind::kBool && problem.indices_out == nullptr && problem.rows == 1 && problem.whole_key() &&
              problem.length >= kMinBoolKeysLength && problem.length <= kMostLength;
  if (!plan.used) return plan;
  const int64_t vectors = problem.length / 16 + 2;  // wherever the first key lies
  const int64_t share = ceil_div(ceil_div(vectors, device.sm_count * kBlocksPerSm), 32) * 32;
  plan.vectors_per_block = std::max<int64_t>(share, kBoolKeysThreads / 2);
  plan.blocks = static_cast<int>(ceil_div(vectors, plan.vectors_per_block));
  plan.workspace_bytes = int64_t{plan.blocks} * 4;
  return plan;
}

}  // namespace gpusort
