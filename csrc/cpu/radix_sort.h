// Least-significant-digit radix sort of elements in memory, one row, all threads.
//
// One pass per 8-bit digit: every thread counts the digits of its own slice, the counts are scanned bin by bin and slice by slice, and
// every thread moves its slice to the places that gives. Invariant: slices are ordered and each thread keeps the order of its own, so a
// pass is stable, and after pass p elements are sorted by their lowest p digits. Digits in which no two codes differ are skipped.
// Cost: two reads and one write of the elements per digit left. Source: Knuth, TAOCP volume 3, section 5.2.5.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "../core/digits.h"
#include "parallel.h"
#include "sort_method.h"

namespace gpusort::cpu {

constexpr int kDigitBits = 8;
constexpr int kBins = 1 << kDigitBits;

// Sorts `size` elements at `elements` by the unsigned code_of(element), using `scratch` of the same size; the result lies where the
// returned pointer says. `varying` has a bit set wherever two codes differ.
template <class Element, class Code, class CodeOf>
Element* radix_sort_elements(Element* elements, Element* scratch, int64_t size, Code varying, CodeOf code_of, const Parallel& parallel) {
  const int64_t slices = slices_for(size, parallel.threads());
  std::vector<std::array<int64_t, kBins>> places(slices);
  for (int shift = 0; shift < static_cast<int>(sizeof(Code) * 8); shift += kDigitBits) {
    const Digit digit{shift, kDigitBits};
    if (digit.of(varying) == 0) continue;
    parallel.for_each(slices, [&](int64_t s) {
      const Slice slice = slice_of(size, slices, s);
      std::array<int64_t, kBins> counts{};
      for (int64_t i = slice.begin; i < slice.end; ++i) ++counts[digit.of(code_of(elements[i]))];
      places[s] = counts;
    });
    int64_t place = 0;
    for (int bin = 0; bin < kBins; ++bin) {
      for (int64_t s = 0; s < slices; ++s) {
        const int64_t count = places[s][bin];
        places[s][bin] = place;
        place += count;
      }
    }
    parallel.for_each(slices, [&](int64_t s) {
      const Slice slice = slice_of(size, slices, s);
      std::array<int64_t, kBins> next = places[s];
      for (int64_t i = slice.begin; i < slice.end; ++i) {
        const Element element = elements[i];
        scratch[next[digit.of(code_of(element))]++] = element;
      }
    });
    std::swap(elements, scratch);
  }
  return elements;
}

}  // namespace gpusort::cpu
