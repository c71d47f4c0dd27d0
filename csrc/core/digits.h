// Digits: groups of neighbouring bits of a code, least significant first, as a radix sort visits them.
#pragma once

#include <cstdint>

#include "host_device.h"

namespace gpusort {

// Bits [shift, shift + bits) of a code.
struct Digit {
  int shift = 0;
  int bits = 8;

  GPUSORT_HD uint32_t bin_count() const { return uint32_t{1} << bits; }

  template <class U>
  GPUSORT_HD uint32_t of(U code) const {
    return static_cast<uint32_t>(code >> shift) & (bin_count() - 1);
  }
};

// How many digits of `digit_bits` cover bits [begin_bit, end_bit).
GPUSORT_HD int digit_count(int begin_bit, int end_bit, int digit_bits) {
  return end_bit > begin_bit ? (end_bit - begin_bit + digit_bits - 1) / digit_bits : 0;
}

// Digit `pass` of those: the last one may be narrower.
GPUSORT_HD Digit digit_of_pass(int begin_bit, int end_bit, int digit_bits, int pass) {
  Digit digit;
  digit.shift = begin_bit + pass * digit_bits;
  digit.bits = end_bit - digit.shift < digit_bits ? end_bit - digit.shift : digit_bits;
  return digit;
}

}  // namespace gpusort
