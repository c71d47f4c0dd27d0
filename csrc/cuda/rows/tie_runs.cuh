// Puts right what a sort by words leaves open: different keys that share their leading bits.
//
// In a row of sorted words, keys with equal leading bits are neighbours (a run), in the order of their indices; only within a run can keys
// be out of order. Runs of at most longest_run() keys are sorted where they lie, each by the one thread that holds its first place
// (insertion sort, stable). A longer run that is out of order makes the whole row go round once more, with words that spread it:
//
//   A key keeps its place's share of all leading values, 2^(leading - index bits) of them. The keys of a long run share the values of all
//   the run's places, and spread over them by their code, from the lowest of the run to the highest, shifted right until it fits.
//
// New words order different runs as before and each run by its code as far as it has values: a run of n keys gains at least
// log2(n) + leading - index bits - 1 bits of the code, 8 or more, so the rounds end; a run of equal keys is in order at once. One round
// more is enough as a rule; 64-bit keys take seven at the very worst.
#pragma once

#include <cstdint>

#include "../../core/key_order.h"
#include "../../core/word_map.h"
#include "../../plan/row_plan.h"

namespace gpusort {

// A row between its sort and its output.
template <class U>
struct SortedRow {
  uint32_t* words;  // padded_position(first + place)
  int first;
  const U* keys;  // by index
  int length;
  int index_bits;
  KeyOrder<U> order;

  __device__ __forceinline__ uint32_t& word_at(int place) const { return words[padded_position(first + place)]; }
  __device__ __forceinline__ bool tied(uint32_t a, uint32_t b) const { return (a ^ b) >> index_bits == 0; }
  __device__ __forceinline__ uint32_t index_of(uint32_t word) const { return word & ((1u << index_bits) - 1); }
  __device__ __forceinline__ U code_of(uint32_t word) const { return order.code(keys[index_of(word)]); }
};

// Bit e: words e and e + 1 of a thread share their leading bits; `next` follows the last one. `pairs` of them count.
template <int kItems>
__device__ __forceinline__ uint32_t find_ties(const uint32_t (&row_words)[kItems], uint32_t next, int pairs, int index_bits) {
  const uint32_t beyond = 1u << index_bits;
  uint32_t ties = 0;
#pragma unroll
  for (int e = 0; e < kItems; ++e) {
    const uint32_t follower = e + 1 < kItems ? row_words[e + 1 < kItems ? e + 1 : e] : next;
    if ((row_words[e] ^ follower) < beyond) ties |= 1u << e;
  }
  if (pairs >= kItems) return ties;
  return pairs > 0 ? ties & ((1u << pairs) - 1) : 0;
}

// How far the runs at the edges of a thread's places reach beyond them; the longest run stands for that or more.
struct RunEdges {
  int before = 0;
  int after = 0;
};

template <int kItems, class U>
__device__ __forceinline__ RunEdges find_run_edges(const SortedRow<U>& row, int first_place, uint32_t ties) {
  constexpr int kLongest = longest_run(kItems);
  RunEdges edges;
  if (first_place > 0 && first_place < row.length) {
    const uint32_t word = row.word_at(first_place);
    while (edges.before < kLongest && edges.before < first_place && row.tied(row.word_at(first_place - edges.before - 1), word)) {
      ++edges.before;
    }
  }
  if (ties >> (kItems - 1) & 1) {
    const int last = first_place + kItems;  // tied to the thread's last place
    const uint32_t word = row.word_at(last);
    edges.after = 1;
    while (edges.after < kLongest && last + edges.after < row.length && row.tied(row.word_at(last + edges.after), word)) ++edges.after;
  }
  return edges;
}

// A thread's part of a run: places [left, right] are its own, `before` and `after` more lie on either side (the longest run: or more).
struct RunPart {
  int left;
  int right;
  int before;
  int after;

