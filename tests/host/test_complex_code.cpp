// Codes of complex numbers against NumPy's rule, written out from its documentation: R + Rj, R + nan j, nan + Rj, nan + nan j.
#include "../../csrc/core/complex_code.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "check.h"

using namespace gpusort;

namespace {

// -1, 0 or 1 as (a_real, a_imag) comes before, ties with, or comes after (b_real, b_imag).
template <class T>
int numpy_order(T a_real, T a_imag, T b_real, T b_imag) {
  const auto compare = [](T x, T y) { return static_cast<int>(y < x) - static_cast<int>(x < y); };
  const int a_class = 2 * std::isnan(a_real) + std::isnan(a_imag), b_class = 2 * std::isnan(b_real) + std::isnan(b_imag);
  if (a_class != b_class) return a_class < b_class ? -1 : 1;
  if (a_class == 3) return 0;
  if (a_class == 2) return compare(a_imag, b_imag);
  if (a_class == 1) return compare(a_real, b_real);
  const int by_real = compare(a_real, b_real);
  return by_real != 0 ? by_real : compare(a_imag, b_imag);
}

template <class T, class U>
std::vector<U> parts() {
  constexpr T kInfinity = std::numeric_limits<T>::infinity(), kNan = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> values{0, -T{0}, 1, -1, 2, kInfinity, -kInfinity, std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest()};
  values.insert(values.end(), {std::numeric_limits<T>::denorm_min(), -std::numeric_limits<T>::denorm_min(), kNan, -kNan});
  std::vector<U> bits;
  for (const T value : values) {
    U pattern;
    std::memcpy(&pattern, &value, sizeof(pattern));
    bits.push_back(pattern);
  }
  bits.push_back(~U{0});  // NaNs with other payloads
  bits.push_back(~U{0} >> 1);
  std::mt19937_64 random(3);
  for (int i = 0; i < 8; ++i) bits.push_back(static_cast<U>(random()));
  return bits;
}

template <class T, class U, class CodeOf>
void check_all_pairs(CodeOf code_of) {
  const std::vector<U> bits = parts<T, U>();
  const auto value = [](U pattern) {
    T result;
    std::memcpy(&result, &pattern, sizeof(result));
    return result;
  };
  for (const U a_real : bits) {
    for (const U a_imag : bits) {
      const auto a = code_of(a_real, a_imag);
      long wrong = 0;
      for (const U b_real : bits) {
        for (const U b_imag : bits) {
          const auto b = code_of(b_real, b_imag);
          const int order = static_cast<int>(b < a) - static_cast<int>(a < b);
          wrong += order != numpy_order(value(a_real), value(a_imag), value(b_real), value(b_imag));
        }
      }
      CHECK(wrong == 0);
    }
  }
}

}  // namespace

int main() {
  check_all_pairs<float, uint32_t>([](uint32_t real, uint32_t imag) { return complex64_code(real, imag); });
  check_all_pairs<double, uint64_t>([](uint64_t real, uint64_t imag) { return complex128_code(real, imag); });

  const WideCode product = multiply_add(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0});  // (2^64 - 1)^2 + 2^64 - 1 = (2^64 - 1) 2^64
  CHECK(product.low == 0 && product.high == ~uint64_t{0});
  CHECK(multiply_add(3, 5, 7).low == 22 && multiply_add(3, 5, 7).high == 0);
  return report();
}
