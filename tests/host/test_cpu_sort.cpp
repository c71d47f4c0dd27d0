// The CPU kernels without torch: sort_rows and merge_rows against std::stable_sort, on threads of the standard library, with every method,
// the path for rows beyond 2^32 elements (forced on small ones), bit windows, and exceptions thrown by a task.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../../csrc/cpu/merge_rows.cpp"
#include "../../csrc/cpu/sort_rows.cpp"
#include "check.h"

using namespace gpusort;
using namespace gpusort::cpu;

namespace {

Parallel threads_of(int count) {
  return {count, [](int64_t tasks, void* context, Parallel::Body body) {
            std::vector<std::thread> threads;
            for (int64_t t = 0; t < tasks; ++t) threads.emplace_back([=] { body(context, t); });
            for (std::thread& thread : threads) thread.join();
          }};
}

// Unsigned keys only: the order of the other kinds is test_key_order's subject.
template <class U>
struct Case {
  std::vector<U> keys;
  int64_t rows, length;
};

template <class U>
void check_sort(const Case<U>& data, const SortPlan& plan, const Parallel& parallel, bool descending, int begin_bit, int end_bit) {
  SortProblem problem;
  problem.key = {static_cast<int>(sizeof(U)), KeyKind::kUnsigned, 0};
  problem.descending = descending;
  problem.rows = data.rows;
  problem.length = data.length;
  problem.begin_bit = begin_bit;
  problem.end_bit = end_bit;
  problem.keys_in = data.keys.data();

  std::vector<int64_t> expected(data.keys.size());
  std::vector<U> expected_keys(data.keys.size());
  for (int64_t row = 0; row < data.rows; ++row) {
    const auto begin = expected.begin() + row * data.length;
    std::iota(begin, begin + data.length, 0);
    const U* keys = data.keys.data() + row * data.length;
    std::stable_sort(begin, begin + data.length, [&](int64_t x, int64_t y) {
      const int bits = end_bit - begin_bit;
      const uint64_t mask = bits == 0 ? 0 : ~uint64_t{0} >> (64 - bits);
      const uint64_t a = bits == 0 ? 0 : uint64_t{keys[x]} >> begin_bit & mask, b = bits == 0 ? 0 : uint64_t{keys[y]} >> begin_bit & mask;
      return descending ? b < a : a < b;
    });
    for (int64_t i = 0; i < data.length; ++i) expected_keys[row * data.length + i] = keys[begin[i]];
  }
  std::vector<U> keys(data.keys.size());
  std::vector<int64_t> wide(data.keys.size());
  std::vector<int32_t> narrow(data.keys.size());

  problem.keys_out = keys.data();
  problem.indices_out = wide.data();
  sort_rows_by_plan(problem, plan, parallel);
  CHECK(keys == expected_keys && wide == expected);

  std::fill(keys.begin(), keys.end(), U{0});
  problem.indices_out = narrow.data();
  problem.index_bytes = 4;
  sort_rows_by_plan(problem, plan, parallel);
  CHECK(keys == expected_keys && std::equal(narrow.begin(), narrow.end(), expected.begin()));

  std::fill(keys.begin(), keys.end(), U{0});
  problem.indices_out = nullptr;
  sort_rows_by_plan(problem, plan, parallel);
  CHECK(keys == expected_keys);

  std::fill(wide.begin(), wide.end(), -1);
  problem.keys_out = nullptr;
  problem.indices_out = wide.data();
  problem.index_bytes = 8;
  sort_rows_by_plan(problem, plan, parallel);
  CHECK(wide == expected);
}

template <class U>
std::vector<U> make_keys(int64_t count, int kind, std::mt19937_64& random) {
  std::vector<U> keys(count);
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = random();
    switch (kind) {
      case 0: keys[i] = static_cast<U>(bits); break;
      case 1: keys[i] = static_cast<U>(bits % 3); break;
      case 2: keys[i] = static_cast<U>(count - i); break;
      case 3:
        keys[i] = static_cast<U>((bits & 1 ? U{0} : static_cast<U>(~U{0})) ^ static_cast<U>(bits >> 1 & 0x3ff));
        break;                                                         // two far clusters
      default: keys[i] = static_cast<U>(i == 0 ? ~U{0} : bits >> 54);  // one far outlier
    }
  }
  return keys;
}

