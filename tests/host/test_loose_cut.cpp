// Loose cuts: nothing is lost in memory, neighbours that rise for certain do so wherever they are settled, and a piece between them loads
// whatever it may turn out to hold.
#include <cstdint>
#include <random>

#include "../../csrc/core/loose_cut.h"
#include "check.h"

using namespace gpusort;

static void check_packing() {
  for (int64_t a_count : {int64_t{0}, int64_t{1}, (int64_t{1} << 31) + 5, (int64_t{1} << kLooseShift) - 1}) {
    CHECK(LooseCut({a_count, 0}).packed() == a_count);  // kernels that take exact cuts read them as they are
    for (int open : {0, 1, kLoosePlaces<uint64_t>, kLoosePlaces<uint32_t>, 256}) {
      const LooseCut cut = LooseCut::unpack(LooseCut{a_count, open}.packed());
      CHECK(cut.a_count == a_count && cut.open == open && cut.most() == a_count + open);
    }
  }
}

// Every way to settle two cuts, `outputs` apart: is there one that leaves the piece less than nothing of an input?
static bool may_contradict(const LooseCut& cut, const LooseCut& next, int64_t outputs) {
  for (int64_t from = cut.a_count; from <= cut.most(); ++from) {
    for (int64_t to = next.a_count; to <= next.most(); ++to) {
      if (to < from || to - from > outputs) return true;
    }
  }
  return false;
}

static void check_pieces(std::mt19937& random) {
  int certain = 0;
  for (int round = 0; round < 20000; ++round) {
    const int64_t outputs = random() % 12, rank = 100 + random() % 10;
    const LooseCut cut{static_cast<int64_t>(20 + random() % 10), static_cast<int>(random() % 4)};
    const LooseCut next{static_cast<int64_t>(20 + random() % 22), static_cast<int>(random() % 4)};
    const bool rises = rise_for_certain(cut, next, outputs);
    CHECK(rises == !may_contradict(cut, next, outputs));
    if (!rises) continue;
    ++certain;
    const MergeRange<int64_t> range = LoosePiece{{rank, rank + outputs, cut.a_count, next.a_count}, cut.open, next.open}.range();
    CHECK(range.length() == outputs + cut.open + next.open);
    for (int64_t from = cut.a_count; from <= cut.most(); ++from) {
      for (int64_t to = next.a_count; to <= next.most(); ++to) {
        CHECK(range.a_begin <= from && to <= range.a_end && range.b_begin <= rank - from && rank + outputs - to <= range.b_end);
      }
    }
  }
  CHECK(certain > 1000);
}

int main() {
  std::mt19937 random(12);
  check_packing();
  check_pieces(random);
  return report();
}
