// Sorts a block's words by distribution: every word goes to the bin that its code says, then to its rank within the bin.
//
//   count    bin = (code - lowest) * bins / range, by one multiplication; an atomic addition counts the bin and numbers its words
//   scan     exclusive sums of the counts are where the bins begin
//   scatter  each word goes to its bin's begin + its number: in order up to the order within bins
//   rank     each word counts the words of its bin that are below it
// No two words are equal, so the ranks are exact whatever order the atomics came in. The cost does not depend on the order of the words but
// on how evenly they spread: where a bin takes more than kMostInGridBin of them, nothing is done. A second try (sort_with_equals) then cuts
// the bins that hold many words of one code by their indices. Floats of many magnitudes are cut by the numbers themselves: those around
// zero spread evenly as numbers, while most of the range of their codes belongs to magnitudes that none of them has. The same method as the
// buckets of many long rows (bucket_sort/bucket_rows.cuh; sources there), for (code, index) words, two of which are compared by one
// instruction.
#pragma once

#include <cstdint>

#include "../../core/key_order.h"
#include "../bucket_sort/bucket_maps.cuh"
#include "../primitives/block_scan.cuh"
#include "grid_words.cuh"

namespace gpusort {

constexpr uint32_t kMostInGridBin = 64;    // ranking is quadratic in it
constexpr uint32_t kEvenCodes = 8u << 23;  // a range of 8 binary magnitudes, in which codes spread about as evenly as numbers

// The bin of the code of a key of 32 bits; rises with the code.
struct GridBinMap {
  KeyOrder<uint32_t> order;
  uint32_t bins;
  BinMap<uint32_t> bin_of;
  bool by_number;
  float first = 0, scale = 0;

  // `low` < `high`: the extreme codes.
  __device__ __forceinline__ GridBinMap(const KeyOrder<uint32_t>& key_order, uint32_t low, uint32_t high, uint32_t all)
      : order(key_order), bins(all), bin_of(low, high, all), by_number(key_order.zero != 0 && high - low > kEvenCodes) {
    if (!by_number) return;
    constexpr float kLimit = 1e38f;
    first = rising_number(low);
    const float range = rising_number(high) - first;
    scale = static_cast<float>(bins) / range * (1.0f - 0x1p-20f);
    by_number = range > 0 && range < kLimit && scale < kLimit;
  }

  // The number, or its negative, so that it rises with the code.
  __device__ __forceinline__ float rising_number(uint32_t code) const {
    const uint32_t ordered = code ^ order.complement;
    const float number = __uint_as_float(order.from_ordered(ordered - (ordered < order.zero ? 1 : 0)));
    return order.complement ? -number : number;
  }

  __device__ __forceinline__ uint32_t bin(uint32_t code) const {
    if (by_number) return min(static_cast<uint32_t>((rising_number(code) - first) * scale), bins - 1);
    return bin_of(code);
  }
};

struct GridSpreadNotes {
  uint32_t lowest[2][32];  // of each warp, of codes and of indices
  uint32_t highest[2][32];
  uint32_t totals[32];
};

// kMost: words to a thread. kBinItems: bins to a thread, a multiple of 4.
template <int kThreads, int kMost, int kBinItems>
struct GridSpread {
  using Word = uint64_t;
  using Traits = WordTraits<Word>;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kBins = kThreads * kBinItems;
  static constexpr int kPlaceItems = (kMost + 3) / 4 * 4;
  static constexpr int kTogether = 2;  // words that are ranked at a time
  static constexpr int kPads = 2;      // words that are read beyond the last one
  static constexpr uint32_t kNoLimit = ~0u;

  const KeyOrder<uint32_t>& order;
  GridSpreadNotes& notes;
  uint64_t* slots;
  uint32_t* bins;    // kBins and the sum
  uint32_t* places;  // kThreads * kPlaceItems and the sum: a bin to each place of the result, for the second try

  __device__ __forceinline__ GridSpread(const KeyOrder<uint32_t>& key_order, GridSpreadNotes& shared, char* storage)
      : order(key_order),
        notes(shared),
        slots(reinterpret_cast<uint64_t*>(storage)),
        bins(reinterpret_cast<uint32_t*>(storage + (kThreads * kMost + kPads) * sizeof(Word))),
        places(bins + kBins + 4) {}

