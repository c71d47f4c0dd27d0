// One tile of a multiway merge: the pieces of up to 32 runs are loaded into shared memory and merged there, two by two, until one is left.
//
// Every piece starts at a slot that is a multiple of kItems, and so does every run merged from pieces, so that each round gives a thread
// kItems outputs of exactly one pair: it finds its split by merge path and merges into registers; after a barrier the outputs take the
// slots of what was merged. The slots behind a run's last element hold nothing and are never looked at. ceil(log2(ways)) rounds, one read
// and one write of the data. What is merged are words of 32 bits (packed_words.cuh); codes and indices stay where they were loaded until
// the tile is written. Where words do not do, codes and indices are merged: ties are taken from the earlier run, which is the stable
// order because runs follow each other in the input, so only codes are compared and indices are moved along.
// Source: Odeh, Green, Mwassi, Shmueli and Birk, "Merge path" (2012).
//
// Input that may not be sorted (`contradictory` is given) is looked at before it is merged: cuts that contradict each other are replaced by
// even ones, and a tile with a piece that does not rise is written as it lies. So the output is a permutation of the input whatever it is.
#pragma once

#include "../../core/co_rank.h"
#include "packed_words.cuh"

namespace gpusort {

// Where a piece lies. Element `slot` of the tile is element `source + slot` of the source arrays.
struct alignas(16) TilePiece {
  int first_slot;
  int end_slot;  // behind the last element
  int64_t source;
};

// The pieces of a tile. Unused ways are empty pieces at the end.
template <class Index>
struct TilePieces {
  TilePiece piece[kMaxWays];
  int slots[kMaxWays + 1];    // where each piece starts in shared memory; the last: slots in use
  int outputs[kMaxWays + 1];  // elements before each piece; the last: elements of the tile
  Index base[kMaxWays];       // what to add to a position within the run (kRuns) or to a slot (kKeys) for the index
  int64_t row_begin;          // of the tile's row, in the results
  int64_t destination;        // of the tile's first output
  bool exists;

  __device__ int piece_of_slot(int slot) const {
    int low = 0;
#pragma unroll
    for (int step = kMaxWays / 2; step > 0; step /= 2) {
      if (slots[low + step] <= slot) low += step;
    }
    return low;
  }
};

// By the first warp.
template <int kItems, class U, class Index>
__device__ void set_up_pieces(const MultiwayArguments<U, Index>& m, int64_t number, int lane, TilePieces<Index>& pieces) {
  const MultiwayRuns& runs = m.runs;
  const MultiwayTileSpot spot = runs.locate(number);
  if (lane == 0) pieces.exists = spot.exists;
  if (!spot.exists) return;
  const int64_t run_begin = runs.begin(runs.run_of(spot, lane));
  MultiwayCut cut = read_cut(m, spot, number, lane);
  if (m.contradictory != nullptr && *m.contradictory != 0 && lane < runs.ways) {  // cut the runs as they lie, one after the other
    const int64_t run_length = runs.begin(runs.run_of(spot, lane + 1)) - run_begin;
    const int64_t before = run_begin - runs.group_begin(spot);
    cut.begin = min(max(spot.tile * runs.tile - before, int64_t{0}), run_length);
    cut.end = min(max((spot.tile + 1) * runs.tile - before, int64_t{0}), run_length);
  }
  int64_t before_tile = cut.begin;  // elements of the group
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) before_tile += __shfl_xor_sync(kAllLanes, before_tile, distance);
  const int length = static_cast<int>(cut.end - cut.begin);
  const int padded = (length + kItems - 1) / kItems * kItems;
  int slots = padded, outputs = length;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int slots_below = __shfl_up_sync(kAllLanes, slots, distance), outputs_below = __shfl_up_sync(kAllLanes, outputs, distance);
    if (lane >= distance) {
      slots += slots_below;
      outputs += outputs_below;
    }
  }
  const int first_slot = slots - padded;
  pieces.slots[lane + 1] = slots;
  pieces.outputs[lane + 1] = outputs;
  pieces.piece[lane] = {first_slot, first_slot + length, spot.row * m.source_row_stride + run_begin + cut.begin - first_slot};
  pieces.base[lane] = static_cast<Index>(m.source == MultiwaySource::kRuns ? run_begin : run_begin + cut.begin - first_slot);
  if (lane == 0) {
    pieces.slots[0] = pieces.outputs[0] = 0;
    pieces.row_begin = spot.row * runs.row_length;
    pieces.destination = pieces.row_begin + run_begin + before_tile;  // the first run begins where the group does
  }
}

