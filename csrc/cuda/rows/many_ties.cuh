// Puts right what a sort by words leaves open, in rows where most keys share their leading bits with others: tie_runs.cuh in another form.
//
// Such rows mostly hold equal keys, which are in order. So all threads first compare their neighbours, and only what is out of order is
// looked at further. Loads are issued some at a time: a walk along a run, one key after the other, takes two dependent loads of shared
// memory a step. What is done to runs, and why rounds end, is written there.
#pragma once

#include <cstdint>

#include "lane_sort.cuh"
#include "tie_runs.cuh"

namespace gpusort {

// A thread with so many ties is one of many ties, and a row where a quarter of the threads are.
template <int kItems>
__device__ __forceinline__ bool many_ties(uint32_t ties) {
  return __popc(ties) > kItems / 4;
}

// Bit e: words e and e + 1 of a thread share their leading bits and their keys are out of order. For rows of many ties: some places are
// read at a time, whether they are tied or not.
template <int kItems, class U>
__device__ __forceinline__ uint32_t find_disorder(const SortedRow<U>& row, int first_place, uint32_t ties) {
  constexpr int kTogether = kItems % 4 == 0 ? 4 : kItems % 3 == 0 ? 3 : 2;
  const uint32_t tied = ties | ties << 1;  // items
  uint32_t wrong = 0;
  U before = 0;
#pragma unroll
  for (int first = 0; first < kItems; first += kTogether) {
    U codes[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) codes[k] = row.code_of(row.word_at(tied >> (first + k) & 1 ? first_place + first + k : 0));
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const int pair = first + k - 1;
      if (pair >= 0 && (ties >> (pair >= 0 ? pair : 0) & 1) && codes[k] < before) wrong |= 1u << (pair >= 0 ? pair : 0);
      before = codes[k];
    }
  }
  if ((ties >> (kItems - 1) & 1) && row.code_of(row.word_at(first_place + kItems)) < before) wrong |= 1u << (kItems - 1);
  return wrong;
}

// As find_run_edges(): where runs are long as a rule all places are looked at together.
template <int kItems, class U>
__device__ __forceinline__ RunEdges find_long_edges(const SortedRow<U>& row, int first_place, uint32_t ties) {
  constexpr int kLongest = longest_run(kItems);
  if constexpr (kItems <= kLongest) return find_run_edges<kItems>(row, first_place, ties);
  RunEdges edges;
  if (first_place > 0 && first_place < row.length) {
    const uint32_t word = row.word_at(first_place);
#pragma unroll
    for (int k = 1; k <= kLongest; ++k) edges.before += first_place >= k && row.tied(row.word_at(max(first_place - k, 0)), word) ? 1 : 0;
  }
  if (ties >> (kItems - 1) & 1) {
    const int last = first_place + kItems, end = row.length - 1;
    const uint32_t word = row.word_at(last);
#pragma unroll
    for (int k = 0; k < kLongest; ++k) edges.after += last + k <= end && row.tied(row.word_at(min(last + k, end)), word) ? 1 : 0;
  }
  return edges;
}

// As RunPart, by numbers of a thread's items: the run that the pair e, e + 1 is of, or item e alone.
struct ItemRun {
  int left;
  int right;
  int before;
  int after;  // if not 0, the pair of the last item and the next thread's first is of the run

  template <int kItems>
  static __device__ __forceinline__ ItemRun around(int e, uint32_t ties, RunEdges edges) {
    const uint32_t below = ~ties & ((1u << e) - 1), above = ~ties >> e;
    ItemRun run;
    run.left = 32 - __clz(static_cast<int>(below));
    const int end = above == 0 ? 32 : e + __ffs(static_cast<int>(above)) - 1;  // the last member, which may be the next thread's
    run.right = min(end, kItems - 1);
    run.before = run.left == 0 ? edges.before : 0;
    run.after = end > run.right ? edges.after : 0;
    return run;
  }
  __device__ __forceinline__ int size() const { return before + (right - left + 1) + after; }
  // Pairs of its own items, and of the last with the next thread's first.
  __device__ __forceinline__ uint32_t pairs() const { return ((after > 0 ? 2u : 1u) << right) - (1u << left); }
};

// As mend_runs(). `wrong` is find_disorder()'s: only what is out of order is looked at.
template <int kItems, class U>
__device__ __forceinline__ bool mend_many_runs(const SortedRow<U>& row, int first_place, uint32_t ties, uint32_t wrong, RunEdges edges) {
  bool spread = false;
  uint32_t pairs = wrong | (edges.after > 0 ? 1u << (kItems - 1) : 0);  // a run that goes on may be out of order there
  while (pairs != 0) {
    const ItemRun run = ItemRun::around<kItems>(__ffs(static_cast<int>(pairs)) - 1, ties, edges);
    pairs &= ~run.pairs();
    if (run.size() > longest_run(kItems)) {
      spread |= (wrong & run.pairs()) != 0;
    } else if (run.before == 0) {
      const int left = first_place + run.left, end = first_place + run.right + run.after;
      for (int place = left + 1; place <= end; ++place) {
        const uint32_t word = row.word_at(place);
        const U code = row.code_of(word);
        int hole = place;
        while (hole > left && code < row.code_of(row.word_at(hole - 1))) {
          row.word_at(hole) = row.word_at(hole - 1);
          --hole;
        }
        if (hole != place) row.word_at(hole) = word;
      }
    }
  }
  return spread;
}

