// Which algorithm sorts a shape: the one place where the crossovers between families are decided.
#pragma once

#include <cstdint>
#include <string>

#include "row_plan.h"
#include "sort_problem.h"

namespace gpusort {

enum class SortAlgorithm { kAuto, kRows, kRadix };

// The names that `algorithm=` takes, in the order in which an error lists them.
inline bool parse_sort_algorithm(const std::string& name, SortAlgorithm* algorithm) {
  if (name == "auto") {
    *algorithm = SortAlgorithm::kAuto;
  } else if (name == "radix") {
    *algorithm = SortAlgorithm::kRadix;
  } else {
    return false;
  }
  return true;
}

constexpr const char* kSortAlgorithmNames = "'auto' and 'radix'";

// A row that fits on chip is read once and written once, which no sequence of passes can beat. Bit windows are the radix sort's business.
inline SortAlgorithm choose_sort_algorithm(const SortProblem& problem, SortAlgorithm requested, const DeviceTraits& traits) {
  if (requested != SortAlgorithm::kAuto) return requested;
  if (problem.whole_key() && problem.length <= row_sort_max_length(problem.key.bytes, traits)) return SortAlgorithm::kRows;
  return SortAlgorithm::kRadix;
}

}  // namespace gpusort
