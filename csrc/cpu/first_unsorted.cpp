// Looks for the first element that comes before its predecessor: one read of the keys, each thread a slice of them.
#include "first_unsorted.h"

#include <algorithm>
#include <vector>

#include "../core/complex_code.h"

namespace gpusort::cpu {
namespace {

constexpr int64_t kSlice = 1 << 16;  // elements below which another thread does not pay

template <class T, class Less>
int64_t search(const T* keys, int64_t rows, int64_t length, const Parallel& parallel, const Less& less) {
  const int64_t count = rows * length;
  const int64_t tasks = std::min<int64_t>(parallel.threads(), 1 + count / kSlice);
  std::vector<int64_t> found(tasks, -1);
  parallel.for_each(tasks, [&](int64_t task) {
    const Slice slice = slice_of(count, tasks, task);
    for (int64_t i = std::max<int64_t>(slice.begin, 1); i < slice.end; ++i) {
      if (less(keys[i], keys[i - 1]) && i % length != 0) {
        found[task] = i;
        return;
      }
    }
  });
  for (const int64_t place : found) {
    if (place >= 0) return place;
  }
  return -1;
}

template <class U>
int64_t search_keys(const KeyType& key, bool descending, int64_t rows, int64_t length, const void* keys, const Parallel& parallel) {
  const KeyOrder<U> order = key.order<U>(descending);
  return search(static_cast<const U*>(keys), rows, length, parallel, [order](U a, U b) { return order.less(a, b); });
}

}  // namespace

int64_t first_unsorted(const KeyType& key, bool descending, int64_t rows, int64_t length, const void* keys, const Parallel& parallel) {
  switch (key.bytes) {
    case 1: return search_keys<uint8_t>(key, descending, rows, length, keys, parallel);
    case 2: return search_keys<uint16_t>(key, descending, rows, length, keys, parallel);
    case 4: return search_keys<uint32_t>(key, descending, rows, length, keys, parallel);
    case 8: return search_keys<uint64_t>(key, descending, rows, length, keys, parallel);
    default:
      return search(static_cast<const WideCode*>(keys), rows, length, parallel,
                    [descending](const WideCode& a, const WideCode& b) { return descending ? b < a : a < b; });
  }
}

}  // namespace gpusort::cpu
