// Maps from keys to the leading bits of a 32-bit word, for sorts that order short words instead of whole keys.
//
// A row is sorted as words: (leading bits of map(key)) << index_bits | index in the row. The maps here are monotone: equal codes map to
// equal values, and a smaller code never maps to a larger value. So words order the keys up to ties of the leading bits, within which they
// keep the input order; only different keys that share their leading bits need mending, and how many do depends on the map:
//
//   CodeMap    the code minus the row's lowest, shifted up until the row's range fills the word. Right for every key type and exact (no
//              ties of different keys) when the range fits the leading bits: small integers, floats of nearly one size.
//   ScaledMap  floats whose codes spread over many exponents: scaled by a power of two so that the 15 binades below the row's largest
//              magnitude keep their own exponent and all below is linear. 4 exponent bits instead of 8, so 16 times fewer ties.
//   LinearMap  floats as 23 bits of fixed point between the row's extremes: best for long rows, which have few leading bits, of values
//              that fill their range.
//
// Ties to expect among n keys spread evenly over the values of b leading bits: n^2 / 2^(b+1). Normal floats, 4096 in a row, 20 bits: 8 % of
// the neighbours by CodeMap, 0.5 % by ScaledMap. Floats must be finite for the last two; descending order is built into the maps'
// constants. Instructions per key on the integer pipe of a GPU, the one that sorting networks fill: 0 (32 bits), 2 and 0.
#pragma once

#include <cstdint>
#include <cstring>

#include "host_device.h"

namespace gpusort {

template <class To, class From>
GPUSORT_HD To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "same width");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

GPUSORT_HD int leading_zeros(uint32_t x) {
#if defined(__CUDA_ARCH__)
  return __clz(static_cast<int>(x));
#else
  return x == 0 ? 32 : __builtin_clz(x);
#endif
}

GPUSORT_HD int leading_zeros(uint64_t x) {
  const uint32_t high = static_cast<uint32_t>(x >> 32);
  return high != 0 ? leading_zeros(high) : 32 + leading_zeros(static_cast<uint32_t>(x));
}

// Bits needed to tell apart the codes of a row whose extremes are `range` apart.
template <class U>
GPUSORT_HD int range_bits(U range) {
  return static_cast<int>(sizeof(U) * 8) - leading_zeros(range);
}

// `code` here is the ascending code (no complement); `descending` turns the map around.
template <class U>
struct CodeMap {
  static constexpr int kBits = static_cast<int>(sizeof(U) * 8);

  U flip = 0;
  U base = 0;
  int shift = 0;

  GPUSORT_HD CodeMap() {}
  GPUSORT_HD CodeMap(U lowest, U highest, bool descending) {
    const int zeros = leading_zeros(static_cast<U>(highest - lowest));
    shift = zeros < kBits ? zeros : 0;
    flip = descending ? static_cast<U>(~U{0}) : U{0};
    base = static_cast<U>((descending ? highest : lowest) ^ flip);
  }

  GPUSORT_HD uint32_t operator()(U code) const { return static_cast<uint32_t>((((code ^ flip) - base) << shift) >> (kBits - 32)); }
};

// The same for 32-bit codes as one multiply-add: (code - lowest) << shift, or (highest - code) << shift, modulo 2^32.
template <>
struct CodeMap<uint32_t> {
  uint32_t factor = 1;
  uint32_t offset = 0;

  GPUSORT_HD CodeMap() {}
  GPUSORT_HD CodeMap(uint32_t lowest, uint32_t highest, bool descending) {
    const int zeros = leading_zeros(highest - lowest);
    const int shift = zeros < 32 ? zeros : 0;
    factor = descending ? 0u - (1u << shift) : 1u << shift;
    offset = descending ? highest << shift : 0u - (lowest << shift);
  }

  GPUSORT_HD uint32_t operator()(uint32_t code) const { return code * factor + offset; }
};

struct ScaledMap {
  float first = 1.0f;   // two factors, since the power of two may lie below the smallest normal float
  float second = 1.0f;  // negative when descending

