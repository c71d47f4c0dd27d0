// One tile of a multiway merge: the pieces of up to 32 runs are loaded into shared memory and merged there, two by two, until one is left.
//
// Every piece starts at a slot that is a multiple of kItems, and so does every run merged from pieces, so that each round gives a thread
// kItems outputs of exactly one pair: it finds its split by merge path and merges into registers; after a barrier the outputs take the
// slots of what was merged. The slots behind a run's last element hold nothing and are never looked at. ceil(log2(ways)) rounds, one read
// and one write of the data. Ties are taken from the earlier run, which is the stable order because runs follow each other in the input.
// Source: Odeh, Green, Mwassi, Shmueli and Birk, "Merge path" (2012).
//
// Input that may not be sorted (`contradictory` is given) is looked at before it is merged: cuts that contradict each other are replaced by
// even ones, and a tile with a piece that does not rise is written as it lies. So the output is a permutation of the input whatever it is.
#pragma once

#include "../../core/co_rank.h"
#include "multiway_cuts.cuh"

namespace gpusort {

// The pieces of a tile. Unused ways are empty pieces at the end.
template <class Index>
struct TilePieces {
  int slots[kMaxWays + 1];    // where each piece starts in shared memory; the last: slots in use
  int outputs[kMaxWays + 1];  // elements before each piece; the last: elements of the tile
  int64_t source[kMaxWays];   // of the first element, in the source arrays
  Index base[kMaxWays];       // what to add to a position within the run (kRuns) or the piece (kKeys)

  __device__ int length(int piece) const { return outputs[piece + 1] - outputs[piece]; }
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
__device__ void set_up_pieces(const MultiwayArguments<U, Index>& m, const MultiwayTileSpot& spot, int64_t number, int lane,
                              TilePieces<Index>& pieces) {
  const MultiwayRuns& runs = m.runs;
  const int64_t run_begin = runs.begin(runs.run_of(spot, lane));
  MultiwayCut cut = read_cut(m, spot, number, lane);
  if (m.contradictory != nullptr && *m.contradictory != 0 && lane < runs.ways) {  // cut the runs as they lie, one after the other
    const int64_t run_length = runs.begin(runs.run_of(spot, lane + 1)) - run_begin;
    const int64_t before = run_begin - runs.group_begin(spot);
    cut.begin = min(max(spot.tile * runs.tile - before, int64_t{0}), run_length);
    cut.end = min(max((spot.tile + 1) * runs.tile - before, int64_t{0}), run_length);
  }
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
  pieces.slots[lane + 1] = slots;
  pieces.outputs[lane + 1] = outputs;
  if (lane == 0) pieces.slots[0] = pieces.outputs[0] = 0;
  pieces.source[lane] = spot.row * m.source_row_stride + run_begin + cut.begin;
  pieces.base[lane] = static_cast<Index>(m.source == MultiwaySource::kRuns ? run_begin : run_begin + cut.begin);
}

// The bits of a key from its code, or from the input where codes do not tell: zeros, NaNs, what is True.
template <class U>
__device__ U key_of_code(const KeyOrder<U>& order, U code, const U* row, int64_t index) {
  const U ascending = static_cast<U>(code ^ order.complement);
  if (ascending == order.clamp || (order.zero != 0 && ascending == order.zero)) return row[index];
  return order.from_ordered(static_cast<U>(ascending - (ascending < order.zero ? 1 : 0)));
}

template <class U, class Index>
struct MultiwayTile {
  using Format = RecordFormat<U, Index>;
  using Code = typename Format::Code;
  static constexpr int kItems = Format::kItems;
  static constexpr bool kPacked = Format::kPacked;

  const MultiwayArguments<U, Index>& m;
  const TilePieces<Index>& pieces;
  Code* codes;     // shared, threads x kItems each
  Index* indices;  // null when packed
  int thread, threads;

  static constexpr size_t shared_bytes(int threads) {
    return static_cast<size_t>(threads) * kItems * record_bytes(sizeof(U), Format::kWide);
  }

  // Reads this thread's share of the tile's elements: load(item, piece, place in the piece).
  template <class Load>
  __device__ __forceinline__ void for_each_element(Load load) const {
    int piece = 0;
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      const int slot = item * threads + thread;
      while (piece < kMaxWays - 1 && slot >= pieces.slots[piece + 1]) ++piece;
      const int place = slot - pieces.slots[piece];
      if (place < pieces.length(piece)) load(item, piece, place);
    }
  }

  __device__ __forceinline__ void load() {
    Code held[kItems];
    Index held_indices[kItems];
    if (m.source == MultiwaySource::kRecords) {
      for_each_element([&](int item, int piece, int place) {
        held[item] = m.records_in.codes[pieces.source[piece] + place];
        if constexpr (!kPacked) held_indices[item] = m.records_in.indices[pieces.source[piece] + place];
      });
    } else {
      U keys[kItems];
      const bool runs = m.source == MultiwaySource::kRuns;
      for_each_element([&](int item, int piece, int place) {
        const int64_t source = pieces.source[piece] + place;
        keys[item] = m.keys[source];
        held_indices[item] = pieces.base[piece] + (runs ? static_cast<Index>(m.positions[source]) : static_cast<Index>(place));
      });
#pragma unroll
      for (int item = 0; item < kItems; ++item) held[item] = Format::make(m.order.code(keys[item]), held_indices[item]);
    }
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      codes[item * threads + thread] = held[item];
      if constexpr (!kPacked) indices[item * threads + thread] = held_indices[item];
    }
  }