// The bits of a key from its code, or from the input where codes do not tell: zeros, NaNs, what is True.
template <class U>
__device__ U key_of_code(const KeyOrder<U>& order, U code, const U* row, int64_t index) {
  const U ascending = static_cast<U>(code ^ order.complement);
  if (ascending == order.clamp || (order.zero != 0 && ascending == order.zero)) return row[index];
  return order.from_ordered(static_cast<U>(ascending - (ascending < order.zero ? 1 : 0)));
}

// Where the tile's elements are, in order.
enum class TileOrder {
  kLoaded,  // pieces as they were loaded, one after the other
  kCodes,   // codes and indices, slot by slot
  kWords    // at the slots that the words name
};

// What a thread merges in a round: kItems outputs of runs a and b, from `rank` on.
struct MergeShare {
  int begin, a_length, middle, b_length, rank;
};

template <class U, class Index>
struct MultiwayTile {
  using Format = RecordFormat<U, Index>;
  static constexpr int kItems = Format::kItems;

  const MultiwayArguments<U, Index>& m;
  const TilePieces<Index>& pieces;
  U* codes;  // shared, threads x kItems each, and as many as one thread may run on
  Index* indices;
  uint32_t* words;
  int thread, threads;

  GPUSORT_HD static constexpr size_t records_of(int threads) { return static_cast<size_t>(threads + 1) * kItems; }
  GPUSORT_HD static constexpr size_t words_offset(int threads) { return (records_of(threads) * (sizeof(U) + sizeof(Index)) + 3) / 4 * 4; }
  GPUSORT_HD static constexpr size_t shared_bytes(int threads) { return words_offset(threads) + records_of(threads) * 4 + 8; }