  GPUSORT_HD ScaledMap() {}
  GPUSORT_HD ScaledMap(float largest_magnitude, bool descending) {
    constexpr int kTopExponent = 14;  // biased exponent of the row's largest magnitude after scaling: fits 4 bits
    const int exponent = static_cast<int>(bits_as<uint32_t>(largest_magnitude) >> 23);
    const int power = exponent > kTopExponent ? kTopExponent - exponent : 0;
    const int first_power = power > -120 ? power : -120;
    first = bits_as<float>(static_cast<uint32_t>(127 + first_power) << 23);
    second = bits_as<float>(static_cast<uint32_t>(127 + power - first_power) << 23);
    if (descending) second = -second;
  }

  // Multiplying by a power of two rounds only where the result is subnormal, and rounding is monotone. Adding +0.0 makes the product of
  // a zero +0.0 whatever its sign, so that equal keys map to equal values. The 4 leading exponent bits of the product are zero.
  GPUSORT_HD uint32_t operator()(float value) const {
    const uint32_t bits = bits_as<uint32_t>(fmaf(value * first, second, 0.0f));
    const uint32_t negative = static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31);
    return (bits << 4) ^ negative ^ 0x80000000u;
  }
};

struct LinearMap {
  static constexpr float kUnit = 8388608.0f;  // 2^23: floats from here to twice this are whole numbers, 23 bits in their mantissa

  float origin = 0.0f;
  float scale = 1.0f;

  // False when the range overflows, is empty or so small or large that the scale would lose precision.
  GPUSORT_HD static bool fits(float lowest, float highest) {
    const float range = highest - lowest;
    return range > 1e-20f && range < 1e30f;
  }

  GPUSORT_HD LinearMap() {}
  GPUSORT_HD LinearMap(float lowest, float highest, bool descending) {
    constexpr float kSpan = kUnit - 16.0f;  // leaves room for three roundings
    origin = descending ? highest : lowest;
    scale = kSpan / (highest - lowest);
    if (descending) scale = -scale;
  }

  GPUSORT_HD uint32_t operator()(float value) const { return bits_as<uint32_t>(fmaf(value - origin, scale, kUnit)) << 9; }
};

// The extremes of float32 keys from their bits alone, by three integer minima and maxima: positive floats rise with their bits, negative
// ones fall, and either kind has the larger bits in one of the two orders, unsigned and signed.
struct FloatExtremes {
  uint32_t least = ~0u;
  uint32_t greatest = 0;
  int32_t greatest_signed = INT32_MIN;

  GPUSORT_HD void add(uint32_t bits) {
    const int32_t as_signed = static_cast<int32_t>(bits);
    least = bits < least ? bits : least;
    greatest = bits > greatest ? bits : greatest;
    greatest_signed = as_signed > greatest_signed ? as_signed : greatest_signed;
  }

  // Meaningful when all are finite.
  GPUSORT_HD float lowest() const { return bits_as<float>(greatest >> 31 ? greatest : least); }
  GPUSORT_HD float highest() const { return bits_as<float>(greatest_signed >= 0 ? static_cast<uint32_t>(greatest_signed) : least); }

  GPUSORT_HD bool all_finite() const {
    constexpr int32_t kInfinity = 0x7f800000;
    return greatest_signed < kInfinity && greatest < (0x80000000u | kInfinity);
  }

  // Values other than 0 whose magnitude is below 2^-14 of the largest have few leading bits by ScaledMap, and fewer by LinearMap.
  GPUSORT_HD uint32_t tiny_limit() const {
    const int32_t magnitude = static_cast<int32_t>(greatest & 0x7fffffffu);
    const int32_t limit = (magnitude > greatest_signed ? magnitude : greatest_signed) - (14 << 23);
    return static_cast<uint32_t>(limit > 1 ? limit : 1);
  }
  GPUSORT_HD static bool is_tiny(uint32_t bits, uint32_t limit) { return (bits & 0x7fffffffu) - 1 < limit - 1; }
};

// The ascending code of a float32 that is not NaN, but for a constant: adding +0.0 makes -0.0 equal to it.
GPUSORT_HD uint32_t ordered_float_bits(float value) {
  const uint32_t bits = bits_as<uint32_t>(value + 0.0f);
  return bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u);
}

// What the value maps look at. A double is rounded to float first, which is monotone too.
GPUSORT_HD float float_of_bits(uint32_t bits) {
  return bits_as<float>(bits);
}
GPUSORT_HD float float_of_bits(uint64_t bits) {
  return static_cast<float>(bits_as<double>(bits));
}

}  // namespace gpusort
