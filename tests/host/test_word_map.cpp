// csrc/core/word_map.h: the maps must be monotone in the code, equal for equal codes, and exact where they promise it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

#include "../../csrc/core/key_order.h"
#include "../../csrc/core/word_map.h"
#include "check.h"

namespace {

using namespace gpusort;

constexpr uint64_t kInfinity32 = 0x7f800000u, kInfinity64 = 0x7ff0000000000000u;

// `map` of the bits, sorted by the independent order `before`: must not fall, and must not rise between equals.
template <class U, class Before, class Map>
bool monotone(std::vector<U> keys, Before before, Map map) {
  std::stable_sort(keys.begin(), keys.end(), before);
  for (size_t i = 1; i < keys.size(); ++i) {
    const uint32_t left = map(keys[i - 1]), right = map(keys[i]);
    if (right < left) return false;
    if (!before(keys[i - 1], keys[i]) && right != left) return false;
  }
  return true;
}

template <class U, class Float>
void check_float_maps(const std::vector<std::vector<Float>>& rows, U infinity) {
  for (const auto& row : rows) {
    std::vector<U> keys;
    float least = INFINITY, greatest = -INFINITY;
    for (Float value : row) {
      keys.push_back(bits_as<U>(value));
      least = std::min(least, static_cast<float>(value));
      greatest = std::max(greatest, static_cast<float>(value));
    }
    for (bool descending : {false, true}) {
      const auto before = [&](U a, U b) {
        const Float x = bits_as<Float>(a), y = bits_as<Float>(b);
        return descending ? x > y : x < y;
      };
      const ScaledMap scaled(std::max(std::fabs(least), std::fabs(greatest)), descending);
      CHECK(monotone(keys, before, [&](U key) { return scaled(float_of_bits(key)); }));
      if (LinearMap::fits(least, greatest)) {
        const LinearMap linear(least, greatest, descending);
        CHECK(monotone(keys, before, [&](U key) { return linear(float_of_bits(key)); }));
        for (U key : keys) {
          const float fixed = std::fmaf(float_of_bits(key) - linear.origin, linear.scale, LinearMap::kUnit);
          if (!(fixed >= LinearMap::kUnit && fixed < 2 * LinearMap::kUnit)) CHECK(!"within 23 bits");
        }
      }
      if constexpr (sizeof(U) == 4) {
        CHECK(monotone(
            keys, [](U a, U b) { return bits_as<float>(a) < bits_as<float>(b); },
            [](U key) { return ordered_float_bits(bits_as<float>(key)); }));
        FloatExtremes extremes;
        for (U key : keys) extremes.add(key);
        CHECK(extremes.all_finite() && extremes.lowest() == least && extremes.highest() == greatest);
        for (U strange : {U{0x7f800000}, U{0xff800000}, U{0x7fc00000}, U{0xffc00001}}) {
          FloatExtremes more = extremes;
          more.add(strange);
          CHECK(!more.all_finite());
        }
        const double largest = std::max(std::fabs(double{least}), std::fabs(double{greatest}));
        bool right = true;
        for (U key : keys) {
          const double magnitude = std::fabs(double{bits_as<float>(key)});
          const bool tiny = largest >= 0x1p-110 && magnitude > 0 && magnitude < largest * 0x1p-14;
          if (largest >= 0x1p-110 || largest < 0x1p-126) right = right && FloatExtremes::is_tiny(key, extremes.tiny_limit()) == tiny;
        }
        CHECK(right);
      }
      const KeyOrder<U> ascending = make_key_order<U>(KeyKind::kFloat, false, infinity);
      U lowest = ~U{0}, highest = 0;
      for (U key : keys) {
        lowest = std::min(lowest, ascending.code(key));
        highest = std::max(highest, ascending.code(key));
      }
      const CodeMap<U> codes(lowest, highest, descending);
      CHECK(monotone(keys, before, [&](U key) { return codes(ascending.code(key)); }));
    }
  }
}

template <class U>
void check_integers() {
  std::mt19937_64 random(7);
  for (int bits : {1, 5, 20, 31, static_cast<int>(sizeof(U) * 8)}) {
    for (bool descending : {false, true}) {
      std::vector<U> codes;
      const U base = static_cast<U>(random()) >> 1;
      for (int i = 0; i < 3000; ++i)
        codes.push_back(static_cast<U>((bits >= static_cast<int>(sizeof(U) * 8) ? 0 : base) + (random() >> (64 - bits))));
      const U lowest = *std::min_element(codes.begin(), codes.end()), highest = *std::max_element(codes.begin(), codes.end());
      const CodeMap<U> map(lowest, highest, descending);
      const auto before = [&](U a, U b) { return descending ? a > b : a < b; };
      CHECK(monotone(codes, before, map));
      // The leading range_bits() bits tell all codes apart.
      const int kept = range_bits(static_cast<U>(highest - lowest));
      bool exact = true;
      for (size_t i = 1; i < codes.size() && kept <= 32; ++i) {
        exact = exact && ((map(codes[i - 1]) >> (32 - kept)) == (map(codes[i]) >> (32 - kept))) == (codes[i - 1] == codes[i]);
      }
      CHECK(exact);
    }
  }
  const CodeMap<U> single(5, 5, false);
  CHECK(single(5) == 0);
}

template <class Float>
std::vector<std::vector<Float>> float_rows() {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  std::vector<std::vector<Float>> rows(8);
  const auto any_bits = [&](double scale) {
    return static_cast<Float>(normal(random) * std::pow(2.0, static_cast<double>(random() % 60) - 30) * scale);
  };
  for (int i = 0; i < 4000; ++i) {
    rows[0].push_back(static_cast<Float>(normal(random)));
    rows[1].push_back(static_cast<Float>(normal(random) > 0 ? normal(random) : (i % 2 ? 0.0 : -0.0)));
    rows[2].push_back(any_bits(1.0));
    rows[3].push_back(static_cast<Float>(100 + std::fabs(normal(random))));
    rows[4].push_back(static_cast<Float>(normal(random) * 1e38 * 0.5));
    rows[5].push_back(static_cast<Float>(normal(random) * 1e-44));
    rows[6].push_back(i % 3 ? any_bits(1e-20) : static_cast<Float>(-0.0));
    rows[7].push_back(static_cast<Float>(i % 2 ? -0.0 : 0.0));
  }
  rows[0].push_back(static_cast<Float>(-0.0));
  rows[0].push_back(static_cast<Float>(0.0));
  return rows;
}

}  // namespace

int main() {
  check_float_maps<uint32_t, float>(float_rows<float>(), static_cast<uint32_t>(kInfinity32));
  check_float_maps<uint64_t, double>(float_rows<double>(), kInfinity64);
  check_integers<uint32_t>();
  check_integers<uint64_t>();
  CHECK(leading_zeros(uint32_t{0}) == 32 && leading_zeros(uint32_t{1}) == 31 && leading_zeros(~uint32_t{0}) == 0);
  CHECK(leading_zeros(uint64_t{0}) == 64 && leading_zeros(uint64_t{1}) == 63 && leading_zeros(uint64_t{1} << 32) == 31);
  return report();
}
