// Complex numbers as unsigned integers in NumPy's order.
//
// NumPy sorts complex numbers into four classes, and lexicographically by (real, imaginary) inside each; a part that is NaN does not count:
//
//   0: R + Rj     1: R + nan j     2: nan + Rj     3: nan + nan j
//
// Let a part's rank be its place among the M distinct numbers of its type (-0.0 equal to +0.0). Then, in as few values as possible,
//
//   class 0 -> real * M + imag     class 1 -> M*M + real     class 2 -> M*M + M + imag     class 3 -> M*M + 2*M
//
// The largest is (M + 1)^2 - 1. M + 1 fits in the width of a part, so the code fits in twice that: one 64-bit word for complex64, two for
// complex128. The code loses the sign of zero and the payload of NaN: it orders values and is never turned back into one.
#pragma once

#include <cstdint>

#include "host_device.h"
#include "key_order.h"

namespace gpusort {

// A 128-bit unsigned integer, laid out as a little-endian machine lays out its own.
struct WideCode {
  uint64_t low = 0;
  uint64_t high = 0;
};

GPUSORT_HD bool operator<(const WideCode& a, const WideCode& b) {
  return a.high != b.high ? a.high < b.high : a.low < b.low;
}

// a * b + c, which fits in 128 bits for any operands.
GPUSORT_HD WideCode multiply_add(uint64_t a, uint64_t b, uint64_t c) {
#if defined(__CUDA_ARCH__)
  const uint64_t low = a * b;
  const uint64_t high = __umul64hi(a, b);
  return {low + c, high + (low + c < low ? 1 : 0)};
#else
  __extension__ using uint128 = unsigned __int128;
  const uint128 sum = static_cast<uint128>(a) * b + c;
  return {static_cast<uint64_t>(sum), static_cast<uint64_t>(sum >> 64)};
#endif
}

// Rank of one part, in [0, M) for numbers; M for NaN. `infinity` is the bit pattern of +inf, so M = 2 * infinity + 1.
template <class U>
GPUSORT_HD U part_rank(U bits, U infinity) {
  return static_cast<U>(make_key_order<U>(KeyKind::kFloat, false, infinity).code(bits) - 1);  // the code of -inf is 1
}

GPUSORT_HD uint64_t complex64_code(uint32_t real_bits, uint32_t imag_bits) {
  constexpr uint32_t kInfinity = 0x7f800000u;
  constexpr uint64_t kNumbers = uint64_t{2} * kInfinity + 1;
  const uint64_t real = part_rank<uint32_t>(real_bits, kInfinity);
  const uint64_t imag = part_rank<uint32_t>(imag_bits, kInfinity);
  if (real < kNumbers) return imag < kNumbers ? real * kNumbers + imag : kNumbers * kNumbers + real;
  return kNumbers * kNumbers + kNumbers + imag;  // imag is M when both are NaN
}

GPUSORT_HD WideCode complex128_code(uint64_t real_bits, uint64_t imag_bits) {
  constexpr uint64_t kInfinity = 0x7ff0000000000000u;
  constexpr uint64_t kNumbers = 2 * kInfinity + 1;
  const uint64_t real = part_rank<uint64_t>(real_bits, kInfinity);
  const uint64_t imag = part_rank<uint64_t>(imag_bits, kInfinity);
  if (real < kNumbers) return imag < kNumbers ? multiply_add(real, kNumbers, imag) : multiply_add(kNumbers, kNumbers, real);
  return multiply_add(kNumbers + 1, kNumbers, imag);
}

}  // namespace gpusort
