// csrc/core/sorting_network.h against the zero-one principle and std::sort.
#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "../../csrc/core/sorting_network.h"
#include "check.h"

namespace {

// Every sequence of zeros and ones, up to 16 items: a network that sorts them sorts everything.
template <int kItems>
bool sorts_all_zero_one_sequences() {
  for (uint32_t bits = 0; bits < (1u << kItems); ++bits) {
    uint32_t words[kItems];
    for (int i = 0; i < kItems; ++i) words[i] = bits >> i & 1;
    gpusort::network_sort<kItems>(words);
    if (!std::is_sorted(words, words + kItems)) return false;
  }
  return true;
}

// Longer networks: every zero-one sequence that is a rotation of zeros then ones, and many random ones, and random words.
template <int kItems, class Word>
bool sorts_samples() {
  std::mt19937_64 random(kItems);
  for (int trial = 0; trial < 20000; ++trial) {
    Word words[kItems], expected[kItems];
    const int start = trial % kItems, ones = trial / kItems % (kItems + 1);
    for (int i = 0; i < kItems; ++i) {
      words[i] = trial < kItems * (kItems + 1) ? static_cast<Word>((i + start) % kItems < ones)
                 : trial % 2                   ? static_cast<Word>(random() & 1)
                                               : static_cast<Word>(random());
      expected[i] = words[i];
    }
    std::sort(expected, expected + kItems);
    gpusort::network_sort<kItems>(words);
    if (!std::equal(words, words + kItems, expected)) return false;
  }
  return true;
}

// Bitonic runs: rising then falling, rotated.
template <int kItems>
bool sorts_bitonic_runs() {
  std::mt19937 random(kItems);
  for (int peak = 0; peak <= kItems; ++peak) {
    for (int rotation = 0; rotation < kItems; ++rotation) {
      uint32_t values[kItems], words[kItems], expected[kItems];
      for (uint32_t& value : values) value = random() % (kItems + 1);
      std::sort(values, values + peak);
      std::sort(values + peak, values + kItems, [](uint32_t a, uint32_t b) { return a > b; });
      for (int i = 0; i < kItems; ++i) expected[i] = words[i] = values[(i + rotation) % kItems];
      std::sort(expected, expected + kItems);
      gpusort::bitonic_sort_run<kItems>(words);
      if (!std::equal(words, words + kItems, expected)) return false;
    }
  }
  return true;
}

template <int... kSizes>
void check_zero_one(std::integer_sequence<int, kSizes...>) {
  (
      [] {
        CHECK(sorts_all_zero_one_sequences<kSizes + 1>());
        CHECK((sorts_samples<kSizes + 1, uint64_t>()));
      }(),
      ...);
}

template <int... kSizes>
void check_samples(std::integer_sequence<int, kSizes...>) {
  (
      [] {
        CHECK((sorts_samples<kSizes + 1, uint32_t>()));
        CHECK(sorts_bitonic_runs<kSizes + 1>());
      }(),
      ...);
}

}  // namespace

int main() {
  check_zero_one(std::make_integer_sequence<int, 16>{});
  check_samples(std::make_integer_sequence<int, 32>{});
  CHECK(gpusort::SortingNetworkOf<1>::kNetwork.size == 0);
  CHECK(gpusort::SortingNetworkOf<4>::kNetwork.size == 5);
  CHECK(gpusort::SortingNetworkOf<8>::kNetwork.size == 19);
  CHECK(gpusort::SortingNetworkOf<16>::kNetwork.size == 63);
  CHECK(gpusort::SortingNetworkOf<32>::kNetwork.size == 191);
  return report();
}