  // Calls take(rank, word) for each of `count` words: words[e] is that of place e * kThreads + thread, and from `count` places on any of
  // them. False, for all threads and without a call, when they do not spread. Called by all threads, which have met since the storage was
  // used.
  template <int kItems, class Take>
  __device__ __forceinline__ bool sort(const Word (&words)[kItems], int count, Take take) const {
    const int thread = static_cast<int>(threadIdx.x);
    uint32_t low = ~0u, high = 0;
    clear<kBinItems>(bins);
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      low = min(low, Traits::code(words[e]));
      high = max(high, Traits::code(words[e]));
    }
    note_range(0, low, high);
    __syncthreads();
    read_range(0, low, high);
    if (low == high) return false;
    const GridBinMap map(order, low, high, kBins);
    uint32_t bin[kItems], number[kItems];
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      if (e * kThreads + thread < count) {
        bin[e] = map.bin(Traits::code(words[e]));
        number[e] = atomicAdd(&bins[bin[e]], 1u);
      }
    }
    if (!scan<kBinItems>(bins, kMostInGridBin)) return false;
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      if (e * kThreads + thread < count) slots[bins[bin[e]] + number[e]] = words[e];
    }
    rank(count, take, [&](const Word& word) {
      const uint32_t of_word = map.bin(Traits::code(word));
      return make_uint2(bins[of_word], bins[of_word + 1]);
    });
    return true;
  }

  // The same where sort() fails. A bin with many words, all of one code, is cut into as many as it has words, by their indices. A word's
  // place is its bin's begin, plus its index's part of the bin's size if that is large: rising with the words, and below `count`. So the
  // second counting is over places.
  template <int kItems, class Take>
  __device__ __forceinline__ bool sort_with_equals(const Word (&words)[kItems], int count, Take take) const {
    const int thread = static_cast<int>(threadIdx.x);
    uint32_t low = ~0u, high = 0, first = ~0u, last = 0;
    clear<kBinItems>(bins);
    clear<kPlaceItems>(places);
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      low = min(low, Traits::code(words[e]));
      high = max(high, Traits::code(words[e]));
      first = min(first, Traits::index(words[e]));
      last = max(last, Traits::index(words[e]));
    }
    note_range(0, low, high);
    note_range(1, first, last);
    __syncthreads();
    read_range(0, low, high);
    read_range(1, first, last);
    constexpr uint32_t kParts = 1 << 16;
    const GridBinMap map(order, low, high, kBins);
    const BinMap<uint32_t> part(first, last, kParts);
    uint32_t at[kItems], number[kItems];  // bins, then places
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      at[e] = low == high ? 0 : map.bin(Traits::code(words[e]));
      number[e] = count_word(bins, at[e], e * kThreads + thread < count);
    }
    scan<kBinItems>(bins, kNoLimit);
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      if (e * kThreads + thread < count) slots[bins[at[e]] + number[e]] = words[e];
    }
    __syncthreads();
    const auto place_of = [&](const Word& word, uint32_t bin) {
      const uint32_t begin = bins[bin], size = bins[bin + 1] - begin;
      return begin + (size > kMostInGridBin ? part(Traits::index(word)) * size / kParts : 0);
    };
    bool mixed = false;
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      const uint32_t begin = bins[at[e]], size = bins[at[e] + 1] - begin;
      mixed = mixed || (size > kMostInGridBin && Traits::code(slots[begin]) != Traits::code(words[e]));
      at[e] = place_of(words[e], at[e]);
    }
    if (__syncthreads_or(mixed)) return false;
