// Puts right what a sort by words leaves open: different keys that share their leading bits.
//
// In a row of sorted words, keys with equal leading bits are neighbours (a run), in the order of their indices; only within a run can keys
// be out of order. Runs of at most kLongestRun keys are sorted where they lie, each by the one thread that holds its first place (insertion
// sort, stable). A longer run that is out of order makes the whole row go round once more, with words that spread it:
//
//   A key keeps its place's share of all leading values, 2^(leading - index bits) of them. The keys of a long run share the values of all
//   the run's places, and spread over them by their code, from the lowest of the run to the highest, shifted right until it fits.
//
// New words order different runs as before and each run by its code as far as it has values: a run of n keys gains at least
// log2(n) + leading - index bits - 1 bits of the code, 8 or more, so the rounds end; a run of equal keys is in order at once. With 32-bit
// keys and rows to 4096 one round more is always enough; 64-bit keys take one as a rule and seven at the very worst.
#pragma once

#include <cstdint>

#include "../../core/key_order.h"
#include "../../core/word_map.h"
#include "../../plan/row_plan.h"

namespace gpusort {

constexpr int kLongestRun = row_shapes::kLongestRun;

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

// How far the runs at the edges of a thread's places reach beyond them; kLongestRun stands for that or more.
struct RunEdges {
  int before = 0;
  int after = 0;
};

template <class U>
__device__ __forceinline__ RunEdges find_run_edges(const SortedRow<U>& row, int first_place, int items, uint32_t ties) {
  RunEdges edges;
  if (ties & 1) {
    const uint32_t word = row.word_at(first_place);
    while (edges.before < kLongestRun && edges.before < first_place && row.tied(row.word_at(first_place - edges.before - 1), word)) {
      ++edges.before;
    }
  }
  if (ties >> (items - 1) & 1) {
    const int last = first_place + items;  // tied to the thread's last place
    const uint32_t word = row.word_at(last);
    edges.after = 1;
    while (edges.after < kLongestRun && last + edges.after < row.length && row.tied(row.word_at(last + edges.after), word)) ++edges.after;
  }
  return edges;
}

// Sorts the short runs that begin at this thread's places. True when a part of a long run here is out of order. All threads of the row
// have found their edges before the first calls this.
template <class U>
__device__ __forceinline__ bool mend_runs(const SortedRow<U>& row, int first_place, int items, uint32_t ties, RunEdges edges) {
  bool spread = false;
  while (ties != 0) {
    const int e = __ffs(static_cast<int>(ties)) - 1;
    const uint32_t carried = ties + (1u << e);  // the lowest group of ones moves up to the zero above it
    const uint32_t group = ties & ~carried;
    ties &= carried;
    const int left = first_place + e, right = left + __popc(group);  // of the run, within this thread's places and one more
    const int before = e == 0 ? edges.before : 0;
    const int last = right + (right - first_place == items ? edges.after - 1 : 0);
    if (last - left + before >= kLongestRun) {
      U code = row.code_of(row.word_at(left));
      for (int place = left + 1; place <= right && !spread; ++place) {
        const U next = row.code_of(row.word_at(place));
        spread = next < code;
        code = next;
      }
    } else if (before == 0) {
      for (int place = left + 1; place <= last; ++place) {
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

// What is known of the long runs of a row. Of two runs longer than kLongestRun no two begin within as many places.
template <class U>
struct LongRuns {
  U* lowest;  // codes
  U* highest;
  uint32_t* sizes;

  __device__ __forceinline__ LongRuns(void* storage, int places)
      : lowest(static_cast<U*>(storage)),
        highest(lowest + long_run_slots(places)),
        sizes(reinterpret_cast<uint32_t*>(highest + long_run_slots(places))) {}

  __device__ __forceinline__ void clear(int slot) const {
    lowest[slot] = static_cast<U>(~U{0});
    highest[slot] = 0;
    sizes[slot] = 0;
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
__device__ __forceinline__ void spread_long_runs(const SortedRow<U>& row, int thread, int threads, const LongRuns<U>& runs, Sync sync) {
  constexpr uint32_t kLong = 1u << 31;
  const int first_place = thread * kItems, end = min(first_place + kItems, row.length);
  for (int slot = row.first / kLongestRun + thread; slot * kLongestRun < row.first + row.length; slot += threads) runs.clear(slot);
  sync();

  // Each place's run (where it begins, and whether it is long) above its index.
  uint32_t notes[kItems];
  int start = first_place;
  if (first_place < end) {
    const uint32_t word = row.word_at(first_place);
    int low = 0;
    while (low < start) {
      const int middle = (low + start) / 2;
      if (row.tied(row.word_at(middle), word)) {
        start = middle;
      } else {
        low = middle + 1;
      }
    }
  }
  uint32_t previous = 0;
  bool is_long = false;
  U low = 0, high = 0;
  uint32_t size = 0;
  const auto flush = [&] {
    if (size == 0) return;
    const int slot = (row.first + start) / kLongestRun;
    atomic_extremes(runs.lowest + slot, runs.highest + slot, low, high);
    atomicAdd(runs.sizes + slot, size);
    size = 0;
  };
#pragma unroll
  for (int e = 0; e < kItems; ++e) {
    const int place = first_place + e;
    notes[e] = 0;
    if (place < end) {
      const uint32_t word = row.word_at(place);
      if (e == 0 || !row.tied(word, previous)) {
        flush();
        if (e > 0) start = place;
        is_long = start + kLongestRun < row.length && row.tied(row.word_at(start + kLongestRun), word);
      }
      previous = word;
      if (is_long) {
        const U code = row.code_of(word);
        low = size == 0 || code < low ? code : low;
        high = size == 0 || code > high ? code : high;
        ++size;
      }
      notes[e] = (is_long ? kLong : 0) | static_cast<uint32_t>(start) << 15 | row.index_of(word);
    }
  }
  flush();
  sync();

  const int share_bits = 32 - 2 * row.index_bits;  // leading values to a place
#pragma unroll
  for (int e = 0; e < kItems; ++e) {
    const int place = first_place + e;
    if (place < end) {
      const uint32_t index = notes[e] & 0x7fff;
      uint32_t value = static_cast<uint32_t>(place) << share_bits;
      if (notes[e] & kLong) {
        const int begin = notes[e] >> 15 & 0x7fff, slot = (row.first + begin) / kLongestRun;
        const int room = 31 - leading_zeros(runs.sizes[slot]) + share_bits;
        const int bits = range_bits(static_cast<U>(runs.highest[slot] - runs.lowest[slot]));
        const U above = static_cast<U>(row.order.code(row.keys[index]) - runs.lowest[slot]);
        value = (static_cast<uint32_t>(begin) << share_bits) + static_cast<uint32_t>(above >> (bits > room ? bits - room : 0));
      }
      row.word_at(place) = value << row.index_bits | index;
    }
  }
}

}  // namespace gpusort
