// From a key of a bucket to its bin, and which of two records of one bin goes first.
//
// The flat map serves buckets whose flat forms are in order as they are (core/flat_order.h): nearly all. The exact map serves the others,
// those that hold NaNs, zeros of both signs, or floats of many magnitudes: it compares codes, and may cut the range by the numbers
// themselves. Keys around zero spread evenly as numbers, while most of the range of their codes belongs to magnitudes that none of them
// has.
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

template <class U>
struct ExactMap {
  using Record = typename BucketRecords<U>::Record;
  using Flat = typename BucketRecords<U>::Flat;
  using Number = decltype(number_of(U{}));

  KeyOrder<U> order;
  FlatOrder<U> flats;
  bool descending;
  uint32_t bins;
  Flat low, high;  // codes
  BinMap<Flat> bin_of;
  bool by_number = false;
  Number first = 0, scale = 0;

  __device__ __forceinline__ ExactMap(const BucketArguments<U>& arguments, const FlatOrder<U>& flat_order, Flat low_code, Flat high_code,
                                      uint32_t all)
      : order(arguments.order),
        flats(flat_order),
        descending(arguments.descending),
        bins(all),
        low(low_code),
        high(high_code),
        bin_of(low_code, high_code, all) {}

  __device__ __forceinline__ Flat code(Flat flat) const { return order.code(flats.bits(static_cast<U>(flat))); }

  // The number, or its negative, so that it rises with the code.
  __device__ __forceinline__ Number rising(Flat flat) const {
    const Number number = number_of(flats.bits(static_cast<U>(flat)));
    return descending ? -number : number;
  }

  // Bins by number from now on; false when the numbers of these least and greatest flat forms do not allow it.
  __device__ __forceinline__ bool cut_by_number(Flat low_flat, Flat high_flat) {
    first = rising(low_flat);
    const Number range = rising(high_flat) - first;
    scale = static_cast<Number>(bins) / range * static_cast<Number>(1.0 - 0x1p-20);
    const Number limit = static_cast<Number>(1e38);
    by_number = range > 0 && range < limit && scale < limit;
    return by_number;
  }

  __device__ __forceinline__ uint32_t bin(Flat flat) const {
    if (by_number) return min(static_cast<uint32_t>((rising(flat) - first) * scale), bins - 1);
    return bin_of(code(flat));
  }
  __device__ __forceinline__ bool below(const Record& a, const Record& b) const {
    const Flat code_a = code(a.key), code_b = code(b.key);
    if (a.index == kPadIndex) return false;  // its code may be any
    return code_a == code_b ? a.index < b.index : code_a < code_b;
  }
};

}  // namespace gpusort
