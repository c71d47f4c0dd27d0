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

// Both parts of a tile as the search for special keys sees them: with the element behind each, where the row has one.
template <class U>
struct TileEnds {
  const U *a, *b;
  int a_length, b_length;

  // Lanes 0 and 1 of the first warp have the ends of a, lanes 2 and 3 those of b.
  __device__ bool asks() const { return threadIdx.x < 4 && (threadIdx.x / 2 == 1 ? b_length : a_length) > 0; }
  __device__ U load() const {
    if (!asks()) return U{0};
    const bool last = threadIdx.x % 2 == 1;
    return threadIdx.x / 2 == 1 ? b[last ? b_length - 1 : 0] : a[last ? a_length - 1 : 0];
  }
  // Of what load() returned. False for all threads if there are no special keys, in parts that are sorted.
  __device__ bool may_be_special(const MergeKeys<U>& keys, U mine) const {
    if (threadIdx.x >= 32) return false;
    const U other = static_cast<U>(__shfl_down_sync(~0u, mine, 1));
    return asks() && threadIdx.x % 2 == 0 && keys.may_be_special_between(mine, other);
  }
};

// Looks at every key in shared memory. True if the calling thread met special ones.
template <int kThreads, class U>
__device__ bool find_special(const U* elements, int length, const MergeKeys<U>& keys) {
  bool special = false;
#pragma unroll 1
  for (int place = threadIdx.x; place < length; place += kThreads) special = special || keys.is_special(elements[place]);
  return special;
}

// The word of keys at any place of shared memory.
template <class U>
__device__ KeyWord<U> load_unaligned(const U* elements) {
  KeyWord<U> word;
  if constexpr (sizeof(U) < 4) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(elements);
    const uint32_t* const from = reinterpret_cast<const uint32_t*>(address & ~uintptr_t{3});
    const uint32_t shift = static_cast<uint32_t>(address % 4 * 8);
    uint32_t low = from[0];
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const uint32_t high = from[p + 1];
      word.part[p] = __funnelshift_r(low, high, shift);
      low = high;
    }
  } else {
#pragma unroll
    for (int e = 0; e < KeyWord<U>::kCount; ++e) word.key[e] = elements[e];
  }
  return word;
}

// A tile in which all of one part comes before all of the other needs no merge, and narrow keys, which form long runs of equal ones, make
// most tiles so. Writes such a tile to global memory; false if it is none. All threads get the same answer.
template <int kThreads, class U>
__device__ bool store_in_sequence(const U* elements, const MergeKeys<U>& keys, const TileWindow& window, U* destination) {
  constexpr int kWord = KeyWord<U>::kCount;
  const U* const a = elements + window.a_begin;
  const U* const b = elements + window.b_begin;
  bool a_first = window.a_length == 0 || window.b_length == 0;
  if (!a_first) {
    if (window.special) return false;
    a_first = a[window.a_length - 1] <= b[0];
    if (!a_first && b[window.b_length - 1] >= a[0]) return false;
  }

  const int first_length = a_first ? window.a_length : window.b_length;
  const U* const first = a_first ? a : b;
  const U* const second = (a_first ? b : a) - first_length;
  const int words = reinterpret_cast<uintptr_t>(destination) % 16 == 0 ? window.outputs / kWord : 0;
#pragma unroll 2
  for (int word = threadIdx.x; word < words; word += kThreads) {
    const int place = word * kWord;
    KeyWord<U> keys_out;
    if (place + kWord <= first_length || place >= first_length) {
      keys_out = load_unaligned((place < first_length ? first : second) + place);
    } else {
#pragma unroll
      for (int e = 0; e < kWord; ++e) keys_out.key[e] = (place + e < first_length ? first : second)[place + e];
    }
    keys_out.decode(keys);
    reinterpret_cast<uint4*>(destination)[word] = keys_out.vector;
  }
#pragma unroll 1
  for (int place = words * kWord + threadIdx.x; place < window.outputs; place += kThreads) {
    destination[place] = keys.decode((place < first_length ? first : second)[place]);
  }
  return true;
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
    const TileEnds<U> ends{m.a_row(row) + range.a_begin, m.b_row(row) + range.b_begin, a_length + (range.a_end < m.a_length ? 1 : 0),
                           b_length + (range.b_end < m.b_length ? 1 : 0)};
    const U end = ends.load();  // on its way with the tile
    load_tile<kThreads, Shape::kLoads>(a, b, keys, shared_words);

    const U* const elements = reinterpret_cast<const U*>(shared_words);
    TileWindow window{a.offset, a_length, a.count * Shape::kWord + b.offset, b_length, a_length + b_length, false};
    if (__syncthreads_or(ends.may_be_special(keys, end))) {
      const bool a_special = find_special<kThreads>(elements + window.a_begin, ends.a_length, keys);
      const bool b_special = find_special<kThreads>(elements + window.b_begin, ends.b_length, keys);
      window.special = __syncthreads_or(a_special || b_special);
    }
    U* const destination = m.keys_out + row * m.row_outputs() + bounds.rank_low;
    if constexpr (!kPositions && sizeof(U) <= 2) {
      if (store_in_sequence<kThreads>(elements, keys, window, destination)) continue;
    }
    merge_tile<kThreads, kItems, kPositions, 0>(elements, keys, window, outputs, positions, splits);
    TileOutputs<U, kThreads, kItems>::store(outputs, destination, window.outputs);
    if constexpr (kPositions) {
      store_companions<kThreads>(m, row, range.a_begin, range.b_begin, bounds.rank_low, positions, window.outputs);
    }
  }
}

}  // namespace gpusort
