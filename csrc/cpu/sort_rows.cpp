// Sorts rows of keys: many rows are dealt out to the threads, a few long ones are each sorted by all threads.
//
// A row is read once to see which bits of its codes vary and whether it is in order already (then it is copied). Else:
//   merge            words of a code above a position, merge sorted (merge_sort.h): short rows, and on request
//   bitonic, sample  the same words by another comparison sort (bitonic_sort.h, sample_sort.h), on request
//   radix, indices   positions sorted by the leading bits of their codes (leading_bits_sort.h)
//   radix, keys only the keys themselves in their ordered form, a bijection of their bits, by all digits that vary (radix_sort.h)
// Values keep their own bits: they are read from the input by position, or turned back from the ordered form.
#include "sort_rows.h"

#include <cstring>
#include <utility>
#include <vector>

#include "bitonic_sort.h"
#include "code_window.h"
#include "leading_bits_sort.h"
#include "merge_sort.h"
#include "radix_sort.h"
#include "sample_sort.h"
#include "scratch.h"

namespace gpusort::cpu {
namespace {

__extension__ using uint128 = unsigned __int128;

template <class U>
struct RowSummary {
  U first = 0;
  U varying = 0;  // a bit set wherever two codes differ
  bool sorted = true;
};

template <class U>
class RowSorter {
 public:
  RowSorter(const SortProblem& problem, const SortPlan& plan, const Parallel& parallel, int64_t row)
      : plan_(plan),
        parallel_(parallel),
        window_(problem),
        length_(problem.length),
        keys_(static_cast<const U*>(problem.keys_in) + row * problem.length),
        keys_out_(problem.keys_out == nullptr ? nullptr : static_cast<U*>(problem.keys_out) + row * problem.length) {
    if (problem.indices_out != nullptr) {
      index_bytes_ = problem.index_bytes;
      indices_out_ = static_cast<char*>(problem.indices_out) + row * problem.length * index_bytes_;
    }
    slices_ = slices_for(length_, parallel.threads());
  }

  void sort(Scratch& scratch) const {
    const RowSummary<U> summary = summarize();
    if (summary.sorted) {
      write([](int64_t i) { return i; });
    } else if (plan_.method != SortMethod::kRadix) {
      if (sizeof(U) <= 4 && !plan_.wide_index) {
        sort_words<uint64_t>(scratch);
      } else {
        sort_words<uint128>(scratch);
      }
    } else if (indices_out_ == nullptr && fewer_passes_by_keys(summary.varying)) {
      sort_keys(summary.varying, scratch);
    } else if (plan_.wide_index) {
      sort_positions<uint64_t>(summary.varying, scratch);
    } else {
      sort_positions<uint32_t>(summary.varying, scratch);
    }
  }

 private:
  template <class Visit>
  void for_each_slice(const Visit& visit) const {
    parallel_.for_each(slices_, [&](int64_t s) { visit(slice_of(length_, slices_, s)); });
  }

  RowSummary<U> summarize() const {
    std::vector<RowSummary<U>> parts(slices_);
    const U first = window_(keys_[0]);
    parallel_.for_each(slices_, [&](int64_t s) {
      const Slice slice = slice_of(length_, slices_, s);
      U varying = 0, previous = slice.begin > 0 ? window_(keys_[slice.begin - 1]) : first;
      bool sorted = true;
      for (int64_t i = slice.begin; i < slice.end; ++i) {
        const U code = window_(keys_[i]);
        varying = static_cast<U>(varying | (code ^ first));
        sorted = sorted & (previous <= code);
        previous = code;
      }
      parts[s] = {first, varying, sorted};
    });
    RowSummary<U> whole = parts[0];
    for (const auto& part : parts) {
      whole.varying = static_cast<U>(whole.varying | part.varying);
      whole.sorted = whole.sorted && part.sorted;
    }
    return whole;
  }

  // Moving keys takes a pass per digit that varies; moving positions takes one per digit of the leading bits, and mending.
  bool fewer_passes_by_keys(U varying) const {
    int digits = 0;
    for (int shift = 0; shift < KeyOrder<U>::kBits; shift += kDigitBits) digits += Digit{shift, kDigitBits}.of(varying) != 0;
    return digits * kDigitBits <= leading_bits(length_, 32) + kDigitBits;
  }

  // Room for two arrays of T. The results' own memory serves as the first where it is as large: less memory is touched for the first time.
  template <class T>
  std::pair<T*, T*> two_arrays(void* result, int64_t result_bytes, Scratch& scratch) const {
    if (result != nullptr && result_bytes == static_cast<int64_t>(sizeof(T)) && reinterpret_cast<uintptr_t>(result) % alignof(T) == 0) {
      return {static_cast<T*>(result), scratch.get<T>(length_)};
    }
    T* both = scratch.get<T>(2 * length_);
    return {both, both + length_};
  }

