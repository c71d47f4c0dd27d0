// Merges rows: the output is cut into equal pieces, a co-rank at each cut says which inputs a piece needs, and each piece is one sequential
// merge (core/serial_merge.h). Invariant: cuts are repaired to rise on both sides, so the pieces partition both inputs even if they are not
// sorted. Cost: one read and one write of the data, about log2(min(m, n)) reads per cut.
// Source: Green, McColl and Bader, "GPU Merge Path" (2012).
//
// A piece is worked off in blocks: the merge writes keys and notes where each came from, then payloads and indices follow the notes.
#include "merge_rows.h"

#include <algorithm>

#include "../core/co_rank.h"
#include "../core/serial_merge.h"

namespace gpusort::cpu {
namespace {

__extension__ using uint128 = unsigned __int128;

constexpr int64_t kBlock = 1024;     // outputs between two visits of the payloads; their notes fit in the L1 cache
constexpr int64_t kPiece = 1 << 14;  // outputs below which another thread does not pay (EPYC, torch's OpenMP pool)

// Codes too wide for KeyOrder: plain unsigned.
struct WideOrder {
  uint128 complement;
  bool less(uint128 x, uint128 y) const { return (x ^ complement) < (y ^ complement); }
};

template <class U, class Order>
struct Row {
  const U* a;
  const U* b;
  int64_t a_length, b_length;
  Order order;

  int64_t length() const { return a_length + b_length; }
  bool less(U x, U y) const { return order.less(x, y); }
  int64_t co_rank_at(int64_t rank) const {
    return co_rank(rank, a, a_length, b, b_length, [this](U x, U y) { return less(x, y); });
  }
};

template <class U, class Order>
Row<U, Order> row_of(const MergeProblem& problem, int64_t row, const Order& order) {
  return {static_cast<const U*>(problem.a_keys) + row * problem.a_length, static_cast<const U*>(problem.b_keys) + row * problem.b_length,
          problem.a_length, problem.b_length, order};
}

// out[k] = payload of source[k]: a position in a, or a_length + a position in b.
template <class Payload>
void move_payloads(const void* a, const void* b, void* out, int64_t a_length, const int64_t* sources, int64_t count) {
  const auto* from_a = static_cast<const Payload*>(a);
  const auto* from_b = static_cast<const Payload*>(b);
  auto* to = static_cast<Payload*>(out);
  for (int64_t k = 0; k < count; ++k) to[k] = sources[k] < a_length ? from_a[sources[k]] : from_b[sources[k] - a_length];
}

// Where a row's payloads and indices lie.
class Followers {
 public:
  Followers(const MergeProblem& problem, int64_t row) : problem_(problem), row_(row) {}

  bool any() const { return problem_.payload_bytes > 0 || problem_.indices_out != nullptr; }

  // Outputs [output, output + count) of the row.
  void follow(int64_t output, const int64_t* sources, int64_t count) const {
    const int64_t first = row_ * (problem_.a_length + problem_.b_length) + output;
    const int64_t bytes = problem_.payload_bytes;
    if (bytes > 0) {
      const void* a = static_cast<const char*>(problem_.a_payload) + row_ * problem_.a_length * bytes;
      const void* b = static_cast<const char*>(problem_.b_payload) + row_ * problem_.b_length * bytes;
      void* out = static_cast<char*>(problem_.payload_out) + first * bytes;
      switch (bytes) {
        case 1: move_payloads<uint8_t>(a, b, out, problem_.a_length, sources, count); break;
        case 2: move_payloads<uint16_t>(a, b, out, problem_.a_length, sources, count); break;
        case 4: move_payloads<uint32_t>(a, b, out, problem_.a_length, sources, count); break;
        case 8: move_payloads<uint64_t>(a, b, out, problem_.a_length, sources, count); break;
        default: move_payloads<Payload16>(a, b, out, problem_.a_length, sources, count);
      }
    }
    if (problem_.indices_out == nullptr) return;
    if (problem_.index_bytes == 8) {
      std::copy(sources, sources + count, static_cast<int64_t*>(problem_.indices_out) + first);
    } else {
      auto* out = static_cast<int32_t*>(problem_.indices_out) + first;
      for (int64_t k = 0; k < count; ++k) out[k] = static_cast<int32_t>(sources[k]);
    }
  }

 private:
  struct Payload16 {  // no more aligned than the parts of a complex number
    uint64_t parts[2];
  };

