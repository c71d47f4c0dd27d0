// Stable sort of positions by their codes, one row: radix by the leading bits, then ties are mended.
//
// An entry is a word (leading bits of a code) beside a position: 8 bytes, however wide the key is. Entries are radix sorted by the word,
// which leaves each group of equal words in input order. A group whose codes still differ below the word is sorted in turn: short ones by
// insertion, others by this same method on the bits that vary within the group. Invariant: groups are in their final order and every
// group keeps the input order until it is mended, so the whole is stable.
// Cost: two reads and a write of 8 bytes per digit of the leading bits, a read of the keys per level; as many levels as the data asks for.
#pragma once

#include <cstdint>
#include <vector>

#include "code_window.h"
#include "radix_sort.h"
#include "sort_method.h"

namespace gpusort::cpu {

template <class Word>
struct Entry {
  Word word;
  Word index;
};

template <class Code>
int width_of(Code value) {
  int bits = 0;
  for (; value != 0; value = static_cast<Code>(value >> 1)) ++bits;
  return bits;
}

// Word is uint32_t, or uint64_t for rows whose positions need it.
template <class U, class Word>
class LeadingBitsSorter {
 public:
  using Element = Entry<Word>;

  LeadingBitsSorter(const U* keys, const CodeWindow<U>& window) : keys_(keys), window_(window) {}

  // Sorts positions 0, 1, ..., size - 1. `varying` has a bit set wherever two of their codes differ. Entries need not be initialised.
  // Returns where the result lies, `entries` or `scratch`.
  Element* sort(Element* entries, Element* scratch, int64_t size, U varying, const Parallel& parallel) const {
    return sort_by_leading_bits(entries, scratch, size, varying, parallel, [](int64_t i) { return static_cast<Word>(i); });
  }

 private:
  // index_of(i) is the position that entry i stands for.
  template <class IndexOf>
  Element* sort_by_leading_bits(Element* entries, Element* scratch, int64_t size, U varying, const Parallel& parallel,
                                IndexOf index_of) const {
    const int top = width_of(varying);
    const int bits = std::min(top, leading_bits(size, static_cast<int>(sizeof(Word) * 8)));
    const int shift = top - bits;
    const int64_t slices = slices_for(size, parallel.threads());
    parallel.for_each(slices, [&](int64_t s) {
      const Slice slice = slice_of(size, slices, s);
      for (int64_t i = slice.begin; i < slice.end; ++i) {
        const Word index = index_of(i);
        entries[i] = {static_cast<Word>(window_(keys_[index]) >> shift), index};
      }
    });
    Element* sorted = radix_sort_elements(
        entries, scratch, size, static_cast<Word>(varying >> shift), [](const Element& entry) { return entry.word; }, parallel);
    const U below = static_cast<U>(varying & static_cast<U>((U{1} << shift) - 1));
    if (below != 0) mend(sorted, sorted == entries ? scratch : entries, size, slices, parallel);
    return sorted;
  }

  static constexpr int64_t kShortGroup = 48;        // insertion sort up to this many entries
  static constexpr int64_t kSharedGroup = 1 << 17;  // above this many all threads work on one group

  // A group belongs to the slice it begins in. Mending overwrites words, so all slices learn where their groups begin before any is mended.
  void mend(Element* entries, Element* scratch, int64_t size, int64_t slices, const Parallel& parallel) const {
    std::vector<int64_t> starts(slices + 1, size);
    for (int64_t s = 0; s < slices; ++s) {
      int64_t start = slice_of(size, slices, s).begin;
      if (s > 0) start = std::max(start, starts[s - 1]);
      while (start > 0 && start < size && entries[start].word == entries[start - 1].word) ++start;
      starts[s] = start;
    }
    std::vector<std::vector<Slice>> shared(slices);
    parallel.for_each(slices, [&](int64_t s) {
      for (int64_t begin = starts[s], end; begin < starts[s + 1]; begin = end) {
        end = begin + 1;
        while (end < starts[s + 1] && entries[end].word == entries[begin].word) ++end;
        const int64_t group = end - begin;
        if (group > kSharedGroup && parallel.threads() > 1) {
          shared[s].push_back({begin, end});
        } else if (group > kShortGroup) {
          mend_group(entries + begin, scratch + begin, group, Parallel::serial());
        } else if (group > 1) {
          insertion_sort(entries + begin, group);
        }
      }
    });
    for (const auto& groups : shared) {
      for (const Slice& group : groups) mend_group(entries + group.begin, scratch + group.begin, group.size(), parallel);
    }
  }

  void mend_group(Element* entries, Element* scratch, int64_t size, const Parallel& parallel) const {
    const U first = window_(keys_[entries[0].index]);
    U varying = 0, previous = first;
    bool rising = true;
    for (int64_t i = 1; i < size; ++i) {
      const U code = window_(keys_[entries[i].index]);
      varying = static_cast<U>(varying | (code ^ first));
      rising = rising && previous <= code;
      previous = code;
    }
    if (rising) return;
    const Element* sorted =
        sort_by_leading_bits(entries, scratch, size, varying, parallel, [entries](int64_t i) { return entries[i].index; });
    if (sorted != entries) std::copy(sorted, sorted + size, entries);
  }

  void insertion_sort(Element* entries, int64_t size) const {
    U codes[kShortGroup];
    for (int64_t i = 0; i < size; ++i) {
      const U code = window_(keys_[entries[i].index]);
      const Word index = entries[i].index;
      int64_t place = i;
      for (; place > 0 && code < codes[place - 1]; --place) {
        codes[place] = codes[place - 1];
        entries[place].index = entries[place - 1].index;
      }
      codes[place] = code;
      entries[place].index = index;
    }
  }

  const U* keys_;
  CodeWindow<U> window_;
};

}  // namespace gpusort::cpu