  // Whether this thread sees a piece that does not rise.
  __device__ bool sees_descent() const {
    bool descent = false;
    for_each_element([&](int item, int piece, int place) {
      const int slot = item * threads + thread;
      if (place + 1 < pieces.length(piece)) descent = descent || codes[slot + 1] < codes[slot];
    });
    return descent;
  }

  __device__ __forceinline__ void merge() {
    const int slot = thread * kItems;
    const int piece = pieces.piece_of_slot(slot);
    const bool in_use = slot < pieces.slots[kMaxWays];
#pragma unroll 1
    for (int width = 1; width < m.runs.ways; width *= 2) {
      const int first = piece & ~(2 * width - 1);  // pieces [first, first + width) were merged into a, as many after them into b
      const int begin = pieces.slots[first], middle = pieces.slots[first + width];
      const int a_length = pieces.outputs[first + width] - pieces.outputs[first];
      const int b_length = pieces.outputs[first + 2 * width] - pieces.outputs[first + width];
      const int rank = slot - begin;
      const bool has_outputs = in_use && rank < a_length + b_length;
      Code merged[kItems];
      Index merged_indices[kItems];
      if (has_outputs) {
        const int a_taken = co_rank<int>(rank, codes + begin, a_length, codes + middle, b_length, [](Code x, Code y) { return x < y; });
        int a = begin + a_taken, b = middle + rank - a_taken;
        const int a_end = begin + a_length, b_end = middle + b_length;
        Code a_code = static_cast<Code>(~Code{0}), b_code = a_code;
        if (a < a_end) a_code = codes[a];
        if (b < b_end) b_code = codes[b];
#pragma unroll
        for (int item = 0; item < kItems; ++item) {
          const bool take_b = b_code < a_code || a >= a_end;  // a b that has ended shows the largest code and is not below a
          merged[item] = take_b ? b_code : a_code;
          if constexpr (!kPacked) {
            const int taken = min(take_b ? b : a, threads * kItems - 1);  // behind the last element both have ended
            merged_indices[item] = indices[taken];
          }
          a += take_b ? 0 : 1;
          b += take_b ? 1 : 0;
          const int next = take_b ? b : a;
          Code code = static_cast<Code>(~Code{0});
          if (next < (take_b ? b_end : a_end)) code = codes[next];
          a_code = take_b ? a_code : code;
          b_code = take_b ? code : b_code;
        }
      }
      __syncthreads();
      if (has_outputs) {
#pragma unroll
        for (int item = 0; item < kItems; ++item) {
          codes[slot + item] = merged[item];
          if constexpr (!kPacked) indices[slot + item] = merged_indices[item];
        }
      }
      __syncthreads();
    }
  }

  // Writes the tile, whose first output is the group's `first`-th. Unless merged, the pieces lie where they were loaded.
  __device__ __forceinline__ void store(const MultiwayTileSpot& spot, bool merged) const {
    const int count = pieces.outputs[kMaxWays];
    const int64_t row = spot.row * m.runs.row_length;
    const int64_t destination = row + m.runs.group_begin(spot) + spot.tile * m.runs.tile;
#pragma unroll 3
    for (int output = thread; output < count; output += threads) {
      int slot = output;
      if (!merged) {
        int piece = 0;
        while (output >= pieces.outputs[piece + 1]) ++piece;
        slot = pieces.slots[piece] + output - pieces.outputs[piece];
      }
      const Code code = codes[slot];
      if (m.records_out.codes != nullptr) {
        m.records_out.codes[destination + output] = code;
        if constexpr (!kPacked) m.records_out.indices[destination + output] = indices[slot];
        continue;
      }
      Index index;
      if constexpr (kPacked) {
        index = static_cast<Index>(code);
      } else {
        index = indices[slot];
      }
      if (m.indices_wide != nullptr) m.indices_wide[destination + output] = static_cast<int64_t>(index);
      if (m.indices_narrow != nullptr) m.indices_narrow[destination + output] = static_cast<int32_t>(index);
      if (m.keys_out != nullptr) {
        m.keys_out[destination + output] = key_of_code(m.order, Format::code_of(code), m.original + row, static_cast<int64_t>(index));
      }
    }
  }
};

template <class U, class Index>
__global__ void __launch_bounds__(kMultiwayThreads, 2) multiway_tile_kernel(const __grid_constant__ MultiwayArguments<U, Index> m) {
  using Tile = MultiwayTile<U, Index>;
  extern __shared__ uint64_t shared_records[];
  __shared__ TilePieces<Index> pieces;
  const int64_t number = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const MultiwayTileSpot spot = m.runs.locate(number);
  if (!spot.exists) return;
  if (thread < 32) set_up_pieces<Tile::kItems>(m, spot, number, thread, pieces);
  __syncthreads();

  // Indices first where they are the wider of the two, so that both are aligned.
  constexpr bool kIndicesFirst = !Tile::kPacked && sizeof(Index) > sizeof(U);
  char* const base = reinterpret_cast<char*>(shared_records);
  const size_t records = static_cast<size_t>(threads) * Tile::kItems;
  auto* const codes = reinterpret_cast<typename Tile::Code*>(base + (kIndicesFirst ? records * sizeof(Index) : 0));
  Index* const indices = Tile::kPacked ? nullptr : reinterpret_cast<Index*>(base + (kIndicesFirst ? 0 : records * sizeof(U)));

  Tile tile{m, pieces, codes, indices, thread, threads};
  tile.load();
  bool merged = true;
  if (m.contradictory != nullptr) {
    __syncthreads();
    merged = !__syncthreads_or(tile.sees_descent());
  } else {
    __syncthreads();
  }
  if (merged) tile.merge();
  tile.store(spot, merged);
}

}  // namespace gpusort
