// M4 for keys alone and merges of one wave of tiles: the tiled merge in one round of memory latency.
//
// What costs in a short merge is not bandwidth but dependent reads: a search for the cuts, then the tile. Here a block loads the windows
// around its expected cuts (cut_windows.cuh) and all between them at once, while one warp more, the scout, looks whether the cuts on the
// block's path lie in their windows. If so, every thread finds its own split in what was loaded, which it would have to do in a tile too,
// and merges from there; the scout finds the tile's exact ends meanwhile, which only unsorted inputs make differ from where the threads
// were led. If not, a and b are not evenly mixed: the block searches for the cuts on its path and loads the exact tile.
//
// Tiles of floats of both signs are compared as floats, so that the one around zero takes no longer than the others.
#pragma once

#include "cut_windows.cuh"
#include "merge_tiled_keys.cuh"

namespace gpusort {

template <class U, int kThreads, int kItems>
struct WindowedTile {
  static constexpr int kWord = KeyWord<U>::kCount;
  static constexpr int kTile = kThreads * kItems;
  static constexpr int kAllThreads = kThreads + 32;  // with the scout
  static constexpr int kGapWords = (kItems + kWord - 1) / kWord;
  static constexpr int kFrontWords = kGapWords;
  static constexpr int kMostReach = most_reach(MergeTile{kThreads, kItems, 0});
  static constexpr int kRange = kTile + 4 * kMostReach;                      // elements of both parts
  static constexpr int kOutputBytes = kItems * static_cast<int>(sizeof(U));  // of a thread
  // Whole words go from registers to global memory. An odd number of 4-byte words, which keeps threads off each other's banks, goes through
  // shared memory.
  static constexpr bool kDirect = kOutputBytes <= 32 && (kOutputBytes & (kOutputBytes - 1)) == 0;
  static_assert(4 * kMostReach < kTile, "windows of neighbouring cuts lie apart");

  // Of shared memory: a front gap, both parts, each with a ragged word at either end and one element behind, and a gap behind each.
  static constexpr int bytes(int reach) { return (kFrontWords + (kTile + 4 * reach) / kWord + 5 + 2 * kGapWords) * 16; }
};

template <int kThreads>
struct WindowedShared {
  int path[32];
  int a_begin, a_end;  // the tile's exact part of a
  TileOrder order;
  // Heads of a: where warps begin and end. The tile's exact ends stand in ends[0] and begins[kThreads / 32].
  uint32_t begins[kThreads / 32 + 1], ends[kThreads / 32 + 1];
  bool gaps[kThreads / 32];  // whether a thread of the warp does not end where the next begins
};

// What the scout says of a window, from the keys at its ends. `mine` is what ends.load() returned.
template <class U>
__device__ TileOrder order_of_window(const TileEnds<U>& ends, const MergeKeys<U>& keys, U mine) {
  const TileOrder order = ends.order(keys, mine, true);
  if constexpr (sizeof(U) >= 4) {
    const bool is_nan = ends.asks() && keys.order.to_ordered(mine) >= keys.order.clamp;
    const bool are_floats = keys.order.zero != 0;
    if (__any_sync(~0u, is_nan)) return order;
    if (order == TileOrder::kUnknown && are_floats && !ends.row_ends) return TileOrder::kNumbers;
  }
  return order;
}

// Finds the cuts on the way to a piece and leaves its part of a in shared.a_begin and a_end. All threads of the block call it.
template <class Tile, int kThreads, class U>
__device__ void search_windowed_piece(const MergeArguments<U>& m, const U* a, const U* b, int piece, int pieces,
                                      WindowedShared<kThreads>& shared) {
  for (int level = threadIdx.x / 32; level < 32; level += Tile::kAllThreads / 32) {
    const int cut = cut_on_path(piece, pieces, level);
    if (cut == 0) break;
    const int a_count = search_cut(m, a, b, cut * Tile::kTile);
    if (threadIdx.x % 32 == 0) shared.path[level] = a_count;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const int* next = shared.path;
    const auto rank_of = [&](int cut) { return min(cut * Tile::kTile, static_cast<int>(m.row_outputs())); };
    const SplitBounds<int> found = repaired_piece<int>(piece, pieces, static_cast<int>(m.a_length), rank_of, [&](int) { return *next++; });
    shared.a_begin = found.a_low;
    shared.a_end = found.a_high;
  }
  __syncthreads();
}

// A thread's part of the outputs, the first of which is the window's output `rank`.
template <Comparison kHow, class Tile, class U, int kItems>
__device__ HeadsOfA merge_in_window(const PlainAddresses<U>& at, const PlainWindow& window, int rank, ThreadKeys<U, kItems>& outputs) {
  const uint32_t head = plain_co_rank<Tile::kRange, kHow, U>(at.a, window.a_length, at.b, window.b_length, rank);
  const uint32_t b_head = at.a + at.b + rank * sizeof(U) - head;
  return {head, merge_plain_thread<kItems, kHow, U>(head, b_head, at.threshold, outputs)};
}

template <class Tile, class U, int kItems>
__device__ HeadsOfA merge_in_window(const PlainAddresses<U>& at, const PlainWindow& window, const KeyOrder<U>& order, int rank,
                                    ThreadKeys<U, kItems>& outputs) {
  if constexpr (sizeof(U) >= 4) {
    if (window.order == TileOrder::kNumbers) {
      return order.complement != 0 ? merge_in_window<Comparison::kFallingNumbers, Tile>(at, window, rank, outputs)
                                   : merge_in_window<Comparison::kRisingNumbers, Tile>(at, window, rank, outputs);
    }
  }
  return window.order == TileOrder::kFalling ? merge_in_window<Comparison::kFalling, Tile>(at, window, rank, outputs)
                                             : merge_in_window<Comparison::kRising, Tile>(at, window, rank, outputs);
}

// A tile with special keys: `window` is exact, and a and b are where its parts begin in global memory.
template <class Tile, int kItems, int kThreads, class U>
__device__ void merge_special_window(const U* elements, const MergeKeys<U>& keys, const PlainWindow& window, const U* a, const U* b,
                                     U* destination, WindowedShared<kThreads>& shared) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  HeadsOfA mine{0, 0};
  if (threadIdx.x < kThreads) {
    mine = merge_special_tile<kItems>(elements, keys, window, destination);
    if (lane == 0) shared.begins[warp] = mine.begin;
  }
  __syncthreads();
  const bool contradictory = threadIdx.x < kThreads && contradicts<kThreads>(mine, elements, window, shared.begins);
  if (__syncthreads_or(contradictory)) {
    fill_from_inputs<Tile::kAllThreads>(a, window.a_length, b, window.b_length, destination);
  }
}

