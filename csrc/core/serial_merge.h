// Sequential merge: two pointers, one comparison and one element read per output, ties taken from a. The reference for every other merge
// and the innermost loop of each of them.
//
// Invariant: a_head and b_head are the first elements not yet emitted, and all that was emitted comes before both in the output order.
#pragma once

#include <cstdint>
#include <type_traits>

#include "co_rank.h"
#include "host_device.h"

namespace gpusort {

// Emits the first `count` outputs of merging a[i, i_end) and b[j, j_end): emit(step, from_b, position, element), `position` being the
// element's place in a or in b. On return i and j point behind what was taken. Reads nothing outside the ranges. Where count exceeds
// what is there, the surplus calls repeat the last element and move j past j_end.
template <class Index, class A, class B, class Less, class Emit>
GPUSORT_HD void serial_merge(const A& a, Index& i, Index i_end, const B& b, Index& j, Index j_end, Index count, Less less, Emit emit) {
  using Element = std::remove_cv_t<std::remove_reference_t<decltype(a[i])>>;
  Element a_head = i < i_end ? a[i] : Element{};
  Element b_head = j < j_end ? b[j] : Element{};
  for (Index step = 0; step < count; ++step) {
    const bool from_b = i >= i_end || (j < j_end && less(b_head, a_head));
    if (from_b) {
      emit(step, true, j, b_head);
      if (++j < j_end) b_head = b[j];
    } else {
      emit(step, false, i, a_head);
      if (++i < i_end) a_head = a[i];
    }
  }
}

// The same with a count known to the compiler, for outputs kept in registers: every `step` that emit sees is a constant. Elements come from
// source.read(from_b, position), so that one read serves both sides and no branch is needed.
//
// Unless kGuarded, the ends are not looked at, which saves three instructions an output. The caller vouches that both sides can be read
// up to one place behind the last element taken, and that what stands there does not come before anything emitted. Behind a piece of a
// longer merge that is so by itself: the next element of a comes after all of the piece's, and so does the next of b.
template <int kCount, bool kGuarded, class Index, class Source, class Less, class Emit>
GPUSORT_HD void serial_merge_unrolled(const Source& source, Index& i, Index i_end, Index& j, Index j_end, Less less, Emit emit) {
  using Element = decltype(source.read(false, i));
  Element a_head = !kGuarded || i < i_end ? source.read(false, i) : Element{};
  Element b_head = !kGuarded || j < j_end ? source.read(true, j) : Element{};
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int step = 0; step < kCount; ++step) {
    const bool from_b = kGuarded ? i >= i_end || (j < j_end && less(b_head, a_head)) : less(b_head, a_head);
    emit(step, from_b, from_b ? j : i, from_b ? b_head : a_head);
    i += from_b ? 0 : 1;
    j += from_b ? 1 : 0;
    const Index next = from_b ? j : i;
    if (step + 1 < kCount && (!kGuarded || next < (from_b ? j_end : i_end))) {
      const Element element = source.read(from_b, next);
      a_head = from_b ? a_head : element;
      b_head = from_b ? element : b_head;
    }
  }
}

}  // namespace gpusort
