// co_rank and repaired_split against their definitions.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "../../csrc/core/co_rank.h"
#include "check.h"

using gpusort::co_rank;
using gpusort::MergeRange;
using gpusort::repaired_split;

// Fails instead of reading outside.
struct Watched {
  const std::vector<int>* keys;
  bool* outside;
  int operator[](int64_t index) const {
    if (index < 0 || index >= static_cast<int64_t>(keys->size())) {
      *outside = true;
      return 0;
    }
    return (*keys)[index];
  }
};

static std::vector<int> random_keys(std::mt19937& random, int length, int distinct, bool sorted) {
  std::vector<int> keys(length);
  for (int& key : keys) key = static_cast<int>(random() % distinct);
  if (sorted) std::sort(keys.begin(), keys.end());
  return keys;
}

// The stable merge by the standard library: how many of the first k come from a, for every k.
static std::vector<int64_t> expected_counts(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<std::pair<int, int>> tagged_a, tagged_b, merged(a.size() + b.size());
  for (int key : a) tagged_a.emplace_back(key, 0);
  for (int key : b) tagged_b.emplace_back(key, 1);
  std::merge(tagged_a.begin(), tagged_a.end(), tagged_b.begin(), tagged_b.end(), merged.begin(),
             [](auto x, auto y) { return x.first < y.first; });
  std::vector<int64_t> counts{0};
  for (auto element : merged) counts.push_back(counts.back() + (element.second == 0));
  return counts;
}

static void check_sorted(const std::vector<int>& a, const std::vector<int>& b) {
  bool outside = false;
  const Watched watched_a{&a, &outside}, watched_b{&b, &outside};
  const int64_t m = static_cast<int64_t>(a.size()), n = static_cast<int64_t>(b.size());
  const auto less = [](int x, int y) { return x < y; };
  const std::vector<int64_t> expected = expected_counts(a, b);
  for (int64_t rank = 0; rank <= m + n; ++rank) {
    CHECK(co_rank<int64_t>(rank, watched_a, m, watched_b, n, less) == expected[rank]);
    CHECK(co_rank<int32_t>(static_cast<int32_t>(rank), watched_a, static_cast<int32_t>(m), watched_b, static_cast<int32_t>(n), less) ==
          expected[rank]);
  }
  CHECK(!outside);
}

static void check_cuts(const std::vector<int>& a, const std::vector<int>& b, int64_t piece, bool sorted) {
  bool outside = false;
  const Watched watched_a{&a, &outside}, watched_b{&b, &outside};
  const int64_t m = static_cast<int64_t>(a.size()), n = static_cast<int64_t>(b.size()), total = m + n;
  const int64_t pieces = (total + piece - 1) / piece;
  const auto rank_of = [&](int64_t cut) { return std::min(cut * piece, total); };
  const auto raw = [&](int64_t cut) {
    return co_rank<int64_t>(rank_of(cut), watched_a, m, watched_b, n, [](int x, int y) { return x < y; });
  };
  int64_t before = 0;
  for (int64_t cut = 0; cut <= pieces; ++cut) {
    const int64_t count = repaired_split<int64_t>(cut, pieces, m, rank_of, raw);
    if (cut == 0) CHECK(count == 0);
    if (cut == pieces) CHECK(count == m);
    if (cut > 0) {
      CHECK(count >= before);
      CHECK(count - before <= rank_of(cut) - rank_of(cut - 1));
    }
    if (sorted) CHECK(count == raw(cut));
    if (cut > 0) {
      const MergeRange<int64_t> range = gpusort::repaired_piece<int64_t>(cut - 1, pieces, m, rank_of, raw).range();
      CHECK(range.a_begin == before && range.a_end == count);
      CHECK(range.b_begin == rank_of(cut - 1) - before && range.b_end == rank_of(cut) - count);
    }
    before = count;
  }
  CHECK(!outside);
}

int main() {
  std::mt19937 random(1);
  for (int m : {0, 1, 2, 3, 7, 8, 33, 100}) {
    for (int n : {0, 1, 2, 5, 8, 64, 101}) {
      for (int distinct : {1, 2, 5, 1000}) {
        check_sorted(random_keys(random, m, distinct, true), random_keys(random, n, distinct, true));
        for (int piece : {1, 3, 16, 64}) {
          for (bool sorted : {true, false})
            check_cuts(random_keys(random, m, distinct, sorted), random_keys(random, n, distinct, sorted), piece, sorted);
        }
      }
    }
  }
  std::vector<int> low(50), high(70);
  for (int i = 0; i < 50; ++i) low[i] = i;
  for (int i = 0; i < 70; ++i) high[i] = 1000 + i;
  check_sorted(low, high);
  check_sorted(high, low);
  check_cuts(high, low, 8, true);
  std::reverse(high.begin(), high.end());
  check_cuts(high, high, 8, false);

  const MergeRange<int> range{2, 5, 1, 9};
  CHECK(range.a_length() == 3 && range.b_length() == 8 && range.length() == 11);
  return report();
}
