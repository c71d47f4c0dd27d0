// Copies between a strided tensor and contiguous rows, block by block: neighbouring rows are usually neighbours in memory too when the
// elements of one row are not, so a block of kRows x kElements uses every byte of the cache lines it touches, as in a blocked
// transposition.
#include "strided_copy.h"

#include <algorithm>

namespace gpusort::cpu {
namespace {

constexpr int64_t kRows = 64;
constexpr int64_t kElements = 64;

struct Bytes16 {
  uint64_t parts[2];
};

// copy(strided offset, contiguous offset) for every element.
template <class Copy>
void visit_elements(const StridedRows& layout, const Parallel& parallel, const Copy& copy) {
  const int64_t bands = (layout.rows + kRows - 1) / kRows, columns = (layout.length + kElements - 1) / kElements;
  const int64_t blocks = bands * columns;
  const int64_t tasks = std::min({blocks, int64_t{parallel.threads()} * 4, 1 + layout.rows * layout.length / (1 << 14)});
  parallel.for_each(tasks, [&](int64_t task) {
    const Slice slice = slice_of(blocks, tasks, task);
    int64_t offsets[kRows];
    int64_t band = -1;
    for (int64_t block = slice.begin; block < slice.end; ++block) {
      const int64_t first_row = block / columns * kRows, first_element = block % columns * kElements;
      const int64_t rows = std::min(kRows, layout.rows - first_row);
      const int64_t last_element = std::min(first_element + kElements, layout.length);
      if (band != block / columns) {
        band = block / columns;
        for (int64_t r = 0; r < rows; ++r) offsets[r] = layout.offset(first_row + r);
      }
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t row = (first_row + r) * layout.length;
        for (int64_t e = first_element; e < last_element; ++e) copy(offsets[r] + e * layout.length_stride, row + e);
      }
    }
  });
}

template <class T>
void gather(const StridedRows& layout, const void* strided, void* rows, const Parallel& parallel) {
  const T* from = static_cast<const T*>(strided);
  T* to = static_cast<T*>(rows);
  visit_elements(layout, parallel, [from, to](int64_t strided_at, int64_t row_at) { to[row_at] = from[strided_at]; });
}

template <class T>
void scatter(const StridedRows& layout, const void* rows, void* strided, const Parallel& parallel) {
  const T* from = static_cast<const T*>(rows);
  T* to = static_cast<T*>(strided);
  visit_elements(layout, parallel, [from, to](int64_t strided_at, int64_t row_at) { to[strided_at] = from[row_at]; });
}

}  // namespace

void gather_rows(const StridedRows& layout, const void* strided, void* rows, int element_bytes, const Parallel& parallel) {
  switch (element_bytes) {
    case 1: return gather<uint8_t>(layout, strided, rows, parallel);
    case 2: return gather<uint16_t>(layout, strided, rows, parallel);
    case 4: return gather<uint32_t>(layout, strided, rows, parallel);
    case 8: return gather<uint64_t>(layout, strided, rows, parallel);
    default: return gather<Bytes16>(layout, strided, rows, parallel);
  }
}

void scatter_rows(const StridedRows& layout, const void* rows, void* strided, int element_bytes, const Parallel& parallel) {
  switch (element_bytes) {
    case 1: return scatter<uint8_t>(layout, rows, strided, parallel);
    case 2: return scatter<uint16_t>(layout, rows, strided, parallel);
    case 4: return scatter<uint32_t>(layout, rows, strided, parallel);
    case 8: return scatter<uint64_t>(layout, rows, strided, parallel);
    default: return scatter<Bytes16>(layout, rows, strided, parallel);
  }
}

}  // namespace gpusort::cpu