  template <class Word>
  void sort_words(Scratch& scratch) const {
    constexpr int kPositionBits = static_cast<int>(sizeof(Word) * 4);  // the lower half of a word
    const auto [words, other] = two_arrays<Word>(indices_out_, index_bytes_, scratch);
    for_each_slice([this, words = words](Slice slice) {
      for (int64_t i = slice.begin; i < slice.end; ++i) {
        words[i] = static_cast<Word>(window_(keys_[i])) << kPositionBits | static_cast<Word>(i);
      }
    });
    const Word* sorted = plan_.method == SortMethod::kBitonic  ? bitonic_sort_words(words, length_, parallel_)
                         : plan_.method == SortMethod::kSample ? sample_sort_words(words, other, length_, parallel_)
                                                               : merge_sort_words(words, other, length_, parallel_);
    constexpr Word kPosition = (Word{1} << kPositionBits) - 1;
    write([sorted](int64_t i) { return static_cast<int64_t>(sorted[i] & kPosition); });
  }

  template <class Word>
  void sort_positions(U varying, Scratch& scratch) const {
    const auto [entries, other] = two_arrays<Entry<Word>>(indices_out_, index_bytes_, scratch);
    const LeadingBitsSorter<U, Word> sorter(keys_, window_);
    const Entry<Word>* sorted = sorter.sort(entries, other, length_, varying, parallel_);
    write([sorted](int64_t i) { return static_cast<int64_t>(sorted[i].index); });
  }

  void sort_keys(U varying, Scratch& scratch) const {
    const auto [ordered, other] = two_arrays<U>(keys_out_, sizeof(U), scratch);
    for_each_slice([this, ordered = ordered](Slice slice) {
      for (int64_t i = slice.begin; i < slice.end; ++i) ordered[i] = window_.order.to_ordered(keys_[i]);
    });
    const U* sorted = radix_sort_elements(
        ordered, other, length_, varying, [this](U element) { return window_.of_ordered(element); }, parallel_);
    for_each_slice([this, sorted](Slice slice) {
      for (int64_t i = slice.begin; i < slice.end; ++i) keys_out_[i] = window_.order.from_ordered(sorted[i]);
    });
  }

  // position(i) is where output i comes from. What it reads may be the memory of the indices: index i takes its place last.
  template <class Position>
  void write(const Position& position) const {
    for_each_slice([&](Slice slice) {
      if (keys_out_ != nullptr) {
        for (int64_t i = slice.begin; i < slice.end; ++i) keys_out_[i] = keys_[position(i)];
      }
      if (index_bytes_ == 8) write_indices<int64_t>(slice, position);
      if (index_bytes_ == 4) write_indices<int32_t>(slice, position);
    });
  }

  template <class Index, class Position>
  void write_indices(Slice slice, const Position& position) const {
    for (int64_t i = slice.begin; i < slice.end; ++i) {
      const Index index = static_cast<Index>(position(i));
      std::memcpy(indices_out_ + i * static_cast<int64_t>(sizeof(Index)), &index, sizeof(Index));  // the memory may hold entries still
    }
  }

  const SortPlan& plan_;
  const Parallel& parallel_;
  const CodeWindow<U> window_;
  const int64_t length_;
  const U* const keys_;
  U* const keys_out_;
  char* indices_out_ = nullptr;
  int index_bytes_ = 0;
  int64_t slices_ = 1;
};

template <class U>
void sort_rows_of(const SortProblem& problem, const SortPlan& plan, const Parallel& parallel) {
  if (plan.row_tasks == 1) {
    Scratch scratch;
    for (int64_t row = 0; row < problem.rows; ++row) RowSorter<U>(problem, plan, parallel, row).sort(scratch);
    return;
  }
  const Parallel serial = Parallel::serial();
  parallel.for_each(plan.row_tasks, [&](int64_t task) {
    const Slice rows = slice_of(problem.rows, plan.row_tasks, task);
    Scratch scratch;
    for (int64_t row = rows.begin; row < rows.end; ++row) RowSorter<U>(problem, plan, serial, row).sort(scratch);
  });
}

}  // namespace

void sort_rows_by_plan(const SortProblem& problem, const SortPlan& plan, const Parallel& parallel) {
  if (problem.numel() == 0) return;
  switch (problem.key.bytes) {
    case 1: return sort_rows_of<uint8_t>(problem, plan, parallel);
    case 2: return sort_rows_of<uint16_t>(problem, plan, parallel);
    case 4: return sort_rows_of<uint32_t>(problem, plan, parallel);
    default: return sort_rows_of<uint64_t>(problem, plan, parallel);
  }
}

void sort_rows(const SortProblem& problem, SortMethod request, const Parallel& parallel) {
  sort_rows_by_plan(problem, make_sort_plan(problem.rows, problem.length, parallel.threads(), request), parallel);
}

}  // namespace gpusort::cpu
