// Merges k sorted runs: the output is cut into one piece per thread, and each piece is merged by a tournament of losers.
//
// A tree over the runs keeps, at each node, the loser of the match played there; the winner of all is the next output. Its run's next
// element then replays the matches on the way up: log2(k) comparisons an output. The cuts are a multiway split (core/multiway_split.h), so
// pieces are equal whatever the data. Invariant: elements of a piece before its runs' heads have been written, in order. Cost: one read and
// one write of the data. Source: Knuth, The Art of Computer Programming 3, section 5.4.1.
//
// Runs that are not sorted may have cuts that contradict each other. Then the output is one piece, which holds every element.
//
// The tree's comparisons grow with the number of runs and miss the caches more the more runs there are, the digits of a radix sort do not:
// beyond kMostTreeRuns the runs are sorted as one row, which gives the same result, since the sort is stable.
#include "merge_many.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "../core/complex_code.h"
#include "../core/multiway_split.h"
#include "sort_rows.h"

namespace gpusort::cpu {
namespace {

__extension__ using uint128 = unsigned __int128;

constexpr int64_t kPieceLength = 1 << 14;  // outputs below which another thread does not pay
constexpr int64_t kMostSplitRuns = 1024;   // a split takes up to `runs` searches in each of `runs` runs
// EPYC, two threads, with indices, milliseconds by runs 16, 32, 64, 512 and sorted: 2^22 float32 68, 66, 78, 125 and 66; 2^20 int64 11, 15,
// 24, 31 and 9.
constexpr int64_t kMostTreeRuns = 32;

template <class Part>
struct Complex {
  Part real, imag;
};

// What an element is compared by.
template <class U>
struct KeyCode {
  KeyOrder<U> order;
  U operator()(U key) const { return order.code(key); }
};

struct ComplexCode {
  bool descending;
  uint64_t operator()(const Complex<uint32_t>& key) const {
    const uint64_t code = complex64_code(key.real, key.imag);
    return descending ? ~code : code;
  }
  uint128 operator()(const Complex<uint64_t>& key) const {
    const WideCode parts = complex128_code(key.real, key.imag);
    const uint128 code = static_cast<uint128>(parts.high) << 64 | parts.low;
    return descending ? ~code : code;
  }
};

template <class Code>
class LoserTree {
 public:
  struct Contender {
    Code code;
    int64_t run;  // kNone loses to every run

    bool beats(const Contender& other) const { return code < other.code || (code == other.code && run < other.run); }
  };
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  static constexpr Contender none() { return {static_cast<Code>(~Code{0}), kNone}; }

  // contender(run) is the first of each run.
  template <class ContenderOf>
  LoserTree(int64_t runs, const ContenderOf& contender) {
    while (leaves_ < runs) leaves_ *= 2;
    std::vector<Contender> winners(2 * leaves_, none());
    for (int64_t run = 0; run < runs; ++run) winners[leaves_ + run] = contender(run);
    losers_.resize(leaves_);
    for (int64_t node = leaves_ - 1; node > 0; --node) {
      const Contender &left = winners[2 * node], &right = winners[2 * node + 1];
      const bool left_wins = left.beats(right);
      winners[node] = left_wins ? left : right;
      losers_[node] = left_wins ? right : left;
    }
    winner_ = winners[1];
  }

  int64_t winning_run() const { return winner_.run; }

  // The winner's run goes on with `next`.
  void replace_winner(Contender next) {
    for (int64_t node = (leaves_ + winner_.run) / 2; node > 0; node /= 2) {
      if (losers_[node].beats(next)) std::swap(losers_[node], next);
    }
    winner_ = next;
  }

 private:
  int64_t leaves_ = 1;
  std::vector<Contender> losers_;
  Contender winner_;
};

template <class Element, class CodeOf>
class ManyMerge {
  using Code = decltype(std::declval<CodeOf>()(std::declval<Element>()));
  using Places = std::vector<int64_t>;  // one per run, in the input

 public:
  ManyMerge(const MergeManyProblem& problem, const CodeOf& code_of)
      : problem_(problem), keys_(static_cast<const Element*>(problem.keys_in)), code_of_(code_of) {}

  void merge(const Parallel& parallel) const {
    const std::vector<Places> cuts = cut(parallel);
    const int64_t pieces = static_cast<int64_t>(cuts.size()) - 1;
    parallel.for_each(pieces, [&](int64_t piece) { merge_piece(cuts[piece], cuts[piece + 1], slice_of(problem_.length, pieces, piece)); });
  }

