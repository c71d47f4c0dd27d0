// Fetches elements by position, each thread a slice of all elements: one read of the indices, one write, and a random read for each.
#include "take_rows.h"

#include <algorithm>
#include <atomic>

namespace gpusort::cpu {
namespace {

constexpr int64_t kSlice = 1 << 14;  // elements below which another thread does not pay

struct Bytes16 {
  uint64_t parts[2];
};

template <class T, class Index>
bool take(const StridedRows& source_layout, const T* source, const StridedRows& index_layout, const Index* indices,
          const StridedRows& out_layout, T* out, const Parallel& parallel) {
  const int64_t length = out_layout.length, count = out_layout.rows * length;
  const int64_t tasks = std::min<int64_t>(parallel.threads(), 1 + count / kSlice);
  std::atomic<bool> inside{true};
  parallel.for_each(tasks, [&](int64_t task) {
    const Slice slice = slice_of(count, tasks, task);
    for (int64_t place = slice.begin; place < slice.end;) {
      const int64_t row = place / length, first = place % length, last = std::min(length, first + slice.end - place);
      const T* from = source + source_layout.offset(row);
      const Index* positions = indices + index_layout.offset(row);
      T* to = out + out_layout.offset(row);
      for (int64_t e = first; e < last; ++e) {
        const auto position = static_cast<int64_t>(positions[e * index_layout.length_stride]);
        if (position < 0 || position >= length) {
          inside = false;
          return;
        }
        to[e * out_layout.length_stride] = from[position * source_layout.length_stride];
      }
      place += last - first;
    }
  });
  return inside;
}

}  // namespace

bool take_rows(const StridedRows& source_layout, const void* source, int element_bytes, const StridedRows& index_layout,
               const void* indices, int index_bytes, const StridedRows& out_layout, void* out, const Parallel& parallel) {
  const auto with = [&](auto element, auto index) {
    return take(source_layout, static_cast<const decltype(element)*>(source), index_layout, static_cast<const decltype(index)*>(indices),
                out_layout, static_cast<decltype(element)*>(out), parallel);
  };
  const auto of = [&](auto element) { return index_bytes == 8 ? with(element, int64_t{}) : with(element, int32_t{}); };
  switch (element_bytes) {
    case 1: return of(uint8_t{});
    case 2: return of(uint16_t{});
    case 4: return of(uint32_t{});
    case 8: return of(uint64_t{});
    default: return of(Bytes16{});
  }
}

}  // namespace gpusort::cpu
