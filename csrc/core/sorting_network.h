// Sorting networks as compile-time tables: Batcher's merge exchange for any number of items, and the bitonic merger.
//
// A network is a fixed list of compare-exchanges, so it has no branch that depends on the data and unrolls into straight-line code on
// registers. It sorts every input if it sorts every input of zeros and ones (Knuth, The Art of Computer Programming 3, section 5.3.4,
// theorem Z); the test uses that. Sources: Batcher, "Sorting networks and their applications" (1968); Knuth, algorithm 5.2.2M, which takes
// any size. Cost: about n (log2 n)^2 / 4 compare-exchanges (5 for 4 items, 19 for 8, 63 for 16, 191 for 32). A network is not stable; words
// that hold the position in their low bits are all different, which makes it so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "host_device.h"

namespace gpusort {

// Comparators of Batcher's merge exchange in order of execution: the smaller of (low[i], high[i]) goes to low[i].
template <int kItems>
struct SortingNetwork {
  static constexpr int kMaxComparators = kItems * 6;  // 191 are needed for 32 items
  static_assert(kItems >= 1 && kItems <= 32, "tables are meant for items in registers");

  int size = 0;
  short low[kMaxComparators] = {};
  short high[kMaxComparators] = {};

  constexpr SortingNetwork() {
    int top = 1;
    while (top * 2 < kItems) top *= 2;
    for (int stride = kItems > 1 ? top : 0; stride > 0; stride /= 2) {
      int span = top, phase = 0, distance = stride;
      while (true) {
        for (int i = 0; i + distance < kItems; ++i) {
          if ((i & stride) == phase) {
            low[size] = static_cast<short>(i);
            high[size] = static_cast<short>(i + distance);
            ++size;
          }
        }
        if (span == stride) break;
        distance = span - stride;
        span /= 2;
        phase = stride;
      }
    }
  }
};

template <int kItems>
struct SortingNetworkOf {
  static constexpr SortingNetwork<kItems> kNetwork{};
};

template <class Word>
GPUSORT_HD void compare_exchange(Word& low, Word& high) {
  const bool swap = high < low;
  const Word smaller = swap ? high : low;
  high = swap ? low : high;
  low = smaller;
}

GPUSORT_HD void compare_exchange(uint32_t& low, uint32_t& high) {
  const uint32_t smaller = high < low ? high : low;
  high = high < low ? low : high;
  low = smaller;
}

template <int kItems, int kFirst, class Word, size_t... kIndex>
GPUSORT_HD void apply_network(Word* words, std::index_sequence<kIndex...>) {
  (compare_exchange(words[kFirst + SortingNetworkOf<kItems>::kNetwork.low[kIndex]],
                    words[kFirst + SortingNetworkOf<kItems>::kNetwork.high[kIndex]]),
   ...);
}

// Sorts words[kFirst, kFirst + kItems).
template <int kItems, int kFirst = 0, class Word>
GPUSORT_HD void network_sort(Word* words) {
  if constexpr (kItems > 1) {
    apply_network<kItems, kFirst>(words, std::make_index_sequence<SortingNetworkOf<kItems>::kNetwork.size>{});
  }
}

// Sorts a bitonic run: half cleaners while the size is even, a whole network for the odd rest.
template <int kItems, int kFirst = 0, class Word>
GPUSORT_HD void bitonic_sort_run(Word* words) {
  if constexpr (kItems % 2 == 1) {
    network_sort<kItems, kFirst>(words);
  } else {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int i = 0; i < kItems / 2; ++i) compare_exchange(words[kFirst + i], words[kFirst + i + kItems / 2]);
    bitonic_sort_run<kItems / 2, kFirst>(words);
    bitonic_sort_run<kItems / 2, kFirst + kItems / 2>(words);
  }
}

}  // namespace gpusort
