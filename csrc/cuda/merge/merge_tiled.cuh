// M4, the tiled merge: a block takes a tile of the output, finds its two input ranges, loads them into shared memory in 16-byte words, and
// merges there (merge_block.cuh). Global traffic is one read and one write of the data. Source: Green, McColl and Bader (2012);
// Kirk, Hwu and El Hajj, "Programming Massively Parallel Processors", chapter on merge.
#pragma once

#include "key_span.cuh"
#include "merge_block.cuh"
#include "merge_companions.cuh"
#include "merge_cuts.cuh"

namespace gpusort {

template <class U, int kThreads, int kItems>
struct TiledMerge {
  static constexpr int kWord = KeyWord<U>::kCount;
  static constexpr int kTile = kThreads * kItems;
  static constexpr int kWords = kTile / kWord + 4;    // both parts, each with a ragged word at either end and one element behind
  static constexpr int kBehind = kItems / kWord + 2;  // words that unsorted inputs may make a thread run into
  static constexpr int kLoads = (kWords + kThreads - 1) / kThreads;
  static constexpr size_t kInputBytes = static_cast<size_t>(kWords + kBehind) * 16;

  static constexpr size_t shared_bytes(bool positions) {
    return kInputBytes + TileOutputs<U, kThreads, kItems>::kBytes + (positions ? kTile * sizeof(uint16_t) : 0);
  }
};

// Loads the words of both spans, one behind the other, and turns them into merge keys. True if the calling thread met special keys.
template <int kThreads, int kLoads, class U>
__device__ bool load_tile(const KeySpan<U>& a, const KeySpan<U>& b, const MergeKeys<U>& keys, uint4* shared_words) {
  bool special = false;
  KeyWord<U> loaded[kLoads];
#pragma unroll
  for (int load = 0; load < kLoads; ++load) {
    const int word = load * kThreads + threadIdx.x;
    const bool from_b = word >= a.count;
    if (from_b ? b.is_whole(word - a.count) : a.is_whole(word)) {
      loaded[load].vector = __ldg((from_b ? b.words - a.count : a.words) + word);
    }
  }
#pragma unroll
  for (int load = 0; load < kLoads; ++load) {
    const int word = load * kThreads + threadIdx.x;
    if (word >= a.count ? b.is_whole(word - a.count) : a.is_whole(word)) {
      loaded[load].encode(keys, special);
      shared_words[word] = loaded[load].vector;
    }
  }
  const auto load_end = [&](const KeySpan<U>& span, int word, int first_word) {
    if (span.is_whole(word)) return;
    KeyWord<U> ragged = span.load_ragged(word);
    span.encode_ragged(word, ragged, keys, special);
    shared_words[first_word + word] = ragged.vector;
  };
  if (threadIdx.x == 0) load_end(a, 0, 0);
  if (threadIdx.x == 1) load_end(b, 0, a.count);
  if (threadIdx.x == 2 && a.count > 1) load_end(a, a.count - 1, 0);
  if (threadIdx.x == 3 && b.count > 1) load_end(b, b.count - 1, a.count);
  return special;
}

template <class U, int kThreads, int kItems, bool kPositions>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads) merge_tiled_kernel(const __grid_constant__ MergeArguments<U> m) {
  using Shape = TiledMerge<U, kThreads, kItems>;
  extern __shared__ uint4 shared_words[];
  U* const outputs = reinterpret_cast<U*>(reinterpret_cast<char*>(shared_words) + Shape::kInputBytes);
  uint16_t* const positions = reinterpret_cast<uint16_t*>(reinterpret_cast<char*>(outputs) + TileOutputs<U, kThreads, kItems>::kBytes);
  __shared__ PieceSearch search;
  __shared__ TileSplits<kThreads> splits;
  const MergeKeys<U> keys(m.order);

  const int64_t tiles = m.rows * m.pieces_per_row;
  for (int64_t work = blockIdx.x; work < tiles; work += gridDim.x) {
    const int64_t row = work / m.pieces_per_row;
    const SplitBounds<int64_t> bounds = find_piece<kThreads>(m, row, work - row * m.pieces_per_row, search);
    const MergeRange<int64_t> range = bounds.range();
    const int a_length = static_cast<int>(range.a_length()), b_length = static_cast<int>(range.b_length());

    const KeySpan<U> a(m.a_row(row) + range.a_begin, a_length, range.a_end == m.a_length, m.a, m.a + m.rows * m.a_length);
    const KeySpan<U> b(m.b_row(row) + range.b_begin, b_length, range.b_end == m.b_length, m.b, m.b + m.rows * m.b_length);
    const bool special = __syncthreads_or(load_tile<kThreads, Shape::kLoads>(a, b, keys, shared_words));

    const TileWindow window{a.offset, a_length, a.count * Shape::kWord + b.offset, b_length, a_length + b_length, special};
    merge_tile<kThreads, kItems, kPositions, 0>(reinterpret_cast<const U*>(shared_words), keys, window, outputs, positions, splits);
    TileOutputs<U, kThreads, kItems>::store(outputs, m.keys_out + row * m.row_outputs() + bounds.rank_low, window.outputs);
    if constexpr (kPositions) {
      store_companions<kThreads>(m, row, range.a_begin, range.b_begin, bounds.rank_low, positions, window.outputs);
    }
  }
}

}  // namespace gpusort