template <class U, int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads + 32, 1024 / (kThreads + 32))
    merge_windowed_keys_kernel(const __grid_constant__ MergeArguments<U> m) {
  using Tile = WindowedTile<U, kThreads, kItems>;
  constexpr int kWarps = kThreads / 32;
  constexpr uint32_t kBytes = sizeof(U);
  extern __shared__ uint4 shared_words[];
  __shared__ WindowedShared<kThreads> shared;
  const MergeKeys<U> keys(m.order);
  const U sentinel = keys.decode(MergeKeys<U>::kSentinel);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool scout = threadIdx.x >= kThreads;

  const unsigned pieces = static_cast<unsigned>(m.pieces_per_row), row = blockIdx.x / pieces;
  const int piece = static_cast<int>(blockIdx.x - row * pieces);
  const U* const a_row = m.a_row(row);
  const U* const b_row = m.b_row(row);
  const int rank_begin = piece * Tile::kTile, rank_end = min(rank_begin + Tile::kTile, static_cast<int>(m.row_outputs()));
  const int outputs = rank_end - rank_begin;
  const CutWindow begin(m, rank_begin), end(m, rank_end), on_path(m, scout ? cut_on_path(piece, pieces, lane) * Tile::kTile : 0);
  U* const destination = m.keys_out + row * m.row_outputs() + rank_begin;
  MergeRange<int64_t> loaded{begin.low, end.high, rank_begin - begin.high, rank_end - end.low};
  int skipped = begin.high - begin.low;  // outputs of what is loaded in front of the tile's

  start_after_predecessor();
  PlainWindow window;
  bool holds = true;
  const auto load = [&] {
    const TileInputs<U> inputs(m, row, loaded);
    window = plain_window<Tile>(inputs.a, inputs.a_length, inputs.a_behind, inputs.b, inputs.b_length, inputs.b_behind);
    uint4* const gap = shared_words + Tile::kFrontWords + inputs.a.count;
    if (scout) {
      const TileEnds<U> ends = inputs.ends(m, row, loaded);
      const U mine = ends.template load<false>();
      holds = WindowCheck<false, U>(on_path, a_row, b_row).holds(m.order);
      if (inputs.a_behind == 0) {
        for (int word = lane; word < Tile::kGapWords; word += 32) gap[word] = word_of(sentinel).vector;
      }
      const TileOrder order = order_of_window(ends, keys, mine);
      if (lane == 0) shared.order = order;
    } else {
      load_span<kThreads>(inputs.a, shared_words + Tile::kFrontWords, sentinel);
      load_span<kThreads>(inputs.b, gap + Tile::kGapWords, sentinel);
      wait_for_copies();
    }
  };
  load();
  bool exact = false;
  if (__syncthreads_or(!holds)) {
    search_windowed_piece<Tile>(m, a_row, b_row, piece, pieces, shared);
    loaded = {shared.a_begin, shared.a_end, rank_begin - shared.a_begin, rank_end - shared.a_end};
    skipped = 0;
    exact = true;
    load();
    __syncthreads();
  }
  window.order = shared.order;
  window.order = settle_order<Tile::kAllThreads>(shared_words, window, keys);
  const bool encoded = window.order == TileOrder::kEncoded || window.order == TileOrder::kSpecial;
  const PlainAddresses<U> at(shared_words, window, kItems);
  U* const elements = reinterpret_cast<U*>(shared_words);
  const int a_first = static_cast<int>(loaded.a_begin), b_first = static_cast<int>(loaded.b_begin);

  if (scout) {
    WarpSearch first{begin.low, begin.high}, last{end.low, end.high};
    if (exact) {
      first.low = first.high = a_first;
      last.low = last.high = static_cast<int>(loaded.a_end);
    }
    const auto code = [&](KeyItem<U> key) { return encoded ? keys.code(static_cast<U>(key)) : m.order.code(static_cast<U>(key)); };
    const auto takes_before = [&](int rank) {
      return [&, rank](int place) {
        const auto from_a = load_shared_key<U>(at.a + (place - a_first) * kBytes);
        const auto from_b = load_shared_key<U>(at.b + (rank - 1 - place - b_first) * kBytes);
        return !(code(from_b) < code(from_a));
      };
    };
    while (!first.done() || !last.done()) {
      const bool first_takes = first.look(takes_before(rank_begin)), last_takes = last.look(takes_before(rank_end));
      first.narrow(first_takes);
      last.narrow(last_takes);
    }
    if (lane == 0) {
      shared.a_begin = first.low;
      shared.a_end = last.low;
      shared.ends[0] = at.a + (first.low - a_first) * kBytes;
      shared.begins[kWarps] = at.a + (last.low - a_first) * kBytes;
    }
  }
  if (window.order == TileOrder::kSpecial) {
    __syncthreads();
    const int a_begin = shared.a_begin, a_length = shared.a_end - a_begin, b_begin = rank_begin - a_begin;
    window.a_begin += a_begin - a_first;
    window.b_begin += b_begin - b_first;
    window.a_length = a_length;
    window.b_length = outputs - a_length;
    merge_special_window<Tile, kItems>(elements, keys, window, a_row + a_begin, b_row + b_begin, destination, shared);
    return;
  }

  ThreadKeys<U, kItems> merged;
  if (!scout) {
    const int rank = min(static_cast<int>(threadIdx.x) * kItems, outputs);
    HeadsOfA mine = merge_in_window<Tile>(at, window, m.order, skipped + rank, merged);
    if constexpr (Tile::kDirect) merged.store(destination + rank, min(kItems, outputs - rank), keys, encoded);
    mine.end = end_of_a<U>(mine.end, at.a + at.b + (skipped + rank + kItems) * kBytes, max(0, rank + kItems - outputs), window, at.a,
                           encoded ? MergeKeys<U>::kSentinel : sentinel);
    const uint32_t next = __shfl_down_sync(~0u, mine.begin, 1);
    const bool gap = __any_sync(~0u, lane < 31 && mine.end != next);
    if (lane == 0) shared.begins[warp] = mine.begin;
    if (lane == 0) shared.gaps[warp] = gap;
    if (lane == 31) shared.ends[warp + 1] = mine.end;
  }
  __syncthreads();  // the inputs have been read
  const bool gap_after = lane <= kWarps && shared.begins[lane] != shared.ends[lane];
  const bool gap_within = lane < kWarps && shared.gaps[lane];
  if (__any_sync(~0u, gap_after || gap_within)) {  // the same in all warps
    const int a_begin = shared.a_begin, a_length = shared.a_end - a_begin;
    fill_from_inputs<Tile::kAllThreads>(a_row + a_begin, a_length, b_row + rank_begin - a_begin, outputs - a_length, destination);
    return;
  }
  if constexpr (!Tile::kDirect) {
    if (!scout) merged.template put<kThreads>(elements, keys, encoded);
    __syncthreads();
    if (!scout) TileOutputs<U, kThreads, kItems>::store(elements, destination, outputs);
  }
}

}  // namespace gpusort
