// The order of the contract, as unsigned integers.
//
// A key is sorted by its `code`: an unsigned integer of the key's width whose numeric order is the contract's order (numbers ascending,
// -0.0 equal to +0.0, every NaN equal and last; the exact mirror when descending). Two keys are equal exactly when their codes are.
//
// The code loses bits (the sign of zero, the payload of a NaN), so it is never stored. What may be stored between passes is the `ordered`
// form, a bijection of the key's bits from which the code is two or three integer instructions away:
//
//   bits --to_ordered--> ordered --code_of_ordered--> code            ordered --from_ordered--> bits
//
//   to_ordered   flips the sign bit (or, for a negative float, all bits), then subtracts the position of the lowest number, modulo 2^K.
//                For floats that moves the NaNs with the sign bit set from below -inf to above the NaNs without it.
//   code         clamps to the first NaN (all NaNs equal), adds 1 to what lies below +0.0 (so -0.0 meets +0.0), and complements when
//                descending
//
// All constants sit in a small run-time descriptor, so kernels are compiled per key width and never per dtype.
// Sources: the float flip is Herf, "Radix Tricks" (2001); the subtraction and the clamp are this project's, checked exhaustively for
// 8- and 16-bit floats in tests/host/test_key_order.cpp.
#pragma once

#include <cstdint>
#include <type_traits>

#include "host_device.h"

namespace gpusort {

enum class KeyKind : uint8_t {
  kBool,  // one byte; every nonzero byte is True
  kUnsigned,
  kSigned,
  kFloat,      // IEEE layout with infinities: float16, bfloat16, float32, float64, float8_e5m2
  kFloatNoInf  // float8_e4m3fn: the only NaN of each sign is all ones below the sign
};

template <class U>
struct KeyOrder {
  static_assert(std::is_unsigned<U>::value, "keys are handled as unsigned integers");
  static constexpr int kBits = static_cast<int>(sizeof(U) * 8);

  U positive_flip = 0;              // xor mask of keys whose top bit is clear
  U negative_flip = 0;              // xor mask of keys whose top bit is set
  U lowest = 0;                     // subtracted after the flip
  U clamp = static_cast<U>(~U{0});  // largest distinct ordered value; everything above equals it
  U zero = 0;                       // ordered values below this one move up by one
  U complement = 0;                 // all ones when descending

  GPUSORT_HD U to_ordered(U bits) const {
    const U flip = (bits >> (kBits - 1)) ? negative_flip : positive_flip;
    return static_cast<U>((bits ^ flip) - lowest);
  }

  GPUSORT_HD U from_ordered(U ordered) const {
    const U flipped = static_cast<U>(ordered + lowest);
    // A positive key has the top bit set after its flip when any flip is in use; an unsigned key is not flipped at all.
    const U flip = (flipped >> (kBits - 1)) ? positive_flip : negative_flip;
    return static_cast<U>(flipped ^ flip);
  }

  GPUSORT_HD U code_of_ordered(U ordered) const {
    U code = ordered < clamp ? ordered : clamp;
    code = static_cast<U>(code + (code < zero ? 1 : 0));
    return static_cast<U>(code ^ complement);
  }

  GPUSORT_HD U code(U bits) const { return code_of_ordered(to_ordered(bits)); }

  // Strictly before, in the order of the sort.
  GPUSORT_HD bool less(U a_bits, U b_bits) const { return code(a_bits) < code(b_bits); }
};

// `infinity` is the bit pattern of +inf (for kFloatNoInf: of the largest finite number).
template <class U>
GPUSORT_HD KeyOrder<U> make_key_order(KeyKind kind, bool descending, U infinity = 0) {
  constexpr U kAllOnes = static_cast<U>(~U{0});
  constexpr U kSign = static_cast<U>(U{1} << (KeyOrder<U>::kBits - 1));
  KeyOrder<U> order;
  if (kind == KeyKind::kBool) {
    order.clamp = 1;
  } else if (kind == KeyKind::kSigned) {
    order.positive_flip = kSign;
    order.negative_flip = kSign;
  } else if (kind == KeyKind::kFloat || kind == KeyKind::kFloatNoInf) {
    order.positive_flip = kSign;
    order.negative_flip = kAllOnes;
    order.lowest = static_cast<U>((kSign | infinity) ^ kAllOnes);         // where -inf lands after the flip
    order.clamp = static_cast<U>((infinity ^ kSign) - order.lowest + 1);  // the first NaN follows +inf
    order.zero = static_cast<U>(kSign - order.lowest);
  }
  order.complement = descending ? kAllOnes : U{0};
  return order;
}

}  // namespace gpusort
