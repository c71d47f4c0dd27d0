// Sorts a row by a cluster of blocks: each sorts its part of the row on chip, tells its codes to all others, and finds how many of theirs
// come before each of its own. For a few rows, which would leave most of the GPU idle, one block each.
//
// A thread holds one word. Its rank is its place in its own part plus, for every other part, how many codes of that come before it: one
// bisection each, all of them independent of each other. A part that begins earlier in the row goes first where codes are equal, so the
// sort is stable; places beyond the row have the last code there is, which is counted only where it may be a key's, and there by the part's
// length. Results go from registers to their places; there is no merge. The parts travel through distributed shared memory, so the blocks
// meet twice, at barriers of the cluster, and wait for global memory only for the keys. Needs compute capability 9.0.
#pragma once

#include <cstdint>
#include <type_traits>

#include "../grid_sort/exact_words.cuh"
#include "../grid_sort/packed_words.cuh"
#include "../primitives/cluster.cuh"
#include "../primitives/dependent_launch.cuh"
#include "row_arguments.h"

namespace gpusort {

// How many of kCodes sorted codes are below `limit`.
template <int kCodes, class Code>
__device__ __forceinline__ int codes_below(const Code* codes, Code limit) {
  int below = 0;
#pragma unroll
  for (int step = kCodes / 2; step > 0; step /= 2) below += codes[below + step - 1] < limit ? step : 0;
  return below + (codes[below] < limit ? 1 : 0);
}

template <class U, int kThreads>
__global__ void __launch_bounds__(kThreads) cluster_rows_kernel(const __grid_constant__ RowArguments<U> arguments) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  start_after_predecessor();
  constexpr bool kWide = sizeof(U) == 8;
  using Word = std::conditional_t<kWide, WideWord, uint64_t>;
  using Traits = WordTraits<Word>;
  using Code = typename Traits::Code;
  using PartWords = std::conditional_t<kWide, PackedWords<Word>, ExactWords>;
  constexpr int kBlocks = kRowClusterBlocks;
  extern __shared__ uint4 shared_memory[];
  __shared__ typename PartWords::Notes notes;
  Code* parts = reinterpret_cast<Code*>(shared_memory);  // [kBlocks][kThreads], but for the block's own
  const PartWords part_words(reinterpret_cast<char*>(parts + kBlocks * kThreads), kThreads);

  arrive_at_cluster_barrier();
  const int thread = static_cast<int>(threadIdx.x), part = block_in_cluster();
  const int part_length = row_part_length(arguments.length);
  const auto length_of_part = [&](int number) { return min(part_length, arguments.length - number * part_length); };
  const int first = part * part_length, count = length_of_part(part);
  const int64_t row_offset = static_cast<int64_t>(blockIdx.x / kBlocks) * arguments.length;
  const U* row_keys = arguments.keys_in + row_offset;
  Word own[1] = {Traits::make(arguments.order.code(row_keys[first + min(thread, count - 1)]), static_cast<uint32_t>(first + thread))};
  part_words.template sort<kThreads>(notes, own, count);
  const Word word = part_words.template word_of_rank<kThreads>(thread);
  const bool real = thread < count;
  const Code code = real ? Traits::code(word) : static_cast<Code>(~uint64_t{0});

  wait_at_cluster_barrier();  // all blocks run, and have shared memory
#pragma unroll
  for (int other = 1; other < kBlocks; ++other) {
    store_in_block(address_in_block(parts + part * kThreads + thread, (part + other) % kBlocks), code);
  }
  arrive_at_cluster_barrier();
  const uint32_t index = Traits::index(word);
  const U key = real ? row_keys[index] : U{0};
  wait_at_cluster_barrier();
  int rank = thread;
#pragma unroll
  for (int other = 1; other < kBlocks; ++other) {
    const int from = (part + other) % kBlocks;
    const bool earlier = from < part;
    const Code limit = code + (earlier ? 1 : 0);  // the codes below it come before
    const int below = codes_below<kThreads>(parts + from * kThreads, limit);
    rank += earlier && limit == 0 ? length_of_part(from) : below;
  }
  if (!real) return;
  const int64_t to = row_offset + rank;
  if (arguments.indices_wide) arguments.indices_wide[to] = index;
  if (arguments.indices_narrow) arguments.indices_narrow[to] = static_cast<int32_t>(index);
  if (arguments.indices_short) arguments.indices_short[to] = static_cast<uint16_t>(index);
  if (arguments.keys_out) arguments.keys_out[to] = key;
#endif
}

}  // namespace gpusort
