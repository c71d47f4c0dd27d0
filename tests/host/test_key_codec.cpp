// KeyCodec against KeyOrder: the same codes, and bits that have the code they came from. All keys of 8 and 16 bits, special and random
// others.
#include "../../csrc/core/key_codec.h"

#include <cstdint>
#include <random>
#include <vector>

#include "check.h"

using namespace gpusort;

namespace {

template <class Key>
void check_keys(KeyKind kind, Key infinity, const std::vector<Key>& keys) {
  for (bool descending : {false, true}) {
    const KeyOrder<Key> order = make_key_order<Key>(kind, descending, infinity);
    const KeyCodec<Key> codec = make_key_codec(order);
    long wrong_codes = 0, wrong_bits = 0;
    for (const Key key : keys) {
      const auto code = codec.code(key);
      wrong_codes += code != order.code(key);
      const Key back = codec.bits(code);
      wrong_bits += order.code(back) != order.code(key);
      // The pattern that comes back is the key's own, but for one zero, all NaNs but one, and bytes that mean True.
      const Key ordered = order.to_ordered(key);
      const bool tied = ordered == static_cast<Key>(order.zero - 1) || ordered > order.clamp;
      if (kind == KeyKind::kUnsigned || kind == KeyKind::kSigned) {
        wrong_bits += back != key;
      } else {
        wrong_bits += (back != key) != tied;
        wrong_bits += codec.loses_bits(key, codec.mirrored(key)) != tied;
      }
    }
    CHECK(wrong_codes == 0);
    CHECK(wrong_bits == 0);
  }
}

template <class Key>
std::vector<Key> all_keys() {
  std::vector<Key> keys;
  for (uint32_t key = 0; key <= static_cast<Key>(~Key{0}); ++key) keys.push_back(static_cast<Key>(key));
  return keys;
}

template <class Key>
std::vector<Key> some_keys(Key infinity) {
  constexpr Key kSign = Key{1} << (sizeof(Key) * 8 - 1);
  std::mt19937_64 random(7);
  std::vector<Key> keys;
  for (const Key base :
       {Key{0}, kSign, infinity, static_cast<Key>(infinity | kSign), static_cast<Key>(kSign - 1), static_cast<Key>(~Key{0})}) {
    for (int distance = -3; distance <= 3; ++distance) keys.push_back(static_cast<Key>(base + distance));
  }
  for (int i = 0; i < 200000; ++i) keys.push_back(static_cast<Key>(random()));
  return keys;
}

}  // namespace

int main() {
  for (KeyKind kind : {KeyKind::kUnsigned, KeyKind::kSigned}) {
    check_keys<uint8_t>(kind, 0, all_keys<uint8_t>());
    check_keys<uint16_t>(kind, 0, all_keys<uint16_t>());
    check_keys<uint32_t>(kind, 0, some_keys<uint32_t>(0));
    check_keys<uint64_t>(kind, 0, some_keys<uint64_t>(0));
  }
  check_keys<uint8_t>(KeyKind::kBool, 0, all_keys<uint8_t>());
  check_keys<uint8_t>(KeyKind::kFloat, 0x7c, all_keys<uint8_t>());       // float8_e5m2
  check_keys<uint8_t>(KeyKind::kFloatNoInf, 0x7e, all_keys<uint8_t>());  // float8_e4m3fn
  check_keys<uint16_t>(KeyKind::kFloat, 0x7c00, all_keys<uint16_t>());   // float16
  check_keys<uint16_t>(KeyKind::kFloat, 0x7f80, all_keys<uint16_t>());   // bfloat16
  check_keys<uint32_t>(KeyKind::kFloat, 0x7f800000, some_keys<uint32_t>(0x7f800000));
  check_keys<uint64_t>(KeyKind::kFloat, 0x7ff0000000000000, some_keys<uint64_t>(0x7ff0000000000000));
  return report();
}