template <class U>
void check_width(std::mt19937_64& random) {
  const int bits = KeyOrder<U>::kBits;
  for (int kind = 0; kind < 5; ++kind) {
    for (const int64_t length : {1, 2, 17, 100, 300, 5000, 300000}) {
      const int64_t rows = length <= 300 ? 7 : 1;
      const Case<U> data{make_keys<U>(rows * length, kind, random), rows, length};
      for (const SortMethod method :
           {SortMethod::kAuto, SortMethod::kRadix, SortMethod::kMerge, SortMethod::kBitonic, SortMethod::kSample}) {
        for (const int threads : {1, 3}) {
          if (length > 5000 && (threads == 1 || kind == 1 || kind == 2 || method == SortMethod::kAuto)) continue;
          SortPlan plan = make_sort_plan(rows, length, threads, method);
          check_sort(data, plan, threads_of(threads), kind % 2 == 0, 0, bits);
          if (threads == 1 || length > 5000) continue;
          plan.wide_index = true;
          check_sort(data, plan, threads_of(threads), kind % 2 == 1, 0, bits);
          check_sort(data, plan, threads_of(threads), kind % 2 == 1, bits / 4, bits / 2 + 1);
          check_sort(data, plan, threads_of(threads), false, 3, 3);
        }
      }
    }
  }
}

// Keys and indices of a merge equal those of a stable sort of both inputs; unsorted inputs come out as a permutation.
void check_merge(int64_t a_length, int64_t b_length, int threads, std::mt19937_64& random) {
  std::vector<uint32_t> a = make_keys<uint32_t>(a_length, 1, random), b = make_keys<uint32_t>(b_length, 1, random);
  for (const bool sorted : {true, false}) {
    if (sorted) std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end());
    if (!sorted) std::shuffle(a.begin(), a.end(), random), std::shuffle(b.begin(), b.end(), random);
    std::vector<uint32_t> both = a, keys(a_length + b_length);
    both.insert(both.end(), b.begin(), b.end());
    std::vector<int64_t> indices(both.size()), expected(both.size());
    MergeProblem problem;
    problem.a_length = a_length;
    problem.b_length = b_length;
    problem.a_keys = a.data();
    problem.b_keys = b.data();
    problem.keys_out = keys.data();
    problem.indices_out = indices.data();
    merge_rows(problem, threads_of(threads));
    std::iota(expected.begin(), expected.end(), 0);
    if (sorted) {
      std::stable_sort(expected.begin(), expected.end(), [&](int64_t x, int64_t y) { return both[x] < both[y]; });
      CHECK(indices == expected);
    }
    bool follows = true;
    for (size_t i = 0; i < both.size(); ++i) follows = follows && keys[i] == both[indices[i]];
    std::sort(indices.begin(), indices.end());
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(follows && indices == expected);
  }
}

}  // namespace

int main() {
  std::mt19937_64 random(5);
  check_width<uint8_t>(random);
  check_width<uint16_t>(random);
  check_width<uint32_t>(random);
  check_width<uint64_t>(random);

  for (const int threads : {1, 4}) {
    for (const int64_t a_length : {0, 1, 1000, 60000}) {
      for (const int64_t b_length : {0, 3, 5000, 50001}) check_merge(a_length, b_length, threads, random);
    }
  }

  // Slices cover their range in order.
  for (const int64_t size : {0, 1, 7, 100}) {
    int64_t at = 0;
    for (int64_t part = 0; part < 9; ++part) {
      const Slice slice = slice_of(size, 9, part);
      CHECK(slice.begin == at && slice.size() >= size / 9 && slice.size() <= size / 9 + 1);
      at = slice.end;
    }
    CHECK(at == size);
  }

  // What a task throws reaches the caller, once, after all tasks have ended.
  int caught = 0;
  try {
    threads_of(4).for_each(8, [](int64_t task) {
      if (task % 2 == 1) throw std::bad_alloc();
    });
  } catch (const std::bad_alloc&) {
    ++caught;
  }
  CHECK(caught == 1);
  return report();
}