  // This thread's share of the tile's elements: visit(item, piece's number, piece, slot).
  template <class Visit>
  __device__ __forceinline__ void for_each_element(Visit visit) const {
    int number = 0;
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      const int slot = item * threads + thread;
      while (number < kMaxWays - 1 && slot >= pieces.slots[number + 1]) ++number;
      const TilePiece piece = pieces.piece[number];
      if (slot < piece.end_slot) visit(item, number, piece, slot);
    }
  }

  __device__ __forceinline__ void load() {
    if (m.source == MultiwaySource::kRecords && Format::kPacked) {
      uint64_t words[kItems];
      for_each_element([&](int item, int, const TilePiece& piece, int slot) { words[item] = m.records_in.words[piece.source + slot]; });
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        codes[item * threads + thread] = static_cast<U>(words[item] >> 32);
        indices[item * threads + thread] = static_cast<Index>(words[item]);
      }
      return;
    }
    U held[kItems];
    Index held_indices[kItems];
    if (m.source == MultiwaySource::kRecords) {
      for_each_element([&](int item, int, const TilePiece& piece, int slot) {
        held[item] = m.records_in.codes[piece.source + slot];
        held_indices[item] = m.records_in.indices[piece.source + slot];
      });
    } else {
      const bool runs = m.source == MultiwaySource::kRuns;
      for_each_element([&](int item, int number, const TilePiece& piece, int slot) {
        held[item] = m.keys[piece.source + slot];
        held_indices[item] = pieces.base[number] + (runs ? static_cast<Index>(m.positions[piece.source + slot]) : static_cast<Index>(slot));
      });
#pragma unroll
      for (int item = 0; item < kItems; ++item) held[item] = m.order.code(held[item]);
    }
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      codes[item * threads + thread] = held[item];
      indices[item * threads + thread] = held_indices[item];
    }
  }

  // Whether this thread sees a piece that does not rise.
  __device__ bool sees_descent() const {
    bool descent = false;
    for_each_element([&](int, int, const TilePiece& piece, int slot) {
      if (slot + 1 < piece.end_slot) descent = descent || codes[slot + 1] < codes[slot];
    });
    return descent;
  }

  // Runs of `width` pieces each: whether this thread has outputs of a pair of them, and which.
  __device__ __forceinline__ bool find_share(int piece, int width, MergeShare& share) const {
    const int slot = thread * kItems;
    const int first = piece & ~(2 * width - 1);  // pieces [first, first + width) were merged into a, as many after them into b
    share.begin = pieces.slots[first];
    share.middle = pieces.slots[first + width];
    share.a_length = pieces.outputs[first + width] - pieces.outputs[first];
    share.b_length = pieces.outputs[first + 2 * width] - pieces.outputs[first + width];
    share.rank = slot - share.begin;
    return slot < pieces.slots[kMaxWays] && share.rank < share.a_length + share.b_length;
  }

  // False where words do not do; codes and indices are as they were loaded in any case.
  __device__ __forceinline__ bool merge_by_words(WordMap<U>& map) {
    const TilePiece own = pieces.piece[thread % 32];
    const bool has_piece = own.first_slot < own.end_slot;
    map = make_word_map<U>(has_piece, has_piece ? codes[own.first_slot] : U{0}, has_piece ? codes[own.end_slot - 1] : U{0});
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      const int slot = item * threads + thread;
      words[slot] = map.word(codes[slot], slot);
    }
    __syncthreads();
    const int slot = thread * kItems;
    const int piece = pieces.piece_of_slot(slot);
