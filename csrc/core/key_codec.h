// The code of a key (key_order.h) in few instructions, and back. For kernels that code every key they read.
//
// KeyOrder says what the code is; this says the same with one mirroring and one comparison each way. Floats:
//
//   positive bits b:  ordered = zero + b,              code = min(ordered, clamp)
//   negative bits b:  ordered = zero - 1 + sign - b,   code = ordered + 1, and for a NaN, whose ordered value wraps round to the top, clamp
//
// Both are min(x, clamp - 1) + 1 with x = ordered - 1 for positive and x = ordered for negative bits. Backwards, codes from zero on belong
// to positive bits. Integers only flip their top bit, and nothing is mirrored. Descending order mirrors all codes, which turns the two
// halves of the way back round. Checked against KeyOrder for all keys of 8 and 16 bits and many others in tests/host/test_key_codec.cpp.
#pragma once

#include <cstdint>
#include <type_traits>

#include "host_device.h"
#include "key_order.h"

namespace gpusort {

template <class Key>
struct KeyCodec {
  // Arithmetic in at least 32 bits, where a narrow key's wrapping is not cut off: it must compare as large.
  using Code = std::conditional_t<sizeof(Key) == 8, uint64_t, uint32_t>;

  Code mirrored_above = ~Code{0};  // larger bits are mirrored
  Code add = 0;                    // to the others
  Code mirror = 0;                 // mirrored bits are subtracted from this
  Code most = ~Code{0};
  Key minus_zero = static_cast<Key>(~Key{0});  // no number but a float's
  Code flip = 0;
  Code step = 0;
  Code rising_above = 0;  // larger codes turn into bits by adding `rise`, the others by being subtracted from `fall`
  Code rise = 0;
  Code fall = 0;

  GPUSORT_HD Code code(Key key) const { return clamped(mirrored(key)); }
  GPUSORT_HD Code mirrored(Key key) const {
    const Code bits = key;
    return bits > mirrored_above ? mirror - bits : bits + add;
  }
  GPUSORT_HD Code clamped(Code x) const { return ((x < most ? x : most) ^ flip) + step; }

  // Is there another pattern that comes back for the code of a float or bool? `x`: the key, mirrored.
  GPUSORT_HD bool loses_bits(Key key, Code x) const { return key == minus_zero || x > most; }

  // One of the patterns that have this code: -0.0 comes back as +0.0, every NaN as the first.
  GPUSORT_HD Key bits(Code code) const { return static_cast<Key>(code > rising_above ? code + rise : fall - code); }
};

template <class Key>
GPUSORT_HD KeyCodec<Key> make_key_codec(const KeyOrder<Key>& order) {
  using Code = typename KeyCodec<Key>::Code;
  constexpr Code kAll = static_cast<Key>(~Key{0});
  constexpr Code kSign = kAll - (kAll >> 1);
  const bool descending = order.complement != 0;
  KeyCodec<Key> codec;
  if (order.zero != 0) {
    const Code zero = order.zero;
    codec.mirrored_above = kSign - 1;
    codec.add = zero - 1;
    codec.mirror = zero - 1 + kSign;
    codec.most = static_cast<Code>(order.clamp) - 1;
    codec.minus_zero = static_cast<Key>(kSign);
    codec.flip = order.complement;
    codec.step = descending ? ~Code{0} : Code{1};
    codec.rising_above = descending ? kAll - zero : zero - 1;
    codec.rise = descending ? zero + kSign - kAll : Code{0} - zero;
    codec.fall = descending ? kAll - zero : zero + kSign;
  } else {
    codec.most = order.clamp;
    codec.flip = static_cast<Key>(order.positive_flip ^ order.complement);
    codec.rising_above = descending ? kAll : Code{0};
    codec.rise = order.positive_flip;
    codec.fall = (descending ? kAll : Code{0}) + order.positive_flip;
  }
  return codec;
}

}  // namespace gpusort
