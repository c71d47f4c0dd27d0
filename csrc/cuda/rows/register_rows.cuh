// Rows of 2 to 256 keys, several to a warp, sorted as 32-bit words in registers.
//
// word = leading bits of a monotone map of the key << index_bits | index in the row. All words of a row differ, so a sorting network sorts
// them stably with one register and two instructions to a compare-exchange. Keys of 8 and 16 bits fit whole above the index; of wider keys
// the leading bits of the row's range are kept (24 or more), and what is out of order among equal leading bits is put right before the
// output (tie_runs.cuh), if need be with one more sort of new words. The keys themselves wait in shared memory and are fetched by index.
// Memory: one read and one write of the data. Nothing is kept between warps.
#pragma once

#include <cstdint>

#include "../../core/word_map.h"
#include "../../plan/row_plan.h"
#include "../primitives/dependent_launch.cuh"
#include "lane_sort.cuh"
#include "many_ties.cuh"
#include "row_access.cuh"
#include "tie_runs.cuh"

namespace gpusort {

constexpr int ceil_log2(int x) {
  int bits = 0;
  while ((1 << bits) < x) ++bits;
  return bits;
}

template <class U, int kLanes, int kItems>
struct RegisterRows {
  static constexpr bool kWholeKeys = sizeof(U) <= 2;
  static constexpr int kKeyBits = static_cast<int>(sizeof(U) * 8);
  static constexpr int kRowsPerWarp = 32 / kLanes;
  static constexpr int kIndexBits = kWholeKeys ? 32 - kKeyBits : ceil_log2(kLanes * kItems);
  static constexpr uint32_t kIndexMask = (1u << kIndexBits) - 1;
  static constexpr int kPlaces = 32 * kItems;
  // H200, 2^24 keys, us: rows of 16 of which half are zero 165 to 94, of 64 with 8 values 179 to 92; float64 rows of 200 would be 5 %
  // slower.
  static constexpr bool kMendsManyTies = sizeof(U) == 4 || kItems <= 8;
  static constexpr int kKeyBytes = static_cast<int>(round_up(kPlaces * static_cast<int>(sizeof(U)), 16));
  static constexpr int kWarpBytes = static_cast<int>(round_up(row_shared_bytes(sizeof(U), kPlaces, kItems), 16));

  const RowArguments<U>& arguments;
  int lane, lane_in_row, row_in_warp, live_rows, length;
  int64_t offset;  // of the warp's first row
  U* keys;         // of the warp's rows, in shared memory
  uint32_t* words;

  __device__ __forceinline__ uint32_t& word_at(int place) const { return words[padded_position(place)]; }
  __device__ __forceinline__ int first_place() const { return lane_in_row * kItems; }  // of the lane's sorted words

  // Item e of a lane is read from this place of its row.
  template <bool kQuads>
  __device__ __forceinline__ int place_of(int e) const {
    return kQuads ? (e / 4 * kLanes + lane_in_row) * 4 + e % 4 : e * kLanes + lane_in_row;
  }

  template <bool kQuads>
  __device__ __forceinline__ uint32_t word_of(int e, uint32_t mapped) const {
    return (mapped & ~kIndexMask) | place_of<kQuads>(e);
  }

  // The words of places beyond the row are the largest there is.
  template <bool kQuads>
  __device__ __forceinline__ void end_row(uint32_t (&row_words)[kItems]) const {
    if (length < kLanes * kItems) {
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        if (place_of<kQuads>(kQuads ? e / 4 * 4 : e) >= length) row_words[e] = ~0u;  // rows read in quads have a multiple of 4 keys
      }
    }
  }