#pragma unroll 1
    for (int width = 1; width < m.runs.ways; width *= 2) {
      MergeShare share;
      const bool has_outputs = find_share(piece, width, share);
      uint32_t merged[kItems];
      if (has_outputs) {
        const int a_taken = co_rank<int>(share.rank, words + share.begin, share.a_length, words + share.middle, share.b_length,
                                         [](uint32_t x, uint32_t y) { return x < y; });
        merge_words(words, share.begin + a_taken, share.begin + share.a_length, share.middle + share.rank - a_taken,
                    share.middle + share.b_length, merged);
      }
      __syncthreads();
      if (has_outputs) {
#pragma unroll
        for (int item = 0; item < kItems; ++item) words[slot + item] = merged[item];
      }
      __syncthreads();
    }
    return map.shift == 0 || mend_words<kItems>(words, codes, slot, pieces.outputs[kMaxWays]);
  }

  __device__ __forceinline__ void merge_by_codes() {
    const int slot = thread * kItems;
    const int piece = pieces.piece_of_slot(slot);
#pragma unroll 1
    for (int width = 1; width < m.runs.ways; width *= 2) {
      MergeShare share;
      const bool has_outputs = find_share(piece, width, share);
      const int begin = share.begin, middle = share.middle, a_length = share.a_length, b_length = share.b_length, rank = share.rank;
      U merged[kItems];
      Index merged_indices[kItems];
      if (has_outputs) {
        const int a_taken = co_rank<int>(rank, codes + begin, a_length, codes + middle, b_length, [](U x, U y) { return x < y; });
        int a = begin + a_taken;
        const int both = a + middle + rank - a_taken;  // a + b before the first output; each output adds one
        const int a_last = begin + a_length - 1, b_last = middle + b_length - 1;
        U a_code = static_cast<U>(~U{0}), b_code = a_code;
        if (a <= a_last) a_code = codes[a];
        if (both - a <= b_last) b_code = codes[both - a];
#pragma unroll
        for (int item = 0; item < kItems; ++item) {
          const bool take_b = b_code < a_code || a > a_last;  // a b that has ended shows the largest code and is not below a
          const int taken = take_b ? both + item - a : a;     // behind the last output both have ended and b runs on, to no effect
          merged[item] = b_code < a_code ? b_code : a_code;   // their minimum in either case
          merged_indices[item] = indices[taken];
          U code = static_cast<U>(~U{0});
          if (taken < (take_b ? b_last : a_last)) code = codes[taken + 1];
          if (!take_b) ++a;
          a_code = take_b ? a_code : code;
          b_code = take_b ? code : b_code;
        }
      }
      __syncthreads();
      if (has_outputs) {
#pragma unroll
        for (int item = 0; item < kItems; ++item) {
          codes[slot + item] = merged[item];
          indices[slot + item] = merged_indices[item];
        }
      }
      __syncthreads();
    }
  }

  // Writes the tile.
  __device__ __forceinline__ void store(TileOrder order, const WordMap<U>& map) const {
    const int count = pieces.outputs[kMaxWays];
    const int64_t destination = pieces.destination;
#pragma unroll 3
    for (int output = thread; output < count; output += threads) {
      int slot = output;
      U code;
      if (order == TileOrder::kWords) {
        const uint32_t word = words[output];
        slot = slot_of(word);
        code = map.shift == 0 ? map.code(word) : codes[slot];
      } else if (order == TileOrder::kCodes) {
        code = codes[slot];
      } else {
        int piece = 0;
        while (output >= pieces.outputs[piece + 1]) ++piece;
        slot = pieces.slots[piece] + output - pieces.outputs[piece];
        code = codes[slot];
      }
      const Index index = indices[slot];
      if (!m.last) {
        if constexpr (Format::kPacked) {
          m.records_out.words[destination + output] = static_cast<uint64_t>(code) << 32 | index;
        } else {
          m.records_out.codes[destination + output] = code;
          m.records_out.indices[destination + output] = index;
        }
        continue;
      }
      if (m.indices_wide != nullptr) m.indices_wide[destination + output] = static_cast<int64_t>(index);
      if (m.indices_narrow != nullptr) m.indices_narrow[destination + output] = static_cast<int32_t>(index);
      if (m.keys_out != nullptr) {
        m.keys_out[destination + output] = key_of_code(m.order, code, m.original + pieces.row_begin, static_cast<int64_t>(index));
      }
    }
  }
};

template <class U, class Index>
__global__ void __launch_bounds__(kMultiwayThreads, 2) multiway_tile_kernel(const __grid_constant__ MultiwayArguments<U, Index> m) {
  using Tile = MultiwayTile<U, Index>;
  extern __shared__ uint64_t shared_records[];
  __shared__ TilePieces<Index> pieces;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  if (thread < 32) set_up_pieces<Tile::kItems>(m, blockIdx.x, thread, pieces);
  __syncthreads();
  if (!pieces.exists) return;

  // The wider of codes and indices first, so that both are aligned.
  constexpr bool kIndicesFirst = sizeof(Index) > sizeof(U);
  char* const base = reinterpret_cast<char*>(shared_records);
  const size_t records = Tile::records_of(threads);
  U* const codes = reinterpret_cast<U*>(base + (kIndicesFirst ? records * sizeof(Index) : 0));
  Index* const indices = reinterpret_cast<Index*>(base + (kIndicesFirst ? 0 : records * sizeof(U)));
  uint32_t* const words = reinterpret_cast<uint32_t*>(base + Tile::words_offset(threads));

  Tile tile{m, pieces, codes, indices, words, thread, threads};
  tile.load();
  __syncthreads();
  WordMap<U> map{};
  TileOrder order = TileOrder::kWords;
  if (m.contradictory != nullptr && __syncthreads_or(tile.sees_descent())) {
    order = TileOrder::kLoaded;
  } else if (!tile.merge_by_words(map)) {
    order = TileOrder::kCodes;
    tile.merge_by_codes();
  }
  tile.store(order, map);
}

}  // namespace gpusort
