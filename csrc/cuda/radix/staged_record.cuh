// The forms a key and its index take on their way through a pass, and how a pass sees them: as a digit, and as an order.
//
//   in registers  `Input`: what was loaded, the key in its ordered form (core/key_order.h)
//   staged        `Word` in shared memory, in digit order. 32-bit keys: (ordered, index). 8- and 16-bit keys of the first slot: ordered <<
//   16 | place
//                 in the tile, since the index follows from the place. 64-bit keys: the key, its index in an array of its own. Keys only:
//                 the key
//   in memory     between slots: the same pairs as 8-byte records; 64-bit keys and indices in two arrays; keys alone
#pragma once

#include <cstdint>
#include <type_traits>

#include "pass_arguments.h"

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

  // The ordered key inside an Input or a Word.
  __device__ __forceinline__ static Code ordered_of_input(const Input& input) {
    if constexpr (k64)
      return join(input);
    else if constexpr (std::is_same_v<Input, uint2>)
      return input.x;
    else
      return input;
  }
  __device__ __forceinline__ static Code ordered_of_word(const Word& word) {
    if constexpr (k64)
      return join(word);
    else if constexpr (kPair)
      return word.x;
    else if constexpr (kPacked)
      return word >> 16;
    else
      return word;
  }

  // `place`: position in the tile. `index`: position in the row (of split records: ignored here).
  __device__ __forceinline__ static Word stage(const Input& input, uint32_t place, uint32_t index) {
    if constexpr (kPacked)
      return input << 16 | place;
    else if constexpr (kPair && kFromKeys)
      return make_uint2(input, index);
    else
      return input;
  }
};

// How a step looks at ordered keys: the digit it sorts by, and all bits sorted by so far.
template <class Key>
struct DigitView {
  using Code = CodeOf<Key>;
  Code clamp, zero;
  uint32_t flip;
  uint32_t shift, mask;  // 32-bit keys: rotation and mask that give 4 * digit; 64-bit keys: shift inside a word and mask of the digit
  bool high;             // 64-bit keys: the digit starts in the high word
  Code so_far;           // mask of the bits sorted by, with this digit

  __device__ __forceinline__ static DigitView make(const PassArguments<Key>& arguments, int digit) {
    DigitView view;
    view.clamp = arguments.clamp;
    view.zero = arguments.zero;
    view.flip = arguments.flip;
    const uint32_t first = arguments.begin_bit + digit * kRadixBits;
    const uint32_t bits = min(arguments.window_bits - digit * kRadixBits, kRadixBits);
    const uint32_t digit_mask = (1u << bits) - 1;
    view.so_far = static_cast<Code>(static_cast<Code>(~Code{0}) >> (sizeof(Code) * 8 - first - bits)) &
                  static_cast<Code>(~Code{0} << arguments.begin_bit);
    view.high = first >= 32;
    view.shift = sizeof(Key) == 8 ? first & 31 : (first - 2) & 31;
    view.mask = sizeof(Key) == 8 ? digit_mask : digit_mask << 2;
    return view;
  }

  // The code, not yet complemented.
  __device__ __forceinline__ Code code(Code ordered) const {
    const Code clamped = ordered < clamp ? ordered : clamp;
    return clamped + (clamped < zero ? 1 : 0);
  }

  // 4 * digit: the offset of the digit's counter.
  __device__ __forceinline__ uint32_t offset_of_code(Code value) const {
    if constexpr (sizeof(Key) == 8) {
      const uint32_t low = static_cast<uint32_t>(value), up = static_cast<uint32_t>(value >> 32);
      return ((__funnelshift_r(high ? up : low, high ? 0 : up, shift) ^ flip) & mask) << 2;
    } else {
      return (__funnelshift_r(value, value, shift) ^ flip) & mask;
    }
  }
  __device__ __forceinline__ uint32_t offset(Code ordered) const { return offset_of_code(code(ordered)); }

  // The bits sorted by so far, as a number that rises.
  __device__ __forceinline__ Code sorted_bits(Code value) const {
    if constexpr (sizeof(Key) == 8) {
      return (value ^ (static_cast<uint64_t>(flip) << 32 | flip)) & so_far;
    } else {
      return (value ^ flip) & so_far;
    }
  }
};

}  // namespace gpusort
