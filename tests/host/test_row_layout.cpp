// Row layouts against the definition: every element of the tensor is visited once, in its own row and place, and the output is dense.
#include "../../csrc/plan/row_layout.h"

#include <random>
#include <set>

#include "check.h"

using namespace gpusort;

namespace {

using Sizes = std::vector<int64_t>;

Sizes contiguous(const Sizes& sizes) {
  Sizes strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

// Walks the tensor's elements by multi-index; row numbers of input and output must name the same multi-index.
void check_layout(const Sizes& sizes, const Sizes& strides, int64_t dim) {
  const RowLayout layout = make_row_layout(sizes, strides, dim);
  int64_t elements = 1;
  for (const int64_t size : sizes) elements *= size;
  CHECK(layout.input.rows * layout.input.length == elements);
  CHECK(layout.output.rows == layout.input.rows && layout.output.length == layout.input.length);
  CHECK(is_dense(sizes, layout.output_strides));
  if (elements == 0) return;

  std::multiset<std::pair<int64_t, int64_t>> expected, visited;  // (input offset, output offset) of each element
  std::set<int64_t> output_offsets;
  for (int64_t e = 0; e < elements; ++e) {
    int64_t rest = e, input = 0, output = 0;
    for (size_t i = sizes.size(); i-- > 0;) {
      input += rest % sizes[i] * strides[i];
      output += rest % sizes[i] * layout.output_strides[i];
      rest /= sizes[i];
    }
    expected.insert({input, output});
  }
  bool in_order = true;
  int64_t at = 0;
  for (int64_t r = 0; r < layout.input.rows; ++r) {
    for (int64_t i = 0; i < layout.input.length; ++i) {
      const int64_t output = layout.output.offset(r) + i * layout.output.length_stride;
      visited.insert({layout.input.offset(r) + i * layout.input.length_stride, output});
      output_offsets.insert(output);
      in_order = in_order && output == at++;
    }
  }
  CHECK(visited == expected);
  CHECK(static_cast<int64_t>(output_offsets.size()) == elements && *output_offsets.rbegin() == elements - 1);
  CHECK(layout.output.contiguous() == in_order);
}

}  // namespace

int main() {
  // Known answers of at::infer_dense_strides and torch.sort.
  CHECK((infer_dense_strides({6, 5, 4, 3, 2}, {6, 0, 120, 0, 1}) == Sizes{6, 36, 180, 2, 1}));
  CHECK((output_strides_of({2, 3, 4, 5}, {60, 1, 15, 3}) == Sizes{60, 1, 15, 3}));
  CHECK((output_strides_of({3, 4}, {0, 1}) == Sizes{4, 1}));
  CHECK((output_strides_of({4, 3}, {1, 100}) == Sizes{1, 4}));
  CHECK((output_strides_of({0, 3}, {7, 9}) == Sizes{7, 9}));
  CHECK(output_strides_of({}, {}).empty());
  CHECK((output_strides_of({6}, {2}) == Sizes{1}));

  // No copy where `dim` is the fastest dim of a dense tensor, in any order of the others.
  CHECK(make_row_layout({4, 5, 6}, {30, 6, 1}, 2).input.contiguous());
  CHECK(make_row_layout({5, 4, 6}, {6, 30, 1}, 2).input.contiguous());
  CHECK(make_row_layout({2, 3, 4, 5}, {60, 1, 15, 3}, 1).output.contiguous());
  CHECK(make_row_layout({4, 6}, {1, 4}, 0).input.contiguous());
  CHECK(!make_row_layout({4, 6}, {6, 1}, 0).input.contiguous());
  CHECK(make_row_layout({}, {}, 0).input.contiguous());
  CHECK(make_row_layout({1, 7, 1}, {3, 1, 99}, 1).input.contiguous());

  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const int dims = 1 + static_cast<int>(random() % 4);
    Sizes sizes(dims), strides(dims);
    for (auto& size : sizes) size = static_cast<int64_t>(random() % (round % 10 == 0 ? 4 : 5)) + (round % 10 == 0 ? 0 : 1);
    // Dense in a random order, then gaps or zero strides in some.
    std::vector<int> order(dims);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    int64_t stride = 1;
    for (const int i : order) {
      if (round % 3 == 1) stride += static_cast<int64_t>(random() % 3);
      strides[i] = round % 4 == 2 && random() % 3 == 0 ? 0 : stride;
      stride *= std::max<int64_t>(sizes[i], 1);
    }
    for (int dim = 0; dim < dims; ++dim) check_layout(sizes, strides, dim);
  }

  // More dims than kMaxRowDims are fine when they are of size 1 or step evenly; only what cannot be collapsed is refused.
  CHECK(make_row_layout(Sizes(64, 1), Sizes(64, 1), 5).input.dims == 0);
  CHECK(make_row_layout(Sizes(62, 2), contiguous(Sizes(62, 2)), 61).input.dims == 1);
  Sizes uneven(45);
  for (size_t i = 0; i < uneven.size(); ++i) uneven[i] = i % 2 ? 1 : 3;
  bool refused = false;
  try {
    make_row_layout(Sizes(45, 2), uneven, 0);
  } catch (const std::runtime_error&) {
    refused = true;
  }
  CHECK(refused);
  return report();
}
