// See half_sort.h.
#include "half_sort.h"

#include <cuda_runtime.h>

#include "half_arguments.h"

namespace gpusort {
namespace {

static_assert(sizeof(HalfControl) <= kHalfControlBytes, "the plan reserves less");

// What fills a ragged tile. Pads of the partition by the low byte come last where the byte is 255: some code ends in it, in every order.
void choose_pads(const KeyOrder<uint16_t>& order, HalfArguments& arguments) {
  const KeyCodec<uint16_t>& codec = arguments.codec;
  constexpr uint32_t kMiddle = 0x80ff;  // a number, whichever the order
  arguments.pad[0] = codec.bits(kMiddle);
  const bool numbers_alone = order.zero == 0;
  const uint32_t largest = numbers_alone ? 0xffff : order.complement != 0 ? 0xfffe : order.clamp;
  arguments.pad[1] = codec.bits(largest);
}

}  // namespace

cudaError_t launch_half_sort(const SortProblem& problem, const HalfSortPlan& plan, void* workspace, cudaStream_t stream) {
  auto words = [&](int64_t offset) { return reinterpret_cast<uint32_t*>(static_cast<char*>(workspace) + offset); };
  const KeyOrder<uint16_t> order = problem.key.order<uint16_t>(problem.descending);
  HalfArguments arguments;
  arguments.codec = make_key_codec(order);
  choose_pads(order, arguments);
  arguments.keys_in = static_cast<const uint16_t*>(problem.keys_in);
  arguments.keys_out = static_cast<uint16_t*>(problem.keys_out);
  arguments.indices_out = problem.indices_out;
  arguments.index_bytes = problem.index_bytes;
  arguments.called_off = problem.called_off;
  arguments.low_keys = reinterpret_cast<uint16_t*>(words(plan.keys_offset));
  arguments.low_indices = words(plan.indices_offset);
  arguments.control = reinterpret_cast<HalfControl*>(words(0));
  arguments.bins = words(plan.bins_offset);
  arguments.patterns = words(plan.patterns_offset);
  for (int pass = 0; pass < 2; ++pass) arguments.look_back[pass] = words(plan.look_back_offset[pass]);
  arguments.length = static_cast<uint32_t>(problem.length);
  arguments.grid_counts = reinterpret_cast<uint16_t*>(words(plan.grid_counts_offset));
  arguments.grid_unsorted = words(plan.grid_unsorted_offset);
  if (plan.grid.threads != 0) return launch_half_grid(arguments, plan.grid, plan.first_grid, stream);
  for (int step = 0; step < 3; ++step) arguments.tiles[step] = static_cast<uint32_t>(plan.tiles[step]);
  const int64_t look_back_bytes = plan.look_back_offset[1] - plan.look_back_offset[0];
  arguments.look_back_vectors = static_cast<uint64_t>(look_back_bytes + plan.tiles[static_cast<int>(HalfStep::kHigh)] * kHalfBins * 4) / 16;
  cudaError_t error = launch_half_histogram(arguments, plan.cleared_bytes, plan.histogram_grid, stream);
  if (error == cudaSuccess) error = launch_half_first(arguments, plan.keeps_ranks, plan.first_grid, stream);
  if (error == cudaSuccess) error = launch_half_last(arguments, plan.last_threads, plan.last_grid, stream);
  return error;
}

}  // namespace gpusort
