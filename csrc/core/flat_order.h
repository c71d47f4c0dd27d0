// The order of the contract in three instructions and without loss, for keys among which it makes no difference.
//
// A key's code (key_order.h) costs six to eight instructions and loses the sign of zero and the payload of a NaN. The flat form is only the
// flip of the sign (Herf, "Radix Tricks", 2001) and the complement of descending order: a bijection of the bits that rises with the code
// as long as there is no NaN and not zeros of both signs. Whether that holds for a set of keys follows from its least and greatest flat
// form: NaNs lie beyond the infinities, and the zeros of both signs are neighbours on either side of the middle.
#pragma once

#include <cstdint>
#include <type_traits>

#include "key_order.h"

namespace gpusort {

template <class U>
struct FlatOrder {
  static constexpr int kBits = static_cast<int>(sizeof(U) * 8);
  using Signed = typename std::make_signed<U>::type;

  U flip = 0;           // of every key
  U negative_flip = 0;  // besides, of keys whose top bit is set; leaves the top bit alone
  U least = 0;          // of the keys for which the flat form is right
  U greatest = static_cast<U>(~U{0});
  bool has_zeros = false;  // of both signs

  GPUSORT_HD FlatOrder() {}
  GPUSORT_HD explicit FlatOrder(const KeyOrder<U>& order)
      : flip(static_cast<U>(order.positive_flip ^ order.complement)),
        negative_flip(static_cast<U>(order.positive_flip ^ order.negative_flip)),
        has_zeros(order.zero != 0) {
    const U last = static_cast<U>(order.lowest + order.clamp);  // what equals the clamp is a NaN, or the largest integer
    const U greatest_flipped = order.zero != 0 ? static_cast<U>(last - 1) : last;
    least = order.complement ? static_cast<U>(~greatest_flipped) : order.lowest;
    greatest = order.complement ? static_cast<U>(~order.lowest) : greatest_flipped;
  }

  GPUSORT_HD U flat(U bits) const {
    return static_cast<U>(bits ^ (static_cast<U>(static_cast<Signed>(bits) >> (kBits - 1)) & negative_flip) ^ flip);
  }

  GPUSORT_HD U bits(U flat) const {
    const U flipped = static_cast<U>(flat ^ flip);
    return static_cast<U>(flipped ^ (static_cast<U>(static_cast<Signed>(flipped) >> (kBits - 1)) & negative_flip));
  }

  // Among flat forms from `low` to `high`.
  GPUSORT_HD bool may_hold_nan(U low, U high) const { return low < least || high > greatest; }

  // Flat forms from `low` to `high` are in the order of the codes, and equal exactly when the codes are.
  GPUSORT_HD bool right_between(U low, U high) const {
    const bool both_signs = static_cast<U>(low ^ high) >> (kBits - 1) != 0;
    return low == high || (!may_hold_nan(low, high) && !(has_zeros && both_signs));
  }
};

}  // namespace gpusort
