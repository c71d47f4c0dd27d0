// What tests of plans ask of a workspace: parts that are used at the same time, each an offset and a size, lie apart within it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "check.h"

using WorkspaceParts = std::vector<std::pair<int64_t, int64_t>>;

inline void check_apart(WorkspaceParts parts, int64_t workspace_bytes) {
  std::sort(parts.begin(), parts.end());
  int64_t end = 0;
  for (const auto& part : parts) {
    CHECK(part.first >= end && part.first % 256 == 0);
    end = part.first + part.second;
  }
  CHECK(end <= workspace_bytes);
}
