// The sequential merge against std::merge, whole and cut into pieces.
#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "../../csrc/core/key_order.h"
#include "../../csrc/core/serial_merge.h"
#include "check.h"

using gpusort::co_rank;
using gpusort::serial_merge;
using gpusort::serial_merge_unrolled;

using Tagged = std::pair<uint32_t, int64_t>;  // key bits, position in cat(a, b)

static std::vector<uint32_t> random_keys(std::mt19937& random, int length, uint32_t distinct) {
  std::vector<uint32_t> keys(length);
  for (uint32_t& key : keys) key = random() % distinct;
  std::sort(keys.begin(), keys.end());
  return keys;
}

static std::vector<Tagged> reference(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  std::vector<Tagged> tagged_a, tagged_b, merged(a.size() + b.size());
  for (size_t i = 0; i < a.size(); ++i) tagged_a.emplace_back(a[i], i);
  for (size_t j = 0; j < b.size(); ++j) tagged_b.emplace_back(b[j], a.size() + j);
  std::merge(tagged_a.begin(), tagged_a.end(), tagged_b.begin(), tagged_b.end(), merged.begin(),
             [](const Tagged& x, const Tagged& y) { return x.first < y.first; });
  return merged;
}

struct Source {
  const uint32_t *a, *b;
  uint32_t read(bool from_b, int position) const { return from_b ? b[position] : a[position]; }
};

static const auto kLess = [](uint32_t x, uint32_t y) { return x < y; };

static void check_whole(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  const int64_t m = static_cast<int64_t>(a.size()), n = static_cast<int64_t>(b.size());
  std::vector<Tagged> merged(m + n);
  int64_t i = 0, j = 0;
  serial_merge<int64_t>(a.data(), i, m, b.data(), j, n, m + n, kLess, [&](int64_t step, bool from_b, int64_t position, uint32_t key) {
    merged[step] = Tagged(key, from_b ? m + position : position);
  });
  CHECK(merged == reference(a, b));
  CHECK(i == m && j == n);
}

template <int kCount, bool kGuarded>
static void check_pieces(std::vector<uint32_t> a, std::vector<uint32_t> b) {
  const int m = static_cast<int>(a.size()), n = static_cast<int>(b.size());
  const std::vector<Tagged> expected = reference(a, b);
  std::vector<Tagged> merged(m + n + kCount);
  if (!kGuarded) {  // what may be read behind the ends
    a.push_back(~0u);
    b.push_back(~0u);
  }
  for (int rank = 0; rank < m + n; rank += kCount) {
    if (!kGuarded && rank + kCount > m + n) break;
    int i = co_rank<int>(rank, a.data(), m, b.data(), n, kLess), j = rank - i;
    serial_merge_unrolled<kCount, kGuarded>(
        Source{a.data(), b.data()}, i, m, j, n, kLess,
        [&](int step, bool from_b, int position, uint32_t key) { merged[rank + step] = Tagged(key, from_b ? m + position : position); });
    const int end = std::min(rank + kCount, m + n);
    if (rank + kCount <= m + n) CHECK(i == co_rank<int>(end, a.data(), m, b.data(), n, kLess) && i + j == end);
    CHECK(std::equal(merged.begin() + rank, merged.begin() + end, expected.begin() + rank));
  }
}

int main() {
  std::mt19937 random(2);
  for (int m : {0, 1, 2, 3, 15, 16, 17, 100, 257}) {
    for (int n : {0, 1, 2, 5, 16, 64, 101}) {
      for (uint32_t distinct : {1u, 2u, 7u, 100000u}) {
        const auto a = random_keys(random, m, distinct), b = random_keys(random, n, distinct);
        check_whole(a, b);
        check_pieces<1, true>(a, b);
        check_pieces<4, true>(a, b);
        check_pieces<17, true>(a, b);
        check_pieces<1, false>(a, b);
        check_pieces<8, false>(a, b);
      }
    }
  }

  // Keys keep their own bits: zeros of both signs and NaNs are ties, taken from a first.
  const auto order = gpusort::make_key_order<uint32_t>(gpusort::KeyKind::kFloat, false, 0x7f800000u);
  const std::vector<uint32_t> a{0x00000000u, 0x3f800000u, 0x7fc00001u}, b{0x80000000u, 0x3f800000u, 0xffc00002u};
  std::vector<uint32_t> merged(6);
  int64_t i = 0, j = 0;
  serial_merge<int64_t>(
      a.data(), i, 3, b.data(), j, 3, 6, [&](uint32_t x, uint32_t y) { return order.less(x, y); },
      [&](int64_t step, bool, int64_t, uint32_t key) { merged[step] = key; });
  CHECK((merged == std::vector<uint32_t>{0x00000000u, 0x80000000u, 0x3f800000u, 0x3f800000u, 0x7fc00001u, 0xffc00002u}));
  return report();
}
