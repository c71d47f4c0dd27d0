// core/multiway_split.h against counting by brute force: sort all (element, run, place) and count the first `rank`.
#include "../../csrc/core/multiway_split.h"

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "check.h"

using namespace gpusort;
using Runs = std::vector<std::vector<uint32_t>>;

namespace {

// Reads are checked: nothing outside a run may be touched.
struct CheckedRuns {
  const Runs& runs;
  long* outside;

  uint32_t operator()(int run, int64_t place) const {
    if (place < 0 || place >= static_cast<int64_t>(runs[run].size())) {
      ++*outside;
      return 0;
    }
    return runs[run][place];
  }
};

template <class Index>
std::vector<int64_t> split(const Runs& runs, int64_t rank, long* outside) {
  const int count = static_cast<int>(runs.size());
  std::vector<Index> low(count, 0), high(count), before(count);
  for (int r = 0; r < count; ++r) high[r] = static_cast<Index>(runs[r].size());
  multiway_split<Index>(SoloTeam<Index>{count}, static_cast<Index>(rank), Index{0}, low.data(), high.data(), before.data(),
                        CheckedRuns{runs, outside}, [](uint32_t x, uint32_t y) { return x < y; });
  CHECK(low == high);
  return std::vector<int64_t>(low.begin(), low.end());
}

Runs make_runs(std::mt19937& random, int count, int longest, uint32_t values, bool sorted) {
  Runs runs(count);
  for (auto& run : runs) {
    run.resize(random() % 4 == 0 ? 0 : random() % (longest + 1));
    for (auto& element : run) element = values == 0 ? random() : random() % values;
    if (sorted) std::sort(run.begin(), run.end());
  }
  return runs;
}

void check_sorted(const Runs& runs, int64_t rank_step) {
  std::vector<std::tuple<uint32_t, int, int>> all;
  for (int r = 0; r < static_cast<int>(runs.size()); ++r) {
    for (int p = 0; p < static_cast<int>(runs[r].size()); ++p) all.emplace_back(runs[r][p], r, p);
  }
  std::sort(all.begin(), all.end());
  std::vector<int64_t> expected(runs.size(), 0);
  long outside = 0;
  for (int64_t rank = 0; rank <= static_cast<int64_t>(all.size()); ++rank) {
    if (rank % rank_step == 0 || rank == static_cast<int64_t>(all.size())) {
      CHECK(split<int64_t>(runs, rank, &outside) == expected);
      CHECK(split<int32_t>(runs, rank, &outside) == expected);
    }
    if (rank < static_cast<int64_t>(all.size())) ++expected[std::get<1>(all[rank])];
  }
  CHECK(outside == 0);
}

// A near split has to be the exact split of as many outputs as it counts, and those near enough.
template <class Index>
void check_near(const Runs& runs, int64_t rank_step, Index slack) {
  const int count = static_cast<int>(runs.size());
  int64_t total = 0;
  for (const auto& run : runs) total += static_cast<int64_t>(run.size());
  long outside = 0;
  for (int64_t rank = 0; rank <= total; rank += rank_step) {
    std::vector<Index> low(count, 0), high(count), before(count);
    for (int r = 0; r < count; ++r) high[r] = static_cast<Index>(runs[r].size());
    multiway_split<Index>(SoloTeam<Index>{count}, static_cast<Index>(rank), slack, low.data(), high.data(), before.data(),
                          CheckedRuns{runs, &outside}, [](uint32_t x, uint32_t y) { return x < y; });
    CHECK(low == high);
    int64_t sum = 0;
    for (const Index counted : low) sum += counted;
    CHECK(sum >= rank - slack && sum <= rank + slack && sum >= 0 && sum <= total);
    CHECK(split<int64_t>(runs, sum, &outside) == std::vector<int64_t>(low.begin(), low.end()));
  }
  CHECK(outside == 0);
}

// Whatever the runs are: counts within them, near the rank.
void check_near_unsorted(const Runs& runs, int64_t slack) {
  int64_t total = 0;
  for (const auto& run : runs) total += static_cast<int64_t>(run.size());
  const int count = static_cast<int>(runs.size());
  long outside = 0;
  for (int64_t rank = 0; rank <= total; rank += 1 + total / 50) {
    std::vector<int64_t> low(count, 0), high(count), before(count);
    for (int r = 0; r < count; ++r) high[r] = static_cast<int64_t>(runs[r].size());
    multiway_split<int64_t>(SoloTeam<int64_t>{count}, rank, slack, low.data(), high.data(), before.data(), CheckedRuns{runs, &outside},
                            [](uint32_t x, uint32_t y) { return x < y; });
    int64_t sum = 0;
    for (int r = 0; r < count; ++r) {
      CHECK(low[r] == high[r] && low[r] >= 0 && low[r] <= static_cast<int64_t>(runs[r].size()));
      sum += low[r];
    }
    CHECK(sum >= rank - slack && sum <= rank + slack);
  }
  CHECK(outside == 0);
}

void check_unsorted(const Runs& runs) {
  int64_t total = 0;
  for (const auto& run : runs) total += static_cast<int64_t>(run.size());
  long outside = 0;
  for (int64_t rank = 0; rank <= total; rank += 1 + total / 50) {
    const std::vector<int64_t> counts = split<int64_t>(runs, rank, &outside);
    int64_t sum = 0;
    for (size_t r = 0; r < runs.size(); ++r) {
      CHECK(counts[r] >= 0 && counts[r] <= static_cast<int64_t>(runs[r].size()));
      sum += counts[r];
    }
    CHECK(sum == rank);
  }
  CHECK(outside == 0);
}

}  // namespace

int main() {
  std::mt19937 random(7);
  for (const uint32_t values : {0u, 1u, 2u, 5u, 1000u}) {
    for (const int count : {1, 2, 3, 8, 16, 32, 100}) {
      for (int repeat = 0; repeat < 6; ++repeat) check_sorted(make_runs(random, count, 60, values, true), 1);
      check_sorted(make_runs(random, count, 3000 / count + 200, values, true), 37);
      check_unsorted(make_runs(random, count, 120, values, false));
      check_near<int64_t>(make_runs(random, count, 60, values, true), 1, 0);
      check_near<int32_t>(make_runs(random, count, 300, values, true), 13, 20);
      check_near_unsorted(make_runs(random, count, 120, values, false), 5);
    }
  }
  // Every run above, or below, the one before it; one long run among short ones; long runs, where the guesses are used.
  for (const bool rising : {false, true}) {
    Runs runs(16);
    for (int r = 0; r < 16; ++r) {
      for (int p = 0; p < 100; ++p) runs[r].push_back(static_cast<uint32_t>((rising ? r : 15 - r) * 100 + p));
    }
    check_sorted(runs, 1);
    check_near<int32_t>(runs, 1, 3);
  }
  Runs uneven = make_runs(random, 9, 20, 50, true);
  uneven[4].assign(5000, 25);
  check_sorted(uneven, 11);
  check_near<int32_t>(uneven, 11, 2);
  check_sorted(make_runs(random, 4, 20000, 0, true), 997);
  check_near<int32_t>(make_runs(random, 16, 40000, 0, true), 997, 64);
  check_near<int64_t>(make_runs(random, 7, 40000, 30, true), 997, 64);
  return report();
}
