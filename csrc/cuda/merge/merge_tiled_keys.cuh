// M4 for keys alone: the tiled merge of merge_tiled.cuh, in place and without a pass over the keys before it (merge_plain.cuh).
#pragma once

#include "async_copy.cuh"
#include "loose_piece.cuh"
#include "merge_runs.cuh"
#include "merge_tiled.cuh"

namespace gpusort {

// Copies a span's words into shared memory; those that are not whole are put together from their valid elements and sentinels. A warp asks
// for whole lines of 128 bytes (H200, tiles of 2 x 2^26 float32: 273.0 to 270.8 us).
template <int kThreads, class U>
__device__ void load_span(const KeySpan<U>& span, uint4* destination, U sentinel) {
  if (span.all_whole()) {
    constexpr int kLine = 128 / 16;
    const int place_in_line = static_cast<int>(reinterpret_cast<uintptr_t>(span.words) / 16 % kLine);
#pragma unroll 4
    for (int word = static_cast<int>(threadIdx.x) - place_in_line; word < span.count; word += kThreads) {
      if (word >= 0) copy_word_async(destination + word, span.words + word);
    }
    return;
  }
#pragma unroll 1
  for (int word = threadIdx.x; word < span.count; word += kThreads) {
    if (span.is_whole(word)) {
      copy_word_async(destination + word, span.words + word);
    } else {
      destination[word] = span.load_or(word, sentinel).vector;
    }
  }
}

// kCuts: cuts are in memory, but for those that the first blocks find for themselves. Two kernels, since code that is not needed slows down
// what is: H200, 2 x 2^26 int16 159.7 us with both in one, 157.8 in two.
template <class U, int kThreads, int kItems, int kBlocks, bool kCuts>
__global__ void __launch_bounds__(kThreads, kBlocks) merge_tiled_keys_kernel(const __grid_constant__ MergeArguments<U> m) {
  using Tile = PlainTile<U, kThreads, kItems>;
  extern __shared__ uint4 shared_words[];
  __shared__ LoosePieceSearch search;
  __shared__ uint32_t begins[kThreads / 32];
  __shared__ TileOrder shared_order;
  const MergeKeys<U> keys(m.order);
  const U sentinel = keys.decode(MergeKeys<U>::kSentinel);

  const bool own = kCuts && blockIdx.x < m.own_pieces;  // without the cuts that the predecessor finds
  if (!own) wait_for_predecessor();
  let_successor_start();
  const int64_t tiles = m.rows * m.pieces_per_row;
  for (int64_t work = blockIdx.x; work < tiles; work += gridDim.x) {
    const int64_t row = work / m.pieces_per_row;
    const LoosePiece loose = find_loose_piece<kThreads, kCuts>(m, row, work - row * m.pieces_per_row, search);
    const MergeRange<int64_t> range = loose.range();
    const TileInputs<U> inputs(m, row, range);
    PlainWindow window = plain_window<Tile>(inputs.a, inputs.a_length, inputs.a_behind, inputs.b, inputs.b_length, inputs.b_behind);
    const TileEnds<U> ends = inputs.ends(m, row, range);
    const U end = threadIdx.x < 32 ? ends.template load<kCuts>() : U{0};  // on its way with the tile
    uint4* const gap = shared_words + Tile::kFrontWords + inputs.a.count;
    load_span<kThreads>(inputs.a, shared_words + Tile::kFrontWords, sentinel);
    load_span<kThreads>(inputs.b, gap + Tile::kGapWords, sentinel);
    if (inputs.a_behind == 0 && threadIdx.x < Tile::kGapWords) gap[threadIdx.x] = word_of(sentinel).vector;
    if (threadIdx.x < 32) {
      const TileOrder order = ends.order(keys, end, true);
      if (threadIdx.x == 0) shared_order = order;
    }
    wait_for_copies();
    __syncthreads();
    window.order = shared_order;
    if constexpr (Tile::kLoose && kCuts) settle_ends(reinterpret_cast<const U*>(shared_words), window, loose, search, m.order);
    window.order = settle_order<kThreads>(shared_words, window, keys);

    if constexpr (sizeof(U) <= 2) {
      const int in_front = part_in_front<U>(shared_words, window);
      if (in_front != 0) {
        store_in_sequence<kThreads>(shared_words, keys, window, in_front > 0, m.keys_out + row * m.row_outputs() + loose.bounds.rank_low);
        continue;
      }
    }
    U* const elements = reinterpret_cast<U*>(shared_words);
    HeadsOfA mine;
    if (window.order == TileOrder::kSpecial) {
      // Apart from the others up to its end, so that no registers are kept for outputs beside it.
      const SplitBounds<int64_t> piece = search.exact.bounds;
      U* const destination = m.keys_out + row * m.row_outputs() + piece.rank_low;
      mine = merge_special_tile<kItems>(elements, keys, window, destination);
      if (threadIdx.x % 32 == 0) begins[threadIdx.x / 32] = mine.begin;
      __syncthreads();
      if (__syncthreads_or(contradicts<kThreads>(mine, elements, window, begins))) {
        const MergeRange<int64_t> inputs_again = piece.range();
        fill_from_inputs<kThreads>(m.a_row(row) + inputs_again.a_begin, window.a_length, m.b_row(row) + inputs_again.b_begin,
                                   window.b_length, destination);
      }
      continue;
    }
    const bool encoded = window.order == TileOrder::kEncoded;
    const U behind = encoded ? MergeKeys<U>::kSentinel : sentinel;
    ThreadKeys<U, kItems> outputs;
    if constexpr (kCopiesRuns<U, kItems>) {
      mine = merge_tile_of_runs<kThreads>(shared_words, window, behind, outputs, begins);
    } else {
      mine = merge_plain_tile<kThreads>(shared_words, window, behind, outputs);
      if (threadIdx.x % 32 == 0) begins[threadIdx.x / 32] = mine.begin;
    }
    __syncthreads();  // the inputs have been read
    outputs.template put<kThreads>(elements, keys, encoded);
    const bool contradictory = __syncthreads_or(contradicts<kThreads>(mine, elements, window, begins));
    const SplitBounds<int64_t> piece = search.exact.bounds;  // again, so that no registers hold it meanwhile
    U* const destination = m.keys_out + row * m.row_outputs() + piece.rank_low;
    if (contradictory) {
      const MergeRange<int64_t> inputs_again = piece.range();
      fill_from_inputs<kThreads>(m.a_row(row) + inputs_again.a_begin, window.a_length, m.b_row(row) + inputs_again.b_begin, window.b_length,
                                 destination);
    } else {
      TileOutputs<U, kThreads, kItems>::store(elements, destination, window.outputs());
    }
  }
  if (own) wait_for_predecessor();  // so that it has ended when this kernel has
}

}  // namespace gpusort
