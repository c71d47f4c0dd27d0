// M4, the tiled merge: a block takes a tile of the output, finds its two input ranges, loads them into shared memory in 16-byte words, and
// merges there (merge_block.cuh). Global traffic is one read and one write of the data. Source: Green, McColl and Bader (2012);
// Kirk, Hwu and El Hajj, "Programming Massively Parallel Processors", chapter on merge.
#pragma once

#include "key_span.cuh"
#include "merge_block.cuh"
#include "merge_companions.cuh"
#include "merge_cuts.cuh"
#include "merge_plain.cuh"

namespace gpusort {

template <class U, int kThreads, int kItems>
struct TiledMerge {
  static constexpr int kWord = KeyWord<U>::kCount;
  static constexpr int kTile = kThreads * kItems;
  static constexpr int kWords = kTile / kWord + 4;    // both parts, each with a ragged word at either end and one element behind
  static constexpr int kBehind = kItems / kWord + 2;  // words that unsorted inputs may make a thread run into
  static constexpr int kLoads = (kWords + kThreads - 1) / kThreads;
  static constexpr size_t kInputBytes = static_cast<size_t>(kWords + kBehind) * 16;

  static constexpr size_t kSharedBytes = kInputBytes + TileOutputs<U, kThreads, kItems>::kBytes + kTile * sizeof(uint16_t);
};

// Loads the words of both spans, one behind the other, and turns them into merge keys.
template <int kThreads, int kLoads, class U>
__device__ void load_tile(const KeySpan<U>& a, const KeySpan<U>& b, const MergeKeys<U>& keys, uint4* shared_words) {
  const int words = a.count + b.count;
  const uint4* const b_words = b.words - a.count;
  if (a.all_whole() && b.all_whole()) {
    KeyWord<U> loaded[kLoads];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int word = load * kThreads + threadIdx.x;
      if (word < words) loaded[load].vector = __ldg((word < a.count ? a.words : b_words) + word);
    }
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int word = load * kThreads + threadIdx.x;
      loaded[load].encode(keys);
      if (word < words) shared_words[word] = loaded[load].vector;
    }
    return;
  }
  const auto load_span = [&](const KeySpan<U>& span, uint4* destination) {
#pragma unroll 1
    for (int word = threadIdx.x; word < span.count; word += kThreads) {
      KeyWord<U> loaded;
      if (span.is_whole(word)) {
        loaded.vector = __ldg(span.words + word);
        loaded.encode(keys);
      } else {
        loaded = span.load_ragged(word);
        span.encode_ragged(word, loaded, keys);
      }
      destination[word] = loaded.vector;
    }
  };
  load_span(a, shared_words);
  load_span(b, shared_words + a.count);
}

// Looks at every key in shared memory. True if the calling thread met special ones.
template <int kThreads, class U>
__device__ bool find_special_keys(const U* elements, int length, const MergeKeys<U>& keys) {
  bool special = false;
#pragma unroll 1
  for (int place = threadIdx.x; place < length; place += kThreads) special = special || keys.is_special(elements[place]);
  return special;
}

// Keys with positions. (Keys alone: merge_tiled_keys_kernel.)
template <class U, int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads) merge_tiled_kernel(const __grid_constant__ MergeArguments<U> m) {
  using Shape = TiledMerge<U, kThreads, kItems>;
  extern __shared__ uint4 shared_words[];
  U* const outputs = reinterpret_cast<U*>(reinterpret_cast<char*>(shared_words) + Shape::kInputBytes);
  uint16_t* const positions = reinterpret_cast<uint16_t*>(reinterpret_cast<char*>(outputs) + TileOutputs<U, kThreads, kItems>::kBytes);
  __shared__ PieceSearch search;
  __shared__ TileSplits<kThreads> splits;
  const MergeKeys<U> keys(m.order);

  start_after_predecessor();
  const int64_t tiles = m.rows * m.pieces_per_row;
  for (int64_t work = blockIdx.x; work < tiles; work += gridDim.x) {
    const int64_t row = work / m.pieces_per_row;
    const SplitBounds<int64_t> bounds = find_piece<kThreads>(m, row, work - row * m.pieces_per_row, search);
    const MergeRange<int64_t> range = bounds.range();
    const TileInputs<U> inputs(m, row, range);
    const KeySpan<U>&a = inputs.a, &b = inputs.b;
    const TileEnds<U> ends = inputs.ends(m, row, range);
    const U end = threadIdx.x < 32 ? ends.template load<false>() : U{0};  // on its way with the tile
    load_tile<kThreads, Shape::kLoads>(a, b, keys, shared_words);

    const U* const elements = reinterpret_cast<const U*>(shared_words);
    TileWindow window{a.offset, inputs.a_length, a.count * Shape::kWord + b.offset, inputs.b_length, inputs.a_length + inputs.b_length,
                      false};
    if (__syncthreads_or(threadIdx.x < 32 && ends.order(keys, end, false) == TileOrder::kUnknown)) {
      const bool a_special = find_special_keys<kThreads>(elements + window.a_begin, ends.a_length, keys);
      const bool b_special = find_special_keys<kThreads>(elements + window.b_begin, ends.b_length, keys);
      window.special = __syncthreads_or(a_special || b_special);
    }
    merge_tile<kThreads, kItems, true, 0>(elements, keys, window, outputs, positions, splits);
    TileOutputs<U, kThreads, kItems>::store(outputs, m.keys_out + row * m.row_outputs() + bounds.rank_low, window.outputs);
    store_companions<kThreads>(m, row, range.a_begin, range.b_begin, bounds.rank_low, positions, window.outputs);
  }
}

}  // namespace gpusort
