// See move_tables.h. One thread per word; 8 bytes each are written, since the lower halves are free as well.
#include "move_tables.h"

#include <cuda_runtime.h>

#include "../primitives/dependent_launch.cuh"
#include "borrowed_indices.cuh"
#include "radix_control.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 512;

struct TableMove {
  const uint32_t* control;
  const uint32_t* bins;
  uint32_t bin_words;
  uint32_t words;  // of the control words, the bins and the cleared table
  uint2* target;
};

__global__ void __launch_bounds__(kThreads) move_tables_kernel(const __grid_constant__ TableMove move) {
  start_after_predecessor();
  const bool called_off = move.control[offsetof(RadixControl, called_off) / 4] != 0;  // then the last slot needs no more than to be told
  const uint32_t words = called_off ? kControlWords : move.words;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < words; i += gridDim.x * kThreads) {
    uint32_t word = 0;
    if (i < kControlWords)
      word = move.control[i];
    else if (i - kControlWords < move.bin_words)
      word = move.bins[i - kControlWords];
    move.target[i] = make_uint2(0, word);
  }
}

}  // namespace

template <class Key>
cudaError_t launch_move_tables(PassArguments<Key>& arguments, const RadixPlan& plan, cudaStream_t stream) {
  uint2* target = static_cast<uint2*>(arguments.indices_out) + plan.borrowed_begin;
  const uint32_t bin_words = arguments.rows * static_cast<uint32_t>(plan.passes) * kRadixBins;
  const uint32_t words = static_cast<uint32_t>(plan.last_table_words(arguments.rows));
  const uint32_t* control = reinterpret_cast<const uint32_t*>(arguments.control);
  const TableMove move = {control, arguments.bins, bin_words, words, target};
  const LaunchShape shape = {static_cast<unsigned>(plan.grid[0]) * 4, kThreads, 0, arguments.dependent_launch()};
  const cudaError_t error = launch_after_predecessor<move_tables_kernel>(move, shape, stream);
  uint32_t* upper_halves = reinterpret_cast<uint32_t*>(target) + 1;
  arguments.borrowed_begin = static_cast<uint64_t>(plan.borrowed_begin);
  arguments.spacing = 2;
  arguments.control = reinterpret_cast<RadixControl*>(upper_halves);
  arguments.bins = upper_halves + 2 * kControlWords;
  arguments.look_back[0] = arguments.look_back[1] = upper_halves + 2 * (kControlWords + bin_words);
  return error;
}

template cudaError_t launch_move_tables(PassArguments<uint32_t>&, const RadixPlan&, cudaStream_t);
template cudaError_t launch_move_tables(PassArguments<uint64_t>&, const RadixPlan&, cudaStream_t);

}  // namespace gpusort