#pragma unroll
    for (int e = 0; e < kItems; ++e) number[e] = count_word(places, at[e], e * kThreads + thread < count);
    if (!scan<kPlaceItems>(places, kMostInGridBin)) return false;
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      if (e * kThreads + thread < count) slots[places[at[e]] + number[e]] = words[e];
    }
    rank(count, take, [&](const Word& word) {
      const uint32_t place = place_of(word, low == high ? 0 : map.bin(Traits::code(word)));
      return make_uint2(places[place], places[place + 1]);
    });
    return true;
  }

  // Numbers a word among those of its counter. Often all words of a warp have the same.
  static __device__ __forceinline__ uint32_t count_word(uint32_t* counters, uint32_t at, bool real) {
    const uint32_t of_first = __shfl_sync(kWholeWarp, at, 0);
    uint32_t number = 0;
    if (__all_sync(kWholeWarp, real && at == of_first)) {
      if (threadIdx.x % 32 == 0) number = atomicAdd(&counters[at], 32u);
      return __shfl_sync(kWholeWarp, number, 0) + threadIdx.x % 32;
    }
    if (real) number = atomicAdd(&counters[at], 1u);
    return number;
  }

 private:
  template <int kCount>
  static __device__ __forceinline__ void clear(uint32_t* counters) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      *reinterpret_cast<uint4*>(&counters[i * kThreads + static_cast<int>(threadIdx.x) * 4]) = make_uint4(0, 0, 0, 0);
    }
  }

  __device__ __forceinline__ void note_range(int which, uint32_t low, uint32_t high) const {
    low = warp_min(low);
    high = warp_max(high);
    if (threadIdx.x % 32 == 0) {
      notes.lowest[which][threadIdx.x / 32] = low;
      notes.highest[which][threadIdx.x / 32] = high;
    }
  }
  __device__ __forceinline__ void read_range(int which, uint32_t& low, uint32_t& high) const {
    low = warp_min(notes.lowest[which][threadIdx.x % kWarps]);
    high = warp_max(notes.highest[which][threadIdx.x % kWarps]);
  }

  // Counts become begins. False, for all threads, when one is above `limit`.
  template <int kCount>
  __device__ __forceinline__ bool scan(uint32_t* counters, uint32_t limit) const {
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    __syncthreads();
    uint4* own = reinterpret_cast<uint4*>(&counters[thread * kCount]);
    uint32_t sum = 0, most = 0;
#pragma unroll
    for (int i = 0; i < kCount / 4; ++i) {
      const uint4 counts = own[i];
      sum += counts.x + counts.y + counts.z + counts.w;
      most = max(max(most, max(counts.x, counts.y)), max(counts.z, counts.w));
    }
    const uint32_t through = warp_inclusive_scan(sum);
    if (lane == 31) notes.totals[warp] = through;
    if (__syncthreads_or(most > limit)) return false;
    uint32_t start = through - sum + __reduce_add_sync(kWholeWarp, lane < warp ? notes.totals[lane] : 0u);
#pragma unroll
    for (int i = 0; i < kCount / 4; ++i) {
      const uint4 counts = own[i];
      const uint32_t second = start + counts.x, third = second + counts.y, fourth = third + counts.z;
      own[i] = make_uint4(start, second, third, fourth);
      start = fourth + counts.w;
    }
    if (thread == kThreads - 1) counters[kThreads * kCount] = start;
    __syncthreads();
    return true;
  }

  // bounds(word): begin and end of its bin. Words of earlier bins are below, those of later ones above, so reading past a bin's end counts
  // nothing.
  template <class Take, class Bounds>
  __device__ __forceinline__ void rank(int count, Take take, Bounds bounds) const {
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < kPads) slots[count + thread] = last_word<Word>();
    __syncthreads();
#pragma unroll 1
    for (int first = thread; first < count; first += kTogether * kThreads) {
      Word mine[kTogether];
      uint32_t other[kTogether], end[kTogether], rank[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) mine[i] = slots[min(first + i * kThreads, count - 1)];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const uint2 among = bounds(mine[i]);
        rank[i] = other[i] = among.x;
        end[i] = among.y;
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
#pragma unroll 1
        for (; other[i] < end[i]; other[i] += kPads) {
          const Word one = slots[other[i]], two = slots[other[i] + 1];
          rank[i] += (one < mine[i] ? 1 : 0) + (two < mine[i] ? 1 : 0);
        }
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        if (first + i * kThreads < count) take(static_cast<int>(rank[i]), mine[i]);
      }
    }
  }
};

}  // namespace gpusort
