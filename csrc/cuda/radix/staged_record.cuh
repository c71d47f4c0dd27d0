// The forms a key and its index take on their way through a pass, and how a pass sees them: as a digit, and as an order.
//
// What travels is the key's code (core/key_order.h), so every digit and every comparison is a shift and a mask. A code has lost the sign of
// zero, the payload of NaN and the byte of True; kernels after the last step give those back (ambiguous_keys.h, equal_codes.h). Keys
// without an index that are sorted by some of their bits only travel in the ordered form instead, which loses nothing, and their codes are
// computed when needed.
//
//   in registers  `Input`: what was loaded, the key as it travels
//   staged        `Word` in shared memory, in digit order. 32-bit keys: (index, key). 8- and 16-bit keys of the first slot: key << 16 |
//                 place in the tile, since the index follows from the place. 64-bit keys: the key, its index in an array of its own. Keys
//                 only: the key
//   in memory     between slots: the same pairs as 8-byte records; 64-bit keys and indices in two arrays; keys alone
#pragma once

#include <cstdint>
#include <type_traits>

#include "pass_arguments.h"
#include "radix_control.cuh"

namespace gpusort {

template <class Key, bool kIndexed, bool kFromKeys>
struct StagedRecord {
  using Code = CodeOf<Key>;
  static constexpr bool k64 = sizeof(Key) == 8;
  static constexpr bool kPacked = kIndexed && kFromKeys && sizeof(Key) <= 2;
  static constexpr bool kSplit = kIndexed && k64;
  static constexpr bool kPair = kIndexed && !k64 && !kPacked;
  using Word = std::conditional_t<k64 || kPair, uint2, uint32_t>;
  using Input = std::conditional_t<k64 || (kPair && !kFromKeys), uint2, uint32_t>;
  // Ranks count in bytes, in steps of kUnit for every record; a place in bytes times kScale is the place of the Word.
  static constexpr uint32_t kUnit = k64 ? 4 : sizeof(Word);
  static constexpr uint32_t kScale = sizeof(Word) / kUnit;

  __device__ __forceinline__ static uint2 split(uint64_t value) {
    return make_uint2(static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32));
  }
  __device__ __forceinline__ static uint64_t join(uint2 value) { return static_cast<uint64_t>(value.y) << 32 | value.x; }

  // The key inside an Input or a Word.
  __device__ __forceinline__ static Code key_of_input(const Input& input) {
    if constexpr (k64)
      return join(input);
    else if constexpr (std::is_same_v<Input, uint2>)
      return input.y;
    else
      return input;
  }
  __device__ __forceinline__ static Code key_of_word(const Word& word) {
    if constexpr (k64)
      return join(word);
    else if constexpr (kPair)
      return word.y;
    else if constexpr (kPacked)
      return word >> 16;
    else
      return word;
  }

  // What fills a ragged tile: the largest code, which stays behind every key in every digit.
  __device__ __forceinline__ static Input pad() {
    if constexpr (std::is_same_v<Input, uint2>)
      return make_uint2(~0u, ~0u);
    else
      return static_cast<Key>(~Key{0});
  }

  // `place`: position in the tile. `index`: position in the row (of split records: ignored here).
  __device__ __forceinline__ static Word stage(const Input& input, uint32_t place, uint32_t index) {
    if constexpr (kPacked)
      return input << 16 | place;
    else if constexpr (kPair && kFromKeys)
      return make_uint2(index, input);
    else
      return input;
  }
};

// How a step looks at travelling keys: the digit it sorts by, and all bits sorted by so far. kOrdered: they travel in the ordered form.
template <class Key, bool kOrdered>
struct DigitView {
  using Code = CodeOf<Key>;
  Code clamp, zero, complement;  // used when kOrdered
  uint32_t shift, mask;  // 32-bit keys: rotation and mask that give 4 * digit; 64-bit keys: shift inside a word and mask of the digit
  bool high;             // 64-bit keys: the digit starts in the high word
  Code so_far;           // mask of the bits sorted by, with this digit

  __device__ __forceinline__ static DigitView make(const PassArguments<Key>& arguments, const PassRole& role) {
    DigitView view;
    view.clamp = arguments.order.clamp;
    view.zero = arguments.order.zero;
    view.complement = arguments.order.complement;
    const uint32_t first = arguments.begin_bit + role.digit * kRadixBits;
    const uint32_t bits = min(arguments.window_bits - role.digit * kRadixBits, kRadixBits);
    const uint32_t digit_mask = (1u << bits) - 1;
    view.so_far = static_cast<Code>(static_cast<Code>(~Code{0}) >> (sizeof(Code) * 8 - first - bits)) &
                  static_cast<Code>(~Code{0} << (sizeof(Key) == 8 && role.lowest != 0 ? role.lowest : arguments.begin_bit));
    view.high = first >= 32;
    view.shift = sizeof(Key) == 8 ? first & 31 : (first - 2) & 31;
    view.mask = sizeof(Key) == 8 ? digit_mask : digit_mask << 2;
    return view;
  }

  __device__ __forceinline__ Code code(Code key) const {
    if constexpr (!kOrdered) return key;
    const Code clamped = key < clamp ? key : clamp;
    return (clamped + (clamped < zero ? 1 : 0)) ^ complement;
  }

  // 4 * digit: the offset of the digit's counter.
  __device__ __forceinline__ uint32_t offset_of_code(Code value) const {
    if constexpr (sizeof(Key) == 8) {
      const uint32_t low = static_cast<uint32_t>(value), up = static_cast<uint32_t>(value >> 32);
      return (__funnelshift_r(high ? up : low, high ? 0 : up, shift) & mask) << 2;
    } else {
      return __funnelshift_r(value, value, shift) & mask;
    }
  }
  __device__ __forceinline__ uint32_t offset(Code key) const { return offset_of_code(code(key)); }

  // The bits sorted by so far, as a number that rises.
  __device__ __forceinline__ Code sorted_bits(Code value) const { return value & so_far; }
};

// From a code back to the key's bits: one of the patterns that have this code. See ambiguous_keys.h for the others.
template <class Key>
__device__ __forceinline__ Key bits_of_code(const KeyOrder<Key>& order, Key code) {
  const Key ascending = static_cast<Key>(code ^ order.complement);
  return order.from_ordered(static_cast<Key>(ascending - (ascending < order.zero ? 1 : 0)));
}

}  // namespace gpusort
