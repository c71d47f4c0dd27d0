// The whole test framework of tests/host: CHECK counts, report() prints the last line and gives main's exit status.
#pragma once

#include <cstdio>

inline long checks_passed = 0;
inline long checks_failed = 0;

inline void record_check(bool passed, const char* text, const char* file, int line) {
  passed ? ++checks_passed : ++checks_failed;
  if (!passed && checks_failed <= 20) std::printf("%s:%d: failed: %s\n", file, line, text);
}

#define CHECK(condition) record_check(static_cast<bool>(condition), #condition, __FILE__, __LINE__)

inline int report() {
  std::printf("%ld passed, %ld failed\n", checks_passed, checks_failed);
  return checks_failed == 0 ? 0 : 1;
}