 private:
  // Where each piece begins in each run, and the end of the last.
  std::vector<Places> cut(const Parallel& parallel) const {
    const int64_t runs = problem_.runs;
    const Places begin(problem_.offsets, problem_.offsets + runs), end(problem_.offsets + 1, problem_.offsets + runs + 1);
    const int64_t wanted = runs > kMostSplitRuns ? 1 : 1 + problem_.length / kPieceLength;
    const int64_t pieces = std::min<int64_t>(parallel.threads(), wanted);
    std::vector<Places> cuts(pieces + 1, end);
    cuts[0] = begin;
    parallel.for_each(pieces - 1, [&](int64_t p) { cuts[p + 1] = split(slice_of(problem_.length, pieces, p + 1).begin); });
    for (int64_t p = 1; p < pieces; ++p) {
      for (int64_t run = 0; run < runs; ++run) {
        if (cuts[p][run] > cuts[p + 1][run]) return {begin, end};
      }
    }
    return cuts;
  }

  Places split(int64_t rank) const {
    const int64_t runs = problem_.runs;
    Places low(runs, 0), high(runs), before(runs);
    for (int64_t run = 0; run < runs; ++run) high[run] = problem_.offsets[run + 1] - problem_.offsets[run];
    multiway_split<int64_t>(
        SoloTeam<int64_t>{static_cast<int>(runs)}, rank, 0, low.data(), high.data(), before.data(),
        [this](int run, int64_t place) { return code_of_(keys_[problem_.offsets[run] + place]); }, [](Code x, Code y) { return x < y; });
    for (int64_t run = 0; run < runs; ++run) low[run] += problem_.offsets[run];
    return low;
  }

  void merge_piece(Places next, const Places& end, Slice outputs) const {
    const auto contender = [&](int64_t run) {
      return next[run] < end[run] ? typename LoserTree<Code>::Contender{code_of_(keys_[next[run]]), run} : LoserTree<Code>::none();
    };
    LoserTree<Code> tree(problem_.runs, contender);
    auto* keys_out = static_cast<Element*>(problem_.keys_out);
    for (int64_t output = outputs.begin; output < outputs.end; ++output) {
      const int64_t run = tree.winning_run();
      const int64_t position = next[run]++;
      if (keys_out != nullptr) keys_out[output] = keys_[position];
      if (problem_.indices_out != nullptr) write_index(output, position);
      tree.replace_winner(contender(run));
    }
  }

  void write_index(int64_t output, int64_t position) const {
    if (problem_.index_bytes == 8) {
      static_cast<int64_t*>(problem_.indices_out)[output] = position;
    } else {
      static_cast<int32_t*>(problem_.indices_out)[output] = static_cast<int32_t>(position);
    }
  }

  const MergeManyProblem& problem_;
  const Element* keys_;
  CodeOf code_of_;
};

template <class Element, class CodeOf>
void merge_runs(const MergeManyProblem& problem, const CodeOf& code_of, const Parallel& parallel) {
  ManyMerge<Element, CodeOf>(problem, code_of).merge(parallel);
}

template <class U>
void merge_keys(const MergeManyProblem& problem, const Parallel& parallel) {
  merge_runs<U>(problem, KeyCode<U>{problem.key.order<U>(problem.descending)}, parallel);
}

void sort_runs(const MergeManyProblem& problem, const Parallel& parallel) {
  SortProblem sort;
  sort.key = problem.key;
  sort.descending = problem.descending;
  sort.length = problem.length;
  sort.end_bit = problem.key.bytes * 8;
  sort.keys_in = problem.keys_in;
  sort.keys_out = problem.keys_out;
  sort.indices_out = problem.indices_out;
  sort.index_bytes = problem.index_bytes;
  sort_rows(sort, SortMethod::kAuto, parallel);
}

}  // namespace

void merge_many(const MergeManyProblem& problem, bool complex, const Parallel& parallel) {
  if (problem.length == 0) return;
  if (problem.runs > kMostTreeRuns && !complex) return sort_runs(problem, parallel);
  const ComplexCode complex_code{problem.descending};
  switch (problem.key.bytes) {
    case 1: return merge_keys<uint8_t>(problem, parallel);
    case 2: return merge_keys<uint16_t>(problem, parallel);
    case 4: return merge_keys<uint32_t>(problem, parallel);
    case 8: return complex ? merge_runs<Complex<uint32_t>>(problem, complex_code, parallel) : merge_keys<uint64_t>(problem, parallel);
    default: return merge_runs<Complex<uint64_t>>(problem, complex_code, parallel);
  }
}

}  // namespace gpusort::cpu
