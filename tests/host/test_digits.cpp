// Digits put together again give back the bits they were taken from.
#include "../../csrc/core/digits.h"

#include <initializer_list>

#include "check.h"

using namespace gpusort;

namespace {

template <class U>
void check_window(U code, int begin, int end, int digit_bits) {
  uint64_t rebuilt = 0;
  int covered = begin;
  const int passes = digit_count(begin, end, digit_bits);
  for (int pass = 0; pass < passes; ++pass) {
    const Digit digit = digit_of_pass(begin, end, digit_bits, pass);
    CHECK(digit.shift == covered && digit.bits >= 1 && digit.bits <= digit_bits);
    CHECK(pass + 1 == passes || digit.bits == digit_bits);
    CHECK(digit.of(code) < digit.bin_count());
    rebuilt |= static_cast<uint64_t>(digit.of(code)) << (digit.shift - begin);
    covered += digit.bits;
  }
  CHECK(passes == 0 || covered == end);
  const int bits = end - begin;
  const uint64_t mask = bits <= 0 ? 0 : ~uint64_t{0} >> (64 - bits);
  CHECK(rebuilt == (bits <= 0 ? 0 : static_cast<uint64_t>(code) >> begin & mask));
}

template <class U>
void check_width(uint64_t pattern) {
  const int width = static_cast<int>(sizeof(U) * 8);
  for (const int digit_bits : {1, 2, 3, 4, 6, 8, 11, 16}) {
    for (int begin = 0; begin <= width; begin += width > 16 ? 5 : 1) {
      for (int end = begin; end <= width; ++end) check_window(static_cast<U>(pattern), begin, end, digit_bits);
    }
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
  CHECK(digit_count(0, 32, 8) == 4 && digit_count(0, 33, 8) == 5 && digit_count(5, 5, 8) == 0 && digit_count(6, 5, 8) == 0);
  return report();
}
