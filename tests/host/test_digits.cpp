// Digits put together again give back the bits they were taken from.
#include "../../csrc/core/digits.h"

#include <initializer_list>

#include "check.h"

using namespace gpusort;

namespace {

// A code taken apart in digits of `digit_bits` from bit `begin` on, the last one narrower where they do not fit.
template <class U>
void check_digits(U code, int begin, int digit_bits) {
  const int width = static_cast<int>(sizeof(U) * 8);
  uint64_t rebuilt = 0;
  for (int shift = begin; shift < width; shift += digit_bits) {
    const Digit digit{shift, digit_bits < width - shift ? digit_bits : width - shift};
    CHECK(digit.bin_count() == uint32_t{1} << digit.bits && digit.of(code) < digit.bin_count());
    rebuilt |= static_cast<uint64_t>(digit.of(code)) << (shift - begin);
  }
  CHECK(rebuilt == static_cast<uint64_t>(code) >> begin);
}

template <class U>
void check_width(uint64_t pattern) {
  for (const int digit_bits : {1, 2, 3, 4, 6, 8, 11, 16}) {
    for (int begin = 0; begin < static_cast<int>(sizeof(U) * 8); ++begin) check_digits(static_cast<U>(pattern), begin, digit_bits);
  }
}

}  // namespace

int main() {
  for (const uint64_t pattern : {uint64_t{0}, ~uint64_t{0}, uint64_t{0x9e3779b97f4a7c15u}, uint64_t{0x0123456789abcdefu}}) {
    check_width<uint8_t>(pattern);
    check_width<uint16_t>(pattern);
    check_width<uint32_t>(pattern);
    check_width<uint64_t>(pattern);
  }
  CHECK(Digit{}.shift == 0 && Digit{}.bits == 8 && (Digit{4, 4}.of(uint8_t{0xa5}) == 0xa) && (Digit{60, 4}.of(~uint64_t{0}) == 15));
  return report();
}
