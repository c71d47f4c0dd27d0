// What the comparison sorts of this folder and of sample/ order: (code of the key, position in the row).
//
// No two pairs are equal, so any sorting network or partition is stable, and equal keys are split like all others. Keys of up to 32 bits
// travel as one 64-bit word, code above position; wider keys and rows of 2^32 keys or more as two words. A pair of all ones is larger than
// every real pair, because a position is below the length.
#pragma once

#include <cstdint>

#include "../../core/key_order.h"

namespace gpusort {

struct PackedPair {
  uint64_t word;

  static GPUSORT_HD PackedPair make(uint64_t code, uint64_t position) { return {code << 32 | position}; }
  static GPUSORT_HD PackedPair last() { return {~uint64_t{0}}; }
  GPUSORT_HD uint64_t code() const { return word >> 32; }
  GPUSORT_HD uint64_t position() const { return word & 0xffffffffu; }
  GPUSORT_HD bool less(const PackedPair& other) const { return word < other.word; }
};

struct alignas(16) WidePair {
  uint64_t high;
  uint64_t low;

  static GPUSORT_HD WidePair make(uint64_t code, uint64_t position) { return {code, position}; }
  static GPUSORT_HD WidePair last() { return {~uint64_t{0}, ~uint64_t{0}}; }
  GPUSORT_HD uint64_t code() const { return high; }
  GPUSORT_HD uint64_t position() const { return low; }
  GPUSORT_HD bool less(const WidePair& other) const { return high < other.high || (high == other.high && low < other.low); }
};

// The key's bits from its code. What the code has lost (the sign of zero, the payload of a NaN, which byte a True was) is fetched from the
// input; everything else is computed, because a fetch by position is a random read.
template <class U>
GPUSORT_HD U key_of_code(const KeyOrder<U>& order, U code, const U* row, uint64_t position) {
  const U plain = static_cast<U>(code ^ order.complement);
  const bool is_zero_of_either_sign = order.zero != 0 && plain == order.zero;
  if (plain >= order.clamp || is_zero_of_either_sign) return row[position];
  return order.from_ordered(static_cast<U>(plain - (plain < order.zero ? 1 : 0)));
}

}  // namespace gpusort