  // Reads the rows, keeps their keys in shared memory and makes their words. Lanes beyond a row (or beyond the last row) read its last keys
  // again, which changes no extreme and needs no branch.
  template <bool kQuads>
  __device__ __forceinline__ void load(uint32_t (&row_words)[kItems]) {
    const int start = min(row_in_warp, live_rows - 1) * length;
    const U* from = arguments.keys_in + offset + start;
    U* kept = keys + start;
    U held[kItems];
    if constexpr (kQuads) {
#pragma unroll
      for (int e = 0; e < kItems; e += 4) {
        const int place = min(place_of<true>(e), length - 4);
        U quad[4];
        load_quad(from + place, quad);
        store_quad(kept + place, quad);
#pragma unroll
        for (int i = 0; i < 4; ++i) held[e + i] = quad[i];
      }
    } else {
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        const int place = min(place_of<false>(e), length - 1);
        held[e] = from[place];
        kept[place] = held[e];
      }
    }
    map_keys<kQuads>(held, row_words);
    end_row<kQuads>(row_words);
  }

  template <bool kQuads>
  __device__ __forceinline__ void map_keys(const U (&held)[kItems], uint32_t (&row_words)[kItems]) const {
    if constexpr (kWholeKeys) {
#pragma unroll
      for (int e = 0; e < kItems; ++e)
        row_words[e] = word_of<kQuads>(e, static_cast<uint32_t>(arguments.order.code(held[e])) << kIndexBits);
    } else if (!arguments.is_float) {
      const U flip = arguments.order.positive_flip;  // one for all integers
      map_codes<kQuads>(held, row_words, [=](U key) { return key ^ flip; });
    } else {
      if constexpr (sizeof(U) == 4) {
        if (map_finite_floats<kQuads>(held, row_words)) return;
      }
      KeyOrder<U> ascending = arguments.order;
      ascending.complement = 0;
      map_codes<kQuads>(held, row_words, [=](U key) { return ascending.code(key); });
    }
  }

  template <class T, class Combine>
  __device__ __forceinline__ T over_row(T value, Combine combine) const {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2)
      value = combine(value, static_cast<T>(__shfl_xor_sync(kWholeWarp, value, distance)));
    return value;
  }

  template <bool kQuads, class CodeOf>
  __device__ __forceinline__ void map_codes(const U (&held)[kItems], uint32_t (&row_words)[kItems], CodeOf code_of) const {
    U lowest = static_cast<U>(~U{0}), highest = 0;
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      const U code = code_of(held[e]);
      lowest = min(lowest, code);
      highest = max(highest, code);
    }
    lowest = over_row(lowest, [](U a, U b) { return min(a, b); });
    highest = over_row(highest, [](U a, U b) { return max(a, b); });
    const CodeMap<U> map(lowest, highest, arguments.descending);