  const MergeProblem& problem_;
  int64_t row_;
};

// One thread merges `range` of a row into outputs from range.a_begin + range.b_begin on.
template <class U, class Order>
void merge_piece(const Row<U, Order>& row, const MergeRange<int64_t>& range, U* keys_out, const Followers& followers) {
  int64_t sources[kBlock];
  int64_t i = range.a_begin, j = range.b_begin;
  const bool any = followers.any();
  const auto less = [&row](U x, U y) { return row.less(x, y); };
  for (int64_t output = i + j; output < range.a_end + range.b_end;) {
    const int64_t count = std::min(kBlock, range.a_end + range.b_end - output);
    U* out = keys_out == nullptr ? nullptr : keys_out + output;
    serial_merge(row.a, i, range.a_end, row.b, j, range.b_end, count, less, [&](int64_t step, bool from_b, int64_t position, U key) {
      if (out != nullptr) out[step] = key;
      if (any) sources[step] = from_b ? row.a_length + position : position;
    });
    if (any) followers.follow(output, sources, count);
    output += count;
  }
}

template <class U, class Order>
void merge_rows_of(const MergeProblem& problem, const Order& order, const Parallel& parallel) {
  const int64_t length = problem.a_length + problem.b_length;
  const bool split_rows = problem.rows < parallel.threads();
  const int64_t pieces = split_rows ? std::min<int64_t>(parallel.threads(), 1 + length / kPiece) : 1;
  const int64_t rows_tasks = std::min(problem.rows, std::max<int64_t>(1, problem.rows * length / kPiece));
  const auto merge_cut = [&](int64_t row_index, int64_t piece) {
    const Row<U, Order> row = row_of<U>(problem, row_index, order);
    const auto rank_of = [&](int64_t cut) { return cut == pieces ? length : slice_of(length, pieces, cut).begin; };
    const auto split_at = [&](int64_t cut) {
      return repaired_split(cut, pieces, row.a_length, rank_of, [&](int64_t c) { return row.co_rank_at(rank_of(c)); });
    };
    MergeRange<int64_t> range;
    range.a_begin = split_at(piece);
    range.a_end = split_at(piece + 1);
    range.b_begin = rank_of(piece) - range.a_begin;
    range.b_end = rank_of(piece + 1) - range.a_end;
    U* keys_out = problem.keys_out == nullptr ? nullptr : static_cast<U*>(problem.keys_out) + row_index * length;
    merge_piece(row, range, keys_out, Followers(problem, row_index));
  };
  if (split_rows) {
    parallel.for_each(problem.rows * pieces, [&](int64_t task) { merge_cut(task / pieces, task % pieces); });
    return;
  }
  parallel.for_each(rows_tasks, [&](int64_t task) {
    const Slice rows = slice_of(problem.rows, rows_tasks, task);
    for (int64_t row = rows.begin; row < rows.end; ++row) merge_cut(row, 0);
  });
}

template <class U, class Order>
void co_rank_of(const MergeProblem& problem, const Order& order, const int64_t* ranks, int64_t count, int64_t* counts_out,
                const Parallel& parallel) {
  const Row<U, Order> row = row_of<U>(problem, 0, order);
  const int64_t tasks = std::min<int64_t>(parallel.threads(), 1 + count / (1 << 12));
  parallel.for_each(tasks, [&](int64_t task) {
    const Slice slice = slice_of(count, tasks, task);
    for (int64_t t = slice.begin; t < slice.end; ++t) counts_out[t] = row.co_rank_at(ranks[t]);
  });
}

// Calls visit(U{}, order) for the width of the keys.
template <class Visit>
void with_key_order(const MergeProblem& problem, const Visit& visit) {
  switch (problem.key.bytes) {
    case 1: return visit(uint8_t{}, problem.key.order<uint8_t>(problem.descending));
    case 2: return visit(uint16_t{}, problem.key.order<uint16_t>(problem.descending));
    case 4: return visit(uint32_t{}, problem.key.order<uint32_t>(problem.descending));
    case 8: return visit(uint64_t{}, problem.key.order<uint64_t>(problem.descending));
    default: return visit(uint128{}, WideOrder{problem.descending ? ~uint128{0} : uint128{0}});
  }
}

}  // namespace

void merge_rows(const MergeProblem& problem, const Parallel& parallel) {
  if (problem.rows * (problem.a_length + problem.b_length) == 0) return;
  with_key_order(problem, [&](auto key, auto order) { merge_rows_of<decltype(key)>(problem, order, parallel); });
}

void co_rank_many(const MergeProblem& problem, const int64_t* ranks, int64_t rank_count, int64_t* counts_out, const Parallel& parallel) {
  with_key_order(problem,
                 [&](auto key, auto order) { co_rank_of<decltype(key)>(problem, order, ranks, rank_count, counts_out, parallel); });
}

}  // namespace gpusort::cpu
