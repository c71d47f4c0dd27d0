// core/key_columns.h: the words of random columns order as the columns do, and hold nothing else. plan/lexsort_plan.h: slices of the
// workspace do not overlap, and shapes take the way that the plan promises.
#include "../../csrc/core/key_columns.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "../../csrc/plan/lexsort_plan.h"
#include "check.h"

using namespace gpusort;

namespace {

constexpr int kElements = 200;

// A column of small or wide integers, signed or not, up or down; `values` are what it holds as numbers.
struct TestColumn {
  std::vector<uint64_t> bits;  // of the key, one entry an element
  std::vector<uint8_t> memory;
  KeyColumn column;
  bool is_signed = false, descending = false;
};

template <class U>
void fill(TestColumn& test, std::mt19937_64& random, uint64_t values) {
  test.memory.resize(kElements * 2 * sizeof(U));
  test.bits.resize(kElements);
  const int64_t stride = random() % 2 + 1;
  for (int i = 0; i < kElements; ++i) {
    const U key = static_cast<U>(values == 0 ? random() : random() % values - values / 2);
    reinterpret_cast<U*>(test.memory.data())[i * stride] = key;
    test.bits[i] = key;
  }
  const KeyOrder<U> order = make_key_order<U>(test.is_signed ? KeyKind::kSigned : KeyKind::kUnsigned, test.descending);
  test.column.order.positive_flip = order.positive_flip;
  test.column.order.negative_flip = order.negative_flip;
  test.column.order.clamp = order.clamp;
  test.column.order.complement = order.complement;
  test.column.bytes = sizeof(U);
  test.column.stride = stride;
}

TestColumn make_column(std::mt19937_64& random) {
  TestColumn test;
  test.is_signed = random() % 2 == 0;
  test.descending = random() % 2 == 0;
  const uint64_t values = random() % 2 == 0 ? 3 : 0;
  switch (random() % 4) {
    case 0: fill<uint8_t>(test, random, values); break;
    case 1: fill<uint16_t>(test, random, values); break;
    case 2: fill<uint32_t>(test, random, values); break;
    default: fill<uint64_t>(test, random, values);
  }
  return test;
}

// -1, 0, 1.
int compare(const TestColumn& test, int a, int b) {
  const int shift = 64 - 8 * test.column.bytes;
  uint64_t x = test.bits[a] << shift, y = test.bits[b] << shift;
  if (test.is_signed) {
    x ^= uint64_t{1} << 63;
    y ^= uint64_t{1} << 63;
  }
  if (x == y) return 0;
  return (x < y) != test.descending ? -1 : 1;
}

int sign(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  return a == b ? 0 : a < b ? -1 : 1;
}

void check_words(std::mt19937_64& random) {
  std::vector<TestColumn> tests(1 + random() % kMaxKeyColumns);
  KeyColumns columns;
  int64_t bits = 0;
  for (TestColumn& test : tests) {
    test = make_column(random);
    test.column.data = test.memory.data();
    columns.column[columns.period++] = test.column;
    bits += test.column.bits();
  }
  columns.count = columns.period;
  CHECK(columns.bits() == bits && columns.words() == (bits + 63) / 64);

  // As the ranges narrow them.
  std::vector<uint64_t> smallest(tests.size(), ~uint64_t{0}), largest(tests.size(), 0);
  for (size_t c = 0; c < tests.size(); ++c) {
    for (int i = 0; i < kElements; ++i) {
      smallest[c] = std::min(smallest[c], columns.code(c, i));
      largest[c] = std::max(largest[c], columns.code(c, i));
    }
  }
  std::vector<std::vector<uint64_t>> words(kElements), narrowed(kElements);
  for (int i = 0; i < kElements; ++i) {
    for (int64_t word = 0; word < columns.words(); ++word) {
      int64_t first, begin;
      columns.find_word(word, &first, &begin);
      CHECK(begin <= word * 64 && begin + columns[first].bits() > word * 64);
      words[i].push_back(word_by_dtype(columns, word, first, begin, i));
      uint64_t value = 0;
      int64_t at = 0;
      for (size_t c = 0; c < tests.size(); ++c) {
        int width = 0;
        while (width < 64 && (largest[c] - smallest[c]) >> width != 0) ++width;
        if (width > 0) value |= part_of_word(columns.code(c, i) - smallest[c], at, width, word);
        at += width;
      }
      narrowed[i].push_back(value);
    }
  }
  for (int i = 0; i < 2000; ++i) {
    const int a = static_cast<int>(random() % kElements), b = static_cast<int>(random() % kElements);
    int expected = 0;
    for (size_t c = 0; c < tests.size() && expected == 0; ++c) expected = compare(tests[c], a, b);
    CHECK(sign(words[a], words[b]) == expected);
    CHECK(sign(narrowed[a], narrowed[b]) == expected);
  }
}

// The columns of a matrix are one column, repeated.
void check_matrix(std::mt19937_64& random, int columns_of_matrix) {
  std::vector<uint16_t> matrix(kElements * columns_of_matrix);
  for (uint16_t& key : matrix) key = static_cast<uint16_t>(random());
  KeyColumns columns;
  columns.column[0].data = matrix.data();
  columns.column[0].bytes = 2;
  columns.column[0].stride = columns_of_matrix;
  columns.column[0].order.clamp = 0xffff;
  columns.period = 1;
  columns.count = columns_of_matrix;
  columns.repeat_bytes = 2;
  CHECK(columns.words() == (columns_of_matrix + 3) / 4);
  for (int i = 0; i < kElements; ++i) {
    for (int64_t word = 0; word < columns.words(); ++word) {
      int64_t first, begin;
      columns.find_word(word, &first, &begin);
      uint64_t expected = 0;
      for (int c = 0; c < 4; ++c) {
        const int64_t at = word * 4 + c;
        expected = expected << 16 | (at < columns_of_matrix ? matrix[i * columns_of_matrix + at] : 0);
      }
      CHECK(word_by_dtype(columns, word, first, begin, i) == expected);
    }
  }
}

void check_plan(int64_t rows, int64_t length, int columns, LexsortWay way) {
  LexsortProblem problem;
  problem.rows = rows;
  problem.length = length;
  for (int c = 0; c < columns; ++c) problem.columns.column[c].bytes = 8;
  problem.columns.period = columns;
  problem.columns.count = columns;
  const LexsortPlan plan = plan_lexsort(problem, DeviceTraits{});
  CHECK(plan.way == way && plan.words == columns);
  const int64_t numel = rows * length;
  std::vector<std::pair<int64_t, int64_t>> slices = {{plan.words_offset, numel * 8}, {plan.sorted_words_offset, numel * 8}};
  slices.push_back({plan.sort_offset, plan.word_sort.workspace_bytes});
  slices.push_back({plan.sort_offset, plan.lead_sort.workspace_bytes});
  if (plan.words > 1) {
    for (const int64_t offset : plan.order_offset) slices.push_back({offset, numel * plan.order_bytes});
  }
  if (way == LexsortWay::kLeading) {
    slices.push_back({plan.control_offset, static_cast<int64_t>(sizeof(LexsortControl) + columns * sizeof(ColumnEntry))});
    CHECK(plan.control_bytes == slices.back().second);
    CHECK(numel / kShortestListedRun * 8 + 8 <= numel * plan.order_bytes);  // the list of long runs
  }
  for (size_t i = 0; i < slices.size(); ++i) {
    CHECK(slices[i].first % 256 == 0 && slices[i].first + slices[i].second <= plan.workspace_bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool shared = slices[i].first == plan.sort_offset && slices[j].first == plan.sort_offset;
      CHECK(shared || slices[i].first >= slices[j].first + slices[j].second || slices[j].first >= slices[i].first + slices[i].second);
    }
  }
}

// What lexsort's docstring says of the memory, and that it says no more than is needed.
void check_memory(int columns, double up_to_2_18, double up_to_2_31) {
  LexsortProblem problem;
  for (int c = 0; c < columns; ++c) problem.columns.column[c].bytes = 8;
  problem.columns.period = columns;
  problem.columns.count = columns;
  double most[2] = {0, 0};
  for (int64_t length = 2048; length <= int64_t{1} << 31; length += length / 16) {
    problem.length = length;
    const double each = static_cast<double>(plan_lexsort(problem, DeviceTraits{}).workspace_bytes) / static_cast<double>(length);
    double& largest = most[length > int64_t{1} << 18];
    if (each > largest) largest = each;
  }
  CHECK(most[0] <= up_to_2_18 && most[0] > up_to_2_18 - 1);
  CHECK(most[1] <= up_to_2_31 && most[1] > up_to_2_31 - 1);
}

}  // namespace

int main() {
  std::mt19937_64 random(3);
  for (int repeat = 0; repeat < 60; ++repeat) check_words(random);
  for (const int columns : {1, 3, 4, 5, 64, 101}) check_matrix(random, columns);
  check_plan(1, 1000, 1, LexsortWay::kOneWord);
  check_plan(1, 1 << 24, 1, LexsortWay::kOneWord);
  check_plan(1, 1000, 3, LexsortWay::kChain);
  check_plan(100, 100000, 2, LexsortWay::kLeading);
  check_plan(1, 1 << 24, 2, LexsortWay::kLeading);
  check_plan(1, (1 << 24) + 5, 5, LexsortWay::kLeading);
  check_plan(1, (int64_t{1} << 31) + 1, 2, LexsortWay::kChain);
  check_memory(1, 33, 29);
  for (const int columns : {2, 3, 5}) check_memory(columns, 41, 37);
  return report();
}