#pragma unroll
    for (int e = 0; e < kItems; ++e) row_words[e] = word_of<kQuads>(e, map(code_of(held[e])));
  }

  // The same words with fewer instructions, where all keys of the warp are finite.
  template <bool kQuads>
  __device__ __forceinline__ bool map_finite_floats(const uint32_t (&held)[kItems], uint32_t (&row_words)[kItems]) const {
    FloatExtremes extremes;
#pragma unroll
    for (int e = 0; e < kItems; ++e) extremes.add(held[e]);
    extremes.least = over_row(extremes.least, [](uint32_t a, uint32_t b) { return min(a, b); });
    extremes.greatest = over_row(extremes.greatest, [](uint32_t a, uint32_t b) { return max(a, b); });
    extremes.greatest_signed = over_row(extremes.greatest_signed, [](int32_t a, int32_t b) { return max(a, b); });
    if (!__all_sync(kWholeWarp, extremes.all_finite())) return false;
    const CodeMap<uint32_t> map(ordered_float_bits(extremes.lowest()), ordered_float_bits(extremes.highest()), arguments.descending);
#pragma unroll
    for (int e = 0; e < kItems; ++e) row_words[e] = word_of<kQuads>(e, map(ordered_float_bits(__uint_as_float(held[e]))));
    return true;
  }

  // Stores sorted words where all lanes of the warp find them.
  __device__ __forceinline__ void store_words(const uint32_t (&row_words)[kItems]) {
    __syncwarp();
    if (32 % kItems == 0 && length == kLanes * kItems) {  // a lane's words do not cross the padding
      uint32_t* own_words = words + padded_position(lane * kItems);
#pragma unroll
      for (int e = 0; e < kItems; ++e) own_words[e] = row_words[e];
    } else {
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        const int rank = first_place() + e;
        if (rank < length) word_at(row_in_warp * length + rank) = row_words[e];
      }
    }
    __syncwarp();
  }

  __device__ __forceinline__ void fetch_words(uint32_t (&row_words)[kItems]) const {
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      const int rank = first_place() + e;
      row_words[e] = rank < length ? word_at(row_in_warp * length + rank) : ~0u;
    }
  }

  __device__ __forceinline__ uint32_t ties_of(const uint32_t (&row_words)[kItems]) const {
    const uint32_t next = __shfl_down_sync(kWholeWarp, row_words[0], 1);
    const int pairs = row_in_warp < live_rows ? length - 1 - first_place() : 0;
    return find_ties(row_words, next, pairs, kIndexBits);
  }

  __device__ __forceinline__ SortedRow<U> sorted_row() const {
    const int start = row_in_warp * length;
    return SortedRow<U>{words, start, keys + start, row_in_warp < live_rows ? length : 0, kIndexBits, arguments.order};
  }
  __device__ __forceinline__ LongRuns<U, kItems> long_runs() const {
    return LongRuns<U, kItems>(reinterpret_cast<char*>(keys) + kKeyBytes, kPlaces);
  }

  // Puts the stored words right; true when they are new ones, to be sorted again.
  __device__ __forceinline__ bool mend(uint32_t ties) const {
    const SortedRow<U> row = sorted_row();
    const RunEdges edges = find_run_edges<kItems>(row, first_place(), ties);
    __syncwarp();
    const bool spread = __any_sync(kWholeWarp, mend_runs<kItems>(row, first_place(), ties, edges));
    __syncwarp();
    if (!spread) return false;
    spread_long_runs<kItems>(row, lane_in_row, kLanes, ties, edges, long_runs(), [] { __syncwarp(); });
    __syncwarp();
    return true;
  }

  // The same for rows of many ties.
  __device__ __forceinline__ bool mend_many(uint32_t ties) const {
    const SortedRow<U> row = sorted_row();
    const uint32_t wrong = find_disorder<kItems>(row, first_place(), ties);
    if (!__any_sync(kWholeWarp, wrong != 0)) return false;
    const RunEdges edges = find_long_edges<kItems>(row, first_place(), ties);
    __syncwarp();
    const bool spread = __any_sync(kWholeWarp, mend_many_runs<kItems>(row, first_place(), ties, wrong, edges));
    __syncwarp();
    if (!spread) return false;
    spread_items<kItems>(row, lane_in_row, kLanes, ties, edges, long_runs(), [] { __syncwarp(); });
    __syncwarp();
    return true;
  }

  // Writes the rows from the stored words, coalesced over all rows of the warp.
  __device__ __forceinline__ void write() const {
    const int total = live_rows * length;
    const uint32_t reciprocal = 0xffffffffu / static_cast<uint32_t>(length) + 1;  // exact quotients: places are below 2^10
    const RowOutput<U> output(arguments, offset);
#pragma unroll 4
    for (int i = 0; i < kItems; ++i) {
      const int place = i * 32 + lane;
      if (place >= total) break;
      const int row = kRowsPerWarp == 1 ? 0 : static_cast<int>(__umulhi(static_cast<uint32_t>(place), reciprocal));
      const uint32_t index = word_at(place) & kIndexMask;
      output.store(place, keys[row * length + index], index);
    }
  }

  // Writes the rows from the lanes' words, four neighbours at a time.
  __device__ __forceinline__ void write_quads(const uint32_t (&row_words)[kItems]) const {
    const RowOutput<U> output(arguments, offset);
    const int start = row_in_warp * length;
    __syncwarp();  // the keys were kept by other lanes
#pragma unroll
    for (int e = 0; e < kItems; e += 4) {
      const int place = first_place() + e;
      if (row_in_warp < live_rows && place < length) {
        U sorted[4];
        uint32_t indices[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          indices[i] = row_words[e + i] & kIndexMask;
          sorted[i] = keys[start + indices[i]];
        }
        output.store_quad_at(start + place, sorted, indices);
      }
    }
  }
};

