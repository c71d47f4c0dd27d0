// torch.ops.gpusort._explain_sort(): what a sort on a GPU is going to do (plan/explain_sort.h), as JSON. It needs no GPU and no data:
// shape, strides and dtype of the input, the options of the call, and what the planner knows of the device.
//
// The text is returned as numbers of eight bytes each, zeros behind it: a string that an op returns is never freed (torch 2.11).
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "../plan/explain_sort.h"
#include "../plan/row_layout.h"
#include "sort_ops.h"

namespace gpusort::ops {
namespace {

// The order of `traits` in the schema.
DeviceTraits traits_of(const std::vector<int64_t>& traits) {
  check(traits.size() == 6, PythonError::kValue, "traits has ", traits.size(), " numbers; it must have 6");
  const int64_t most[6] = {(1 << 16) - 1, 1 << 24, 1 << 24, INT32_MAX, 1 << 16, 1 << 16};  // products in a plan have room to spare
  for (size_t i = 0; i < 6; ++i) {
    const bool possible = traits[i] >= (i < 3 ? 1 : 0) && traits[i] <= most[i];
    check(possible, PythonError::kValue, "traits are ", shape_text(traits), "; multiprocessors must be 1 to 65535, shared memory 1 to 2^24",
          " bytes, L2 cache 0 to 2^31 - 1, compute capability 0 to 65536");
  }
  return {static_cast<int>(traits[0]), traits[1], traits[2], traits[3], static_cast<int>(traits[4]), static_cast<int>(traits[5])};
}

ExplainedStep copy_step(const char* name, int64_t bytes) {
  ExplainedStep step;
  step.name = name;
  step.bytes_read = bytes;
  step.bytes_written = bytes;
  return step;
}

// Complex keys are sorted by their code words, least significant first, and the values fetched by position: see sort_packed_complex.
SortExplanation explain_complex(SortProblem problem, int words, SortAlgorithm algorithm, const DeviceTraits& traits) {
  const int64_t numel = problem.numel(), positions = numel * problem.index_bytes;
  const bool want_values = problem.keys_out != nullptr, want_indices = problem.indices_out != nullptr;
  char there = 0;
  problem.keys_out = nullptr;
  problem.indices_out = &there;
  const SortExplanation by_word = explain_sort(problem, algorithm, traits);
  SortExplanation result = by_word;
  result.steps = {copy_step("encode complex keys", numel * 8 * words)};
  result.steps.insert(result.steps.end(), by_word.steps.begin(), by_word.steps.end());
  result.workspace_bytes += numel * 8 * words + positions;
  if (words == 2) {  // when positions are composed, the workspace of the sorts is free again
    result.steps.push_back(copy_step("reorder the high words", numel * 8));
    result.steps.insert(result.steps.end(), by_word.steps.begin(), by_word.steps.end());
    result.steps.push_back(copy_step("compose positions", positions));
    result.workspace_bytes += numel * 8 + positions + std::max<int64_t>(positions - by_word.workspace_bytes, 0);
  }
  if (want_values) result.steps.push_back(copy_step("fetch values by position", numel * 8 * words));
  if (want_indices) result.steps.push_back(copy_step("copy positions", positions));
  return result;
}

// Of the input. Every number of a plan then fits 64 bits: none moves more than 18,000 bytes for an element.
constexpr int64_t kMostElements = int64_t{1} << 48;

void check_size(const std::vector<int64_t>& sizes) {
  int64_t numel = 1;
  for (const int64_t size : sizes) {
    if (size == 0) return;
  }
  for (const int64_t size : sizes) {
    check(size <= kMostElements / numel, PythonError::kValue, "input has shape ", shape_text(sizes),
          "; a plan takes 2^48 elements at most");
    numel *= size;
  }
}

SortExplanation explain_request(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, ScalarType dtype,
                                const SortRequest& request, const DeviceTraits& traits) {
  const bool complex = is_complex(dtype);
  const int words = dtype == ScalarType::ComplexDouble ? 2 : 1;
  const int64_t dim = wrap_dim(request.dim, static_cast<int64_t>(sizes.size()));
  const RowLayout layout = make_row_layout(sizes, strides, dim);
  SortProblem problem;
  problem.key = complex ? KeyType{8, KeyKind::kUnsigned, 0} : key_type_of(dtype, "input");
  problem.descending = request.descending;
  problem.begin_bit = static_cast<int>(request.begin_bit);
  problem.end_bit = static_cast<int>(request.end_bit.value_or(problem.key.bytes * 8));
  problem.rows = layout.input.rows;
  problem.length = layout.input.length;
  problem.index_bytes = index_bytes_of(request.index_dtype, problem.length);
  char there = 0;  // only whether a result is wanted counts
  if (request.want_values) problem.keys_out = &there;
  if (request.want_indices) problem.indices_out = &there;

  const int64_t numel = problem.numel(), result_index_bytes = problem.index_bytes;
  const bool turned = !layout.output.contiguous();
  if (turned && !complex && request.want_indices) problem.index_bytes = packed_index_bytes(problem, request.algorithm, traits);

  SortExplanation result = complex && numel > 0 ? explain_complex(problem, words, request.algorithm, traits)
                                                : explain_sort(problem, request.algorithm, traits, request.digit_bits);
  const int64_t value_bytes = numel * problem.key.bytes * words;
  if (!layout.input.contiguous()) {
    result.steps.insert(result.steps.begin(), copy_step("gather rows", value_bytes));
    result.workspace_bytes += value_bytes;
  }
  if (turned) {
    ExplainedStep step = copy_step("scatter rows to their places", request.want_values ? value_bytes : 0);
    if (request.want_indices) {
      step.bytes_read += numel * problem.index_bytes;
      step.bytes_written += numel * result_index_bytes;
    }
    result.workspace_bytes += step.bytes_read;
    result.steps.push_back(step);
  }
  return result;
}

// Names and notes are this project's own: letters, digits, quotes of one kind. Nothing in them has to be escaped.
std::string json_of(const SortExplanation& explanation) {
  std::ostringstream text;
  text << "{\"algorithm\": \"" << explanation.algorithm << "\", \"note\": \"" << explanation.note
       << "\", \"workspace_bytes\": " << explanation.workspace_bytes << ", \"bytes_moved\": " << explanation.bytes_moved()
       << ", \"steps\": [";
  const char* separator = "";
  for (const ExplainedStep& step : explanation.steps) {
    text << separator << "{\"name\": \"" << step.name << "\", \"blocks\": " << step.blocks << ", \"threads\": " << step.threads
         << ", \"tile\": " << step.tile << ", \"shared_bytes\": " << step.shared_bytes << ", \"bytes_read\": " << step.bytes_read
         << ", \"bytes_written\": " << step.bytes_written << "}";
    separator = ", ";
  }
  text << "]}";
  return text.str();
}

std::vector<int64_t> words_of(const std::string& text) {
  std::vector<int64_t> words((text.size() + 7) / 8);
  if (!text.empty()) std::memcpy(words.data(), text.data(), text.size());
  return words;
}

// What is given of the options that only a radix sort has; empty: nothing.
std::string radix_options_text(const std::string& kernel, std::optional<int64_t> digit_bits, int64_t begin_bit,
                               std::optional<int64_t> end_bit) {
  if (kernel != "auto") return "kernel is '" + kernel + "'";
  if (digit_bits) return "digit_bits is " + std::to_string(*digit_bits);
  if (begin_bit != 0) return "begin_bit is " + std::to_string(begin_bit);
  return end_bit ? "end_bit is " + std::to_string(*end_bit) : "";
}

std::vector<int64_t> explain_sort_op(std::vector<int64_t> sizes, std::vector<int64_t> strides, ScalarType dtype, int64_t dim,
                                     bool descending, std::optional<ScalarType> index_dtype, StringHandle algorithm_name,
                                     StringHandle kernel_name, std::optional<int64_t> digit_bits, int64_t begin_bit,
                                     std::optional<int64_t> end_bit, bool values, bool indices, std::vector<int64_t> traits) {
  SortRequest request;
  const std::string algorithm = take_string(algorithm_name), kernel = take_string(kernel_name);
  request.algorithm = checked_sort_algorithm(algorithm);
  check(sizes.size() == strides.size(), PythonError::kValue, "sizes has ", sizes.size(), " numbers and strides ", strides.size());
  check_size(sizes);
  check(values || indices, PythonError::kValue, "values and indices are both False; one of them must be wanted");
  request.dim = dim;
  request.descending = descending;
  request.want_values = values;
  request.want_indices = indices;
  request.index_dtype = index_dtype;
  const std::string radix_options = radix_options_text(kernel, digit_bits, begin_bit, end_bit);
  if (!radix_options.empty()) {
    checked_radix_kernel(kernel, digit_bits);
    check(request.algorithm == SortAlgorithm::kRadix, PythonError::kValue, radix_options, " and algorithm is '", algorithm,
          "'; kernel, digit_bits, begin_bit and end_bit are allowed with algorithm 'radix' alone");
    set_radix_options(request, dtype, kernel, digit_bits, begin_bit, end_bit);
  }
  return words_of(json_of(explain_request(sizes, strides, dtype, request, traits_of(traits))));
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CompositeExplicitAutograd, m) {
  m.impl("_explain_sort", TORCH_BOX(&gpusort::ops::explain_sort_op));
}