// Bit e: item e of the thread is of a long run.
template <int kItems>
__device__ __forceinline__ uint32_t find_long_items(uint32_t ties, RunEdges edges) {
  constexpr int kLongest = longest_run(kItems);
  uint32_t pairs = 0;
  if constexpr (kItems > kLongest) {  // kLongest neighbouring ties, from their first
    pairs = ties;
#pragma unroll
    for (int ones = 1; ones < kLongest; ones *= 2) pairs &= pairs >> ones;
#pragma unroll
    for (int ones = 1; ones < kLongest; ones *= 2) pairs |= pairs << ones;
  }
  uint32_t items = pairs | pairs << 1;
  const ItemRun first = ItemRun::around<kItems>(0, ties, edges), last = ItemRun::around<kItems>(kItems - 1, ties, edges);
  if (first.size() > kLongest) items |= (2u << first.right) - 1;
  if (last.size() > kLongest) items |= ~0u << last.left;
  return kItems < 32 ? items & ((1u << (kItems % 32)) - 1) : items;
}

// As spread_long_runs().
template <int kItems, class U, class Sync>
__device__ __forceinline__ void spread_items(const SortedRow<U>& row, int thread, int threads, uint32_t ties, RunEdges edges,
                                             const LongRuns<U, kItems>& runs, Sync sync) {
  static_assert((longest_run(kItems) & (longest_run(kItems) - 1)) == 0, "ties are counted by doubling");
  constexpr int kTogether = 4;
  const int first_place = thread * kItems, end = min(first_place + kItems, row.length);
  const auto slot_of = [&](int place) { return runs.slot_of(row.first + place); };
  for (int slot = slot_of(0) + thread; slot <= slot_of(row.length); slot += threads) runs.clear(slot);

  const uint32_t long_items = first_place < row.length ? find_long_items<kItems>(ties, edges) : 0;
  int begin_of_first = first_place;  // of the run that holds this thread's first place
  if (edges.before > 0 && (long_items & 1)) {
    const uint32_t word = row.word_at(first_place);
    int low = 0;
    while (low < begin_of_first) {
      const int middle = (low + begin_of_first) / 2;
      if (row.tied(row.word_at(middle), word)) {
        begin_of_first = middle;
      } else {
        low = middle + 1;
      }
    }
  }
  const auto for_each_long_run = [&](auto visit) {
    for (uint32_t items = long_items; items != 0;) {
      const ItemRun run = ItemRun::around<kItems>(__ffs(static_cast<int>(items)) - 1, ties, edges);
      items = run.right < 31 ? items & ~0u << (run.right + 1) : 0;
      visit(first_place + run.left, first_place + run.right, run.left == 0 ? begin_of_first : first_place + run.left, run.after == 0);
    }
  };
  sync();
  for_each_long_run([&](int left, int right, int begin, bool ends) {
    U low = static_cast<U>(~U{0}), high = 0;
#pragma unroll 1
    for (int place = left; place <= right; place += kTogether) {
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const U code = row.code_of(row.word_at(min(place + k, right)));
        low = min(low, code);
        high = max(high, code);
      }
    }
    const int slot = slot_of(begin);
    atomic_extremes(runs.lowest + slot, runs.highest + slot, low, high);
    if (ends) runs.last[slot] = static_cast<uint16_t>(right - begin);
  });
  sync();

  const int share_bits = 32 - 2 * row.index_bits;  // leading values to a place
#pragma unroll
  for (int e = 0; e < kItems; ++e) {
    const int place = first_place + e;
    if (place < end) {
      uint32_t& word = row.word_at(place);
      word = static_cast<uint32_t>(place) << (share_bits + row.index_bits) | row.index_of(word);
    }
  }
  for_each_long_run([&](int left, int right, int begin, bool) {
    const int slot = slot_of(begin);
    const U lowest = runs.lowest[slot];
    const int room = 31 - leading_zeros(static_cast<uint32_t>(runs.last[slot]) + 1) + share_bits;
    const int bits = range_bits(static_cast<U>(runs.highest[slot] - lowest));
    const int shift = bits > room ? bits - room : 0;
#pragma unroll 1
    for (int place = left; place <= right; place += kTogether) {
      uint32_t indices[kTogether];
      U codes[kTogether];
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        indices[k] = row.index_of(row.word_at(min(place + k, right)));
        codes[k] = row.order.code(row.keys[indices[k]]);
      }
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const uint32_t above = static_cast<uint32_t>(static_cast<U>(codes[k] - lowest) >> shift);
        if (place + k <= right)
          row.word_at(place + k) = ((static_cast<uint32_t>(begin) << share_bits) + above) << row.index_bits | indices[k];
      }
    }
  });
}

}  // namespace gpusort