template <class U, int kLanes, int kItems>
__device__ __forceinline__ RegisterRows<U, kLanes, kItems> rows_of_warp(const RowArguments<U>& arguments, int64_t first_row,
                                                                        char* storage) {
  using Rows = RegisterRows<U, kLanes, kItems>;
  const int lane = threadIdx.x % 32;
  const int64_t rows_left = arguments.rows - first_row;
  return Rows{arguments,
              lane,
              lane % kLanes,
              lane / kLanes,
              rows_left < Rows::kRowsPerWarp ? static_cast<int>(rows_left) : Rows::kRowsPerWarp,
              arguments.length,
              first_row * arguments.length,
              reinterpret_cast<U*>(storage),
              reinterpret_cast<uint32_t*>(storage + Rows::kKeyBytes + long_run_bytes(sizeof(U), Rows::kPlaces, kItems))};
}

// The rare rest, out of line so that it takes no registers from the common path.
template <class U, int kLanes, int kItems>
__device__ __noinline__ bool mend_register_rows(const RowArguments<U>* arguments, int64_t first_row, char* storage, uint32_t ties) {
  return rows_of_warp<U, kLanes, kItems>(*arguments, first_row, storage).mend(ties);
}

template <class U, int kLanes, int kItems>
__device__ __noinline__ bool mend_register_rows_of_many_ties(const RowArguments<U>* arguments, int64_t first_row, char* storage,
                                                             uint32_t ties) {
  return rows_of_warp<U, kLanes, kItems>(*arguments, first_row, storage).mend_many(ties);
}

// Blocks to an SM that the registers must allow: 48 a thread at 8 items and less, 56 up to 18.
constexpr int min_blocks(int items) {
  return items <= 8 ? 10 : 9;
}

// Up to here a lane's piece of the output is written from registers (H200, 2^26 float32: rows of 16 280 us; rows of 64, at 8 items, 347,
// else 299).
constexpr int kMostItemsInQuads = 4;

template <class U, int kLanes, int kItems>
__global__ void __launch_bounds__(row_shapes::kWarpsPerBlock * 32, min_blocks(kItems))
    register_rows_kernel(const __grid_constant__ RowArguments<U> arguments) {
  using Rows = RegisterRows<U, kLanes, kItems>;
  start_after_predecessor();
  extern __shared__ uint4 shared_memory[];
  const int warp = threadIdx.x / 32;
  const int64_t first_row = (static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + warp) * Rows::kRowsPerWarp;
  if (first_row >= arguments.rows) return;
  char* storage = reinterpret_cast<char*>(shared_memory) + warp * Rows::kWarpBytes;
  auto rows = rows_of_warp<U, kLanes, kItems>(arguments, first_row, storage);

  uint32_t words[kItems];
  bool quads = false;
  if constexpr (kItems % 4 == 0) quads = arguments.quads;
  if (quads) {
    if constexpr (kItems % 4 == 0) rows.template load<true>(words);
  } else {
    rows.template load<false>(words);
  }
  bool again = false;
  do {
    lanes_sort<kLanes>(words, rows.lane);
    again = false;
    if constexpr (!Rows::kWholeKeys) {
      const uint32_t ties = rows.ties_of(words);
      if (__any_sync(kWholeWarp, ties != 0)) {
        rows.store_words(words);
        bool many = false;
        if constexpr (Rows::kMendsManyTies)
          many = __popc(__ballot_sync(kWholeWarp, many_ties<kItems>(ties))) > 8;  // a quarter of the lanes
        again = many ? mend_register_rows_of_many_ties<U, kLanes, kItems>(&arguments, first_row, storage, ties)
                     : mend_register_rows<U, kLanes, kItems>(&arguments, first_row, storage, ties);
        rows.fetch_words(words);
      }
    }
  } while (again);
  if constexpr (kItems % 4 == 0 && kItems <= kMostItemsInQuads) {
    if (arguments.quad_stores) {
      rows.write_quads(words);
      return;
    }
  }
  rows.store_words(words);
  rows.write();
}

}  // namespace gpusort
