// Bits [begin_bit, end_bit) of a key's code: what a CPU sort orders by.
#pragma once

#include "../plan/sort_problem.h"

namespace gpusort::cpu {

template <class U>
struct CodeWindow {
  KeyOrder<U> order;
  int begin_bit;
  U mask;

  explicit CodeWindow(const SortProblem& problem) : order(problem.key.order<U>(problem.descending)), begin_bit(problem.begin_bit) {
    const int bits = problem.end_bit - problem.begin_bit;
    mask = bits <= 0 ? U{0} : static_cast<U>(static_cast<U>(~U{0}) >> (KeyOrder<U>::kBits - bits));
    if (bits <= 0) begin_bit = 0;  // a shift by the whole width is undefined
  }

  U of_ordered(U ordered) const { return static_cast<U>((order.code_of_ordered(ordered) >> begin_bit) & mask); }
  U operator()(U bits) const { return of_ordered(order.to_ordered(bits)); }
};

}  // namespace gpusort::cpu
