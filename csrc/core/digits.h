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

}  // namespace gpusort
