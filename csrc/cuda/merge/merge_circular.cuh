// M5, the circular-buffer merge: a block owns a long run of the output and streams both inputs through two ring buffers in shared memory.
//
// Each round merges one tile from the windows at the fronts of the rings (merge_block.cuh), advances each window by what the tile took from
// it, and asks for as many new elements as that freed, asynchronously, so that they arrive while the next tile is merged. However
// unequal the consumption, every element is read from global memory once, and cuts are searched for once per run instead of once per
// tile. Source: Kirk, Hwu and El Hajj, "Programming Massively Parallel Processors", chapter on merge.
//
// Invariant: before a round's merge each ring holds its window [begin, begin + tile], or all that is left of the run and one element
// behind. A ring of kRing elements was filled up to begin + kRing at the round before, when begin was at most one tile lower: 2 tiles + 1 +
// two ragged words <= kRing makes that enough.
#pragma once

#include "async_copy.cuh"
#include "key_span.cuh"
#include "merge_block.cuh"
#include "merge_companions.cuh"
#include "merge_cuts.cuh"

namespace gpusort {

// One input of a run on its way through a ring. Elements and words are counted from the word that holds the run's first element.
template <class U, int kThreads, int kRing>
struct RingStream {
  static constexpr int kWord = KeyWord<U>::kCount;
  static constexpr int kRingWords = kRing / kWord;

  uint4* ring;
  KeySpan<U> span;
  int begin;          // the first element not merged yet
  int end;            // behind the run's last
  int encoded = 0;    // words that are merge keys in the ring, or were
  int requested = 0;  // words in the ring or on the way

  __device__ RingStream(U* ring_, const U* first, int length, bool ends_row, const U* input, const U* input_end)
      : ring(reinterpret_cast<uint4*>(ring_)), span(first, length, ends_row, input, input_end) {
    begin = span.offset;
    end = begin + length;
  }

  __device__ int left() const { return end - begin; }

  // Asks for words until the ring is full or the run, and the element behind it, is on its way.
  __device__ void refill() {
    const int target = min(span.count, begin / kWord + kRingWords);
    for (int word = requested + threadIdx.x; word < target; word += kThreads) {
      uint4* const slot = ring + (word & (kRingWords - 1));
      if (span.is_whole(word)) {
        copy_word_async(slot, span.words + word);
      } else {
        *slot = span.load_ragged(word).vector;
      }
    }
    requested = target;
  }

  // Turns what has arrived into merge keys. A thread takes the words that it asked for itself, which it may see before any barrier.
  // True if it met special keys.
  __device__ bool encode_arrived(const MergeKeys<U>& keys) {
    bool special = false;
    for (int word = encoded + threadIdx.x; word < requested; word += kThreads) {
      uint4* const slot = ring + (word & (kRingWords - 1));
      KeyWord<U> arrived;
      arrived.vector = *slot;
      if (span.is_whole(word)) {
        arrived.encode(keys);
#pragma unroll
        for (int e = 0; e < kWord; ++e) special = special || keys.is_special(arrived.key[e]);
      } else {
        special = span.encode_ragged(word, arrived, keys) || special;
      }
      *slot = arrived.vector;
    }
    encoded = requested;
    return special;
  }
};

template <class U, int kThreads, int kItems, int kRing>
struct CircularMerge {
  static constexpr int kTile = kThreads * kItems;
  static_assert((kRing & (kRing - 1)) == 0, "places in a ring are found by masking");
  static_assert(2 * kTile + 1 + 2 * KeyWord<U>::kCount <= kRing, "a ring holds the tile being merged and the next one");

  static constexpr size_t shared_bytes(bool positions) {
    return 2 * kRing * sizeof(U) + TileOutputs<U, kThreads, kItems>::kBytes + (positions ? kTile * sizeof(uint16_t) : 0);
  }
};

template <class U, int kThreads, int kItems, int kRing, bool kPositions>
__global__ void __launch_bounds__(kThreads, 768 / kThreads) merge_circular_kernel(const __grid_constant__ MergeArguments<U> m) {
  using Shape = CircularMerge<U, kThreads, kItems, kRing>;
  using Stream = RingStream<U, kThreads, kRing>;
  extern __shared__ uint4 shared_words[];
  U* const rings = reinterpret_cast<U*>(shared_words);
  U* const outputs = rings + 2 * kRing;
  uint16_t* const positions = reinterpret_cast<uint16_t*>(reinterpret_cast<char*>(outputs) + TileOutputs<U, kThreads, kItems>::kBytes);
  __shared__ PieceSearch search;
  __shared__ TileSplits<kThreads> splits;
  const MergeKeys<U> keys(m.order);

  const int64_t runs = m.rows * m.pieces_per_row;
  for (int64_t work = blockIdx.x; work < runs; work += gridDim.x) {
    const int64_t row = work / m.pieces_per_row;
    const SplitBounds<int64_t> bounds = find_piece<kThreads>(m, row, work - row * m.pieces_per_row, search);
    const MergeRange<int64_t> range = bounds.range();
    Stream a(rings, m.a_row(row) + range.a_begin, static_cast<int>(range.a_length()), range.a_end == m.a_length, m.a,
             m.a + m.rows * m.a_length);
    Stream b(rings + kRing, m.b_row(row) + range.b_begin, static_cast<int>(range.b_length()), range.b_end == m.b_length, m.b,
             m.b + m.rows * m.b_length);
    const int a_first = a.begin, b_first = b.begin;
    int a_special_end = 0, b_special_end = 0;  // special keys may lie before these
    U* destination = m.keys_out + row * m.row_outputs() + bounds.rank_low;

    a.refill();
    b.refill();
    while (a.left() + b.left() > 0) {
      wait_for_copies();
      const bool a_special = a.encode_arrived(keys);
      const bool b_special = b.encode_arrived(keys);
      if (__syncthreads_or(a_special || b_special)) {  // the windows are complete, and nobody reads what the tile before used up
        a_special_end = a.encoded * Stream::kWord;
        b_special_end = b.encoded * Stream::kWord;
      }
      a.refill();
      b.refill();

      const TileWindow window{a.begin,
                              min(a.left(), Shape::kTile),
                              b.begin,
                              min(b.left(), Shape::kTile),
                              min(a.left() + b.left(), Shape::kTile),
                              a.begin < a_special_end || b.begin < b_special_end};
      const int a_taken = merge_tile<kThreads, kItems, kPositions, kRing>(rings, keys, window, outputs, positions, splits);
      TileOutputs<U, kThreads, kItems>::store(outputs, destination, window.outputs);
      if constexpr (kPositions) {
        const int64_t a_done = a.begin - a_first, b_done = b.begin - b_first;
        store_companions<kThreads>(m, row, range.a_begin + a_done, range.b_begin + b_done, bounds.rank_low + a_done + b_done, positions,
                                   window.outputs);
      }
      destination += window.outputs;
      a.begin += a_taken;
      b.begin += window.outputs - a_taken;
    }
  }
}

}  // namespace gpusort
