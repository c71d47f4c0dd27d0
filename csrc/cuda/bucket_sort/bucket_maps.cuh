// From a key of a bucket to its bin, and which of two records of one bin goes first.
//
// The flat map serves buckets whose flat forms are in order as they are (core/flat_order.h): nearly all. The number map cuts the range of
// floats of many magnitudes by the numbers themselves: keys around zero spread evenly as numbers, while most of the range of their codes
// belongs to magnitudes that none of them has. The exact map serves the others, those that hold NaNs or zeros of both signs: it compares
// codes, and cuts the range by numbers or codes.
#pragma once

#include <cstdint>

#include "../../core/flat_order.h"
#include "../../core/word_map.h"
#include "bucket_records.cuh"

namespace gpusort {

// bin_of(word) < bins for words from `lowest` to `highest`, which differ; monotone.
template <class Word>
struct BinMap {
  Word lowest;
  int shift;  // brings the top bit of the range to the top of the word
  uint32_t factor;

  __device__ __forceinline__ BinMap(Word low, Word high, uint32_t bins) : lowest(low), shift(leading_zeros(static_cast<Word>(high - low))) {
    const float range = static_cast<float>(above_lowest(high)) + 1.0f;
    // Five roundings of 2^-24 (the division: 2^-22) are less than what the last factor takes away.
    factor = static_cast<uint32_t>(__fdividef(static_cast<float>(bins) * 4294967296.0f, range) * (1.0f - 0x1p-20f));
  }

  // The leading 32 bits of the distance to the lowest.
  __device__ __forceinline__ uint32_t above_lowest(Word word) const {
    return static_cast<uint32_t>(static_cast<Word>((word - lowest) << shift) >> (sizeof(Word) * 8 - 32));
  }
  __device__ __forceinline__ uint32_t operator()(Word word) const { return __umulhi(above_lowest(word), factor); }
};

template <class U>
struct FlatMap {
  using Record = typename BucketRecords<U>::Record;
  using Flat = typename BucketRecords<U>::Flat;

  BinMap<Flat> bin_of;

  __device__ __forceinline__ FlatMap(Flat low, Flat high, uint32_t bins) : bin_of(low, high, bins) {}
  __device__ __forceinline__ uint32_t bin(Flat flat) const { return bin_of(flat); }
  __device__ __forceinline__ bool below(const Record& a, const Record& b) const { return a < b; }
};

// The number a key stands for, as far as bins go. Keys to 16 bits are never cut by it.
__device__ __forceinline__ float number_of(uint32_t bits) {
  return __uint_as_float(bits);
}
__device__ __forceinline__ double number_of(uint64_t bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}
__device__ __forceinline__ float number_of(uint16_t) {
  return 0;
}

// Cuts by the numbers themselves, and compares flat forms.
template <class U>
struct NumberMap {
  using Record = typename BucketRecords<U>::Record;
  using Flat = typename BucketRecords<U>::Flat;
  using Number = decltype(number_of(U{}));

  FlatOrder<U> flats;
  bool descending;
  uint32_t bins;
  Number first, scale;
  bool possible;  // the numbers of the least and greatest flat forms allow it

  __device__ __forceinline__ NumberMap(const BucketArguments<U>& arguments, const FlatOrder<U>& order, Flat low, Flat high, uint32_t all)
      : flats(order), descending(arguments.descending), bins(all), first(rising(low)) {
    const Number range = rising(high) - first, limit = static_cast<Number>(1e38);
    scale = static_cast<Number>(all) / range * static_cast<Number>(1.0 - 0x1p-20);
    possible = range > 0 && range < limit && scale < limit;
  }

  // The number, or its negative, so that it rises with the code.
  __device__ __forceinline__ Number rising(Flat flat) const {
    const Number number = number_of(flats.bits(static_cast<U>(flat)));
    return descending ? -number : number;
  }
  __device__ __forceinline__ uint32_t bin(Flat flat) const { return min(static_cast<uint32_t>((rising(flat) - first) * scale), bins - 1); }
  __device__ __forceinline__ bool below(const Record& a, const Record& b) const { return a < b; }
};

template <class U>
struct ExactMap {
  using Record = typename BucketRecords<U>::Record;
  using Flat = typename BucketRecords<U>::Flat;

  KeyOrder<U> order;
  NumberMap<U> numbers;
  BinMap<Flat> bin_of;
  bool by_number;

  // `low` and `high` are flat forms, `low_code` and `high_code` codes.
  __device__ __forceinline__ ExactMap(const BucketArguments<U>& arguments, const FlatOrder<U>& flats, Flat low, Flat high, Flat low_code,
                                      Flat high_code, uint32_t bins)
      : order(arguments.order),
        numbers(arguments, flats, low, high, bins),
        bin_of(low_code, high_code, bins),
        by_number(arguments.is_float && numbers.possible && !flats.may_hold_nan(static_cast<U>(low), static_cast<U>(high))) {}

  __device__ __forceinline__ Flat code(Flat flat) const { return order.code(numbers.flats.bits(static_cast<U>(flat))); }
  __device__ __forceinline__ uint32_t bin(Flat flat) const { return by_number ? numbers.bin(flat) : bin_of(code(flat)); }
  __device__ __forceinline__ bool below(const Record& a, const Record& b) const {
    const Flat code_a = code(a.key), code_b = code(b.key);
    if (a.index == kPadIndex) return false;  // its code may be any
    return code_a == code_b ? a.index < b.index : code_a < code_b;
  }
};

}  // namespace gpusort