  __device__ __forceinline__ int size() const { return before + (right - left + 1) + after; }
};

// Calls visit(part) for every run of two keys and more at this thread's places, in order.
template <int kItems, class Visit>
__device__ __forceinline__ void for_each_run(int first_place, uint32_t ties, RunEdges edges, Visit visit) {
  bool ends_here = edges.before > 0 && (ties & 1) == 0;  // a run, at the thread's first place
  while (ends_here || ties != 0) {
    RunPart run{first_place, first_place, edges.before, 0};
    if (!ends_here) {
      const int e = __ffs(static_cast<int>(ties)) - 1;
      const uint32_t carried = ties + (1u << e);  // the lowest group of ones moves up to the zero above it
      const int members = __popc(ties & ~carried) + 1;
      ties &= carried;
      const bool goes_on = e + members > kItems;  // the last member is the next thread's
      run.left = first_place + e;
      run.right = run.left + members - 1 - (goes_on ? 1 : 0);
      if (e > 0) run.before = 0;
      if (goes_on) run.after = edges.after;
    }
    ends_here = false;
    visit(run);
  }
}

// Sorts the short runs that begin at this thread's places. True when a part of a long run here is out of order. All threads of the row
// have found their edges before the first calls this.
template <int kItems, class U>
__device__ __forceinline__ bool mend_runs(const SortedRow<U>& row, int first_place, uint32_t ties, RunEdges edges) {
  bool spread = false;
  for_each_run<kItems>(first_place, ties, edges, [&](const RunPart& run) {
    if (run.size() > longest_run(kItems)) {
      U code = row.code_of(row.word_at(run.left));
      const int end = run.right + (run.after > 0 ? 1 : 0);
      for (int place = run.left + 1; place <= end && !spread; ++place) {
        const U next = row.code_of(row.word_at(place));
        spread = next < code;
        code = next;
      }
    } else if (run.before == 0) {
      const int end = run.right + run.after;
      for (int place = run.left + 1; place <= end; ++place) {
        const uint32_t word = row.word_at(place);
        const U code = row.code_of(word);
        int hole = place;
        while (hole > run.left && code < row.code_of(row.word_at(hole - 1))) {
          row.word_at(hole) = row.word_at(hole - 1);
          --hole;
        }
        if (hole != place) row.word_at(hole) = word;
      }
    }
  });
  return spread;
}

// What is known of the long runs of a row. Each takes more than longest_run() places, so no two begin in the same slot.
template <class U, int kItems>
struct LongRuns {
  U* lowest;  // codes
  U* highest;
  uint16_t* last;  // place of the run, counted from its first

  __device__ __forceinline__ LongRuns(void* storage, int places)
      : lowest(static_cast<U*>(storage)),
        highest(lowest + long_run_slots(places, kItems)),
        last(reinterpret_cast<uint16_t*>(highest + long_run_slots(places, kItems))) {}

  static __device__ __forceinline__ int slot_of(int place) { return place / (longest_run(kItems) + 1); }

  __device__ __forceinline__ void clear(int slot) const {
    lowest[slot] = static_cast<U>(~U{0});
    highest[slot] = 0;
  }
};

template <class U>
__device__ __forceinline__ void atomic_extremes(U* lowest, U* highest, U low, U high) {
  if constexpr (sizeof(U) == 8) {
    atomicMin(reinterpret_cast<unsigned long long*>(lowest), static_cast<unsigned long long>(low));
    atomicMax(reinterpret_cast<unsigned long long*>(highest), static_cast<unsigned long long>(high));
  } else {
    atomicMin(lowest, low);
    atomicMax(highest, high);
  }
}

// Gives every key of the row the word of the next round. Called by all `threads` of the row, of which `thread` has the places from
// thread * kItems on; sync() is their barrier, passed before the call.
template <int kItems, class U, class Sync>
__device__ __forceinline__ void spread_long_runs(const SortedRow<U>& row, int thread, int threads, uint32_t ties, RunEdges edges,
                                                 const LongRuns<U, kItems>& runs, Sync sync) {
  const int first_place = thread * kItems, end = min(first_place + kItems, row.length);
  const auto slot_of = [&](int place) { return runs.slot_of(row.first + place); };
  for (int slot = slot_of(0) + thread; slot <= slot_of(row.length); slot += threads) runs.clear(slot);

  int begin_of_first = first_place;  // of the run that holds this thread's first place
  if (edges.before > 0) {
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
    for_each_run<kItems>(first_place, ties, edges, [&](const RunPart& run) {
      if (run.size() > longest_run(kItems)) visit(run, run.left == first_place ? begin_of_first : run.left);
    });
  };
  sync();
  for_each_long_run([&](const RunPart& run, int begin) {
    U low = row.code_of(row.word_at(run.left)), high = low;
    for (int place = run.left + 1; place <= run.right; ++place) {
      const U code = row.code_of(row.word_at(place));
      low = min(low, code);
      high = max(high, code);
    }
    const int slot = slot_of(begin);
    atomic_extremes(runs.lowest + slot, runs.highest + slot, low, high);
    if (run.after == 0) runs.last[slot] = static_cast<uint16_t>(run.right - begin);
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
  for_each_long_run([&](const RunPart& run, int begin) {
    const int slot = slot_of(begin);
    const U lowest = runs.lowest[slot];
    const int room = 31 - leading_zeros(static_cast<uint32_t>(runs.last[slot]) + 1) + share_bits;
    const int bits = range_bits(static_cast<U>(runs.highest[slot] - lowest));
    const int shift = bits > room ? bits - room : 0;
    for (int place = run.left; place <= run.right; ++place) {
      uint32_t& word = row.word_at(place);
      const uint32_t index = row.index_of(word);
      const U above = static_cast<U>(row.order.code(row.keys[index]) - lowest);
      word = ((static_cast<uint32_t>(begin) << share_bits) + static_cast<uint32_t>(above >> shift)) << row.index_bits | index;
    }
  });
}

}  // namespace gpusort
