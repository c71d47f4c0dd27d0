// The flat order against the codes: where it says that it is right, it orders every pair as they do; and it loses nothing.
#include "../../csrc/core/flat_order.h"

#include <vector>

#include "check.h"

using namespace gpusort;

namespace {

// Every pair of patterns a step apart or near zero or infinity. all_right: no range is refused.
template <class U>
void check_pairs(KeyKind kind, U infinity, bool all_right) {
  for (const bool descending : {false, true}) {
    const KeyOrder<U> order = make_key_order<U>(kind, descending, infinity);
    const FlatOrder<U> flat_order(order);
    const long patterns = 1L << (sizeof(U) * 8), step = patterns > 256 ? 41 : 1;
    std::vector<U> keys;
    for (long bits = 0; bits < patterns; ++bits) {
      const U key = static_cast<U>(bits);
      if (flat_order.bits(flat_order.flat(key)) != key) CHECK(false);
      const U magnitude = static_cast<U>(key << 1) >> 1;
      if (bits % step == 0 || magnitude < 3 || (infinity != 0 && magnitude + 3 > infinity && magnitude < infinity + 3)) keys.push_back(key);
    }
    long wrong = 0, right = 0, pairs = 0;
    for (const U a : keys) {
      for (const U b : keys) {
        const U low = flat_order.flat(a), high = flat_order.flat(b);
        if (low > high) continue;
        ++pairs;
        if (!flat_order.right_between(low, high)) continue;
        ++right;
        wrong += (low < high) != (order.code(a) < order.code(b)) || (low == high) != (order.code(a) == order.code(b));
      }
    }
    CHECK(wrong == 0);
    CHECK(all_right ? right == pairs : right < pairs && right > pairs / 4);
  }
}

// What lies between two patterns decides as well: NaNs and zeros of both signs are seen from outside.
void check_ranges() {
  constexpr uint32_t kInfinity = 0x7f800000u, kSign = 0x80000000u;
  for (const bool descending : {false, true}) {
    const FlatOrder<uint32_t> order(make_key_order<uint32_t>(KeyKind::kFloat, descending, kInfinity));
    const auto right = [&](uint32_t a, uint32_t b) {
      const uint32_t x = order.flat(a), y = order.flat(b);
      return x < y ? order.right_between(x, y) : order.right_between(y, x);
    };
    CHECK(right(0, kInfinity));
    CHECK(right(kSign, kSign | kInfinity));
    CHECK(!right(kSign, 0));
    CHECK(!right(kSign | 1, 1));
    CHECK(!right(1, kInfinity + 1));
    CHECK(!right(kSign | 1, kSign | (kInfinity + 1)));
    CHECK(!right(kInfinity + 1, kInfinity + 2));
    CHECK(right(kInfinity + 1, kInfinity + 1));
  }
}

}  // namespace

int main() {
  check_pairs<uint8_t>(KeyKind::kUnsigned, 0, true);
  check_pairs<uint8_t>(KeyKind::kSigned, 0, true);
  check_pairs<uint8_t>(KeyKind::kFloat, 0x7c, false);
  check_pairs<uint16_t>(KeyKind::kUnsigned, 0, true);
  check_pairs<uint16_t>(KeyKind::kSigned, 0, true);
  check_pairs<uint16_t>(KeyKind::kFloat, 0x7c00, false);
  check_pairs<uint16_t>(KeyKind::kFloat, 0x7f80, false);
  check_ranges();
  return report();
}
