// The order of keys against the numbers they stand for: every 8- and 16-bit pattern, special and random 32- and 64-bit ones.
#include "../../csrc/core/key_order.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "check.h"

using namespace gpusort;

namespace {

// An IEEE-like number decoded from its definition: sign, exponent, mantissa. Every format here fits a double exactly.
double decode(uint64_t bits, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const uint64_t mantissa = bits & ((uint64_t{1} << mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((uint64_t{1} << exponent_bits) - 1));
  const bool negative = bits >> (mantissa_bits + exponent_bits) & 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int top = (1 << exponent_bits) - 1;
  double value;
  if (exponent == top && has_infinity) {
    value = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == top && mantissa == (uint64_t{1} << mantissa_bits) - 1) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(mantissa), 1 - bias - mantissa_bits);
  } else {
    value = std::ldexp(static_cast<double>(mantissa | uint64_t{1} << mantissa_bits), exponent - bias - mantissa_bits);
  }
  return negative ? -value : value;
}

// The contract: -1, 0 or 1 as x comes before, ties with, or comes after y in ascending order.
template <class T>
int contract_order(T x, T y) {
  const bool x_nan = x != x, y_nan = y != y;
  if (x_nan || y_nan) return static_cast<int>(x_nan) - static_cast<int>(y_nan);
  return static_cast<int>(y < x) - static_cast<int>(x < y);
}

template <class U>
int code_order(const KeyOrder<U>& order, U x, U y) {
  return static_cast<int>(order.code(y) < order.code(x)) - static_cast<int>(order.code(x) < order.code(y));
}

// Every pair of `bits` is ordered as value_of orders it, both ways; `ordered` gives the bits back.
template <class U, class ValueOf>
void check_pairs(const std::vector<U>& bits, KeyKind kind, U infinity, ValueOf value_of) {
  const KeyOrder<U> ascending = make_key_order<U>(kind, false, infinity), descending = make_key_order<U>(kind, true, infinity);
  for (const U x : bits) {
    CHECK(ascending.from_ordered(ascending.to_ordered(x)) == x);
    CHECK(descending.from_ordered(descending.to_ordered(x)) == x);
  }
  long wrong = 0;
  for (const U x : bits) {
    for (const U y : bits) {
      const int expected = contract_order(value_of(x), value_of(y));
      wrong += code_order(ascending, x, y) != expected || code_order(descending, x, y) != -expected;
      wrong += ascending.less(x, y) != (expected < 0) || descending.less(x, y) != (expected > 0);
    }
  }
  CHECK(wrong == 0);
}

// All patterns of a small float: neighbours in the order of the values (an exhaustive proof in n log n, since codes and values are both
// total preorders), and that to_ordered is a bijection.
template <class U>
void check_all(KeyKind kind, int exponent_bits, int mantissa_bits, U infinity) {
  const bool has_infinity = kind == KeyKind::kFloat;
  const int count = 1 << KeyOrder<U>::kBits;
  const auto value_of = [&](int bits) { return decode(static_cast<uint64_t>(bits), exponent_bits, mantissa_bits, has_infinity); };
  std::vector<int> patterns(count);
  for (int i = 0; i < count; ++i) patterns[i] = i;
  std::stable_sort(patterns.begin(), patterns.end(), [&](int x, int y) { return contract_order(value_of(x), value_of(y)) < 0; });
  for (const bool down : {false, true}) {
    const KeyOrder<U> order = make_key_order<U>(kind, down, infinity);
    std::vector<char> seen(count, 0);
    long wrong = 0;
    for (int i = 0; i < count; ++i) {
      const U bits = static_cast<U>(patterns[i]);
      const U ordered = order.to_ordered(bits);
      wrong += seen[ordered]++ != 0 || order.from_ordered(ordered) != bits || order.code_of_ordered(ordered) != order.code(bits);
      if (i == 0) continue;
      const int expected = contract_order(value_of(patterns[i - 1]), value_of(patterns[i]));
      wrong += code_order(order, static_cast<U>(patterns[i - 1]), bits) != (down ? -expected : expected);
    }
    CHECK(wrong == 0);
  }
}

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "same width");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

template <class U, class Float>
void check_wide_float(U infinity) {
  constexpr U kSign = static_cast<U>(U{1} << (KeyOrder<U>::kBits - 1));
  const U one = bits_as<U>(Float{1});
  std::vector<U> bits;
  for (const U magnitude :
       {U{0}, U{1}, U{2}, one, static_cast<U>(one + 1), static_cast<U>(infinity - 1), infinity, static_cast<U>(infinity + 1),
        static_cast<U>(infinity + 77), static_cast<U>(kSign - 1), bits_as<U>(std::numeric_limits<Float>::min()),
        static_cast<U>(bits_as<U>(std::numeric_limits<Float>::min()) - 1)}) {
    bits.push_back(magnitude);
    bits.push_back(magnitude | kSign);
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) bits.push_back(static_cast<U>(random()));
  check_pairs(bits, KeyKind::kFloat, infinity, [](U x) { return bits_as<Float>(x); });
}

template <class U, class Signed>
void check_integers() {
  std::vector<U> bits;
  for (int i = 0; i < 4; ++i) {
    bits.push_back(static_cast<U>(i));
    bits.push_back(static_cast<U>(U{0} - i));
    bits.push_back(static_cast<U>((U{1} << (KeyOrder<U>::kBits - 1)) + i));
    bits.push_back(static_cast<U>((U{1} << (KeyOrder<U>::kBits - 1)) - i));
  }
  std::mt19937_64 random(2);
  for (int i = 0; i < 500; ++i) bits.push_back(static_cast<U>(random()));
  check_pairs(bits, KeyKind::kUnsigned, U{0}, [](U x) { return x; });
  check_pairs(bits, KeyKind::kSigned, U{0}, [](U x) { return static_cast<Signed>(x); });
}

}  // namespace

int main() {
  check_all<uint8_t>(KeyKind::kFloat, 5, 2, 0x7c);       // float8_e5m2
  check_all<uint8_t>(KeyKind::kFloatNoInf, 4, 3, 0x7e);  // float8_e4m3fn
  check_all<uint16_t>(KeyKind::kFloat, 5, 10, 0x7c00);   // float16
  check_all<uint16_t>(KeyKind::kFloat, 8, 7, 0x7f80);    // bfloat16
  check_wide_float<uint32_t, float>(0x7f800000u);
  check_wide_float<uint64_t, double>(0x7ff0000000000000u);

  std::vector<uint8_t> bytes(256);
  for (int i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
  check_pairs(bytes, KeyKind::kBool, uint8_t{0}, [](uint8_t x) { return x != 0; });
  check_pairs(bytes, KeyKind::kUnsigned, uint8_t{0}, [](uint8_t x) { return x; });
  check_pairs(bytes, KeyKind::kSigned, uint8_t{0}, [](uint8_t x) { return static_cast<int8_t>(x); });
  check_integers<uint16_t, int16_t>();
  check_integers<uint32_t, int32_t>();
  check_integers<uint64_t, int64_t>();

  // The decoder itself, at values known by heart.
  CHECK(decode(0x3c00, 5, 10, true) == 1.0 && decode(0xc000, 5, 10, true) == -2.0 && decode(0x7bff, 5, 10, true) == 65504.0);
  CHECK(decode(0x7e, 4, 3, false) == 448.0 && decode(0x7b, 5, 2, true) == 57344.0 && std::isnan(decode(0xff, 4, 3, false)));
  return report();
}
