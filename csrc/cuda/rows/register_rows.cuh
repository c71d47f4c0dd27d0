// Rows of 2 to 256 keys, several to a warp, sorted as 32-bit words in registers.
//
// word = leading bits of a monotone map of the key << index_bits | index in the row. All words of a row differ, so a sorting network sorts
// them stably with one register and two instructions to a compare-exchange. Keys of 8 and 16 bits fit whole above the index; of wider keys
// the leading bits of the row's range are kept (24 or more), and descents among equal leading bits are mended while the row is written.
// Where that fails (long runs) the warp sorts its rows again by the same words in the manner of a radix sort: the lowest bits of the code
// first, then the next, each pass stable since a word holds the place of the key in the pass before; 2 passes for 32 bits, 3 for 64.
// Memory: one read and one write of the data. Nothing is kept between blocks.
#pragma once

#include <cstdint>

#include "../../core/word_map.h"
#include "../../plan/row_plan.h"
#include "lane_sort.cuh"
#include "row_access.cuh"
#include "tie_repair.cuh"

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
  static constexpr int kLeadingBits = 32 - kIndexBits;
  static constexpr int kPasses = (kKeyBits + kLeadingBits - 1) / kLeadingBits;  // of the exact sort
  static constexpr int kPlaces = 32 * kItems;
  static constexpr int kKeyBytes = static_cast<int>(round_up(kPlaces * static_cast<int>(sizeof(U)), 16));
  static constexpr int kWarpBytes = static_cast<int>(round_up(row_shared_bytes(sizeof(U), kPlaces), 16));

  const RowArguments<U>& arguments;
  int lane, lane_in_row, row_in_warp, live_rows, length;
  int64_t offset;  // of the warp's first row
  U* keys;         // of the warp's rows, in shared memory
  uint32_t* words;

  __device__ __forceinline__ uint32_t& word_at(int place) { return words[padded_position(place)]; }

  // Item e of a lane is this place of its row.
  template <bool kQuads>
  __device__ __forceinline__ int place_of(int e) const {
    return kQuads ? (e / 4 * kLanes + lane_in_row) * 4 + e % 4 : e * kLanes + lane_in_row;
  }

  template <bool kQuads>
  __device__ __forceinline__ bool in_row(int e) const {
    return place_of<kQuads>(kQuads ? e / 4 * 4 : e) < length;  // rows read in quads have a multiple of 4 keys
  }

  // Reads the rows, keeps their keys in shared memory and makes their words. Lanes beyond a row (or beyond the last row) read its last keys
  // again, which changes no extreme and needs no branch; their words are the largest there is.
  template <bool kQuads>
  __device__ __forceinline__ void load(uint32_t (&row_words)[kItems]) {
    const int start = min(row_in_warp, live_rows - 1) * length;
    const U* from = arguments.keys_in + offset + start;
    U* kept = keys + start;
    KeyOrder<U> ascending = arguments.order;
    ascending.complement = 0;
    U codes[kItems];
    if constexpr (kQuads) {
#pragma unroll
      for (int e = 0; e < kItems; e += 4) {
        const int place = min(place_of<true>(e), length - 4);
        U quad[4];
        load_quad(from + place, quad);
        store_quad(kept + place, quad);
#pragma unroll
        for (int i = 0; i < 4; ++i) codes[e + i] = quad[i];
      }
    } else {
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        const int place = min(place_of<false>(e), length - 1);
        codes[e] = from[place];
        kept[place] = codes[e];
      }
    }
    if constexpr (kWholeKeys) {
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        const uint32_t code = arguments.order.code(codes[e]);
        row_words[e] = in_row<kQuads>(e) ? code << kIndexBits | place_of<kQuads>(e) : ~0u;
      }
    } else {
      U lowest = static_cast<U>(~U{0}), highest = 0;
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        codes[e] = ascending.code(codes[e]);
        lowest = min(lowest, codes[e]);
        highest = max(highest, codes[e]);
      }
#pragma unroll
      for (int distance = kLanes / 2; distance > 0; distance /= 2) {
        lowest = min(lowest, static_cast<U>(__shfl_xor_sync(kWholeWarp, lowest, distance)));
        highest = max(highest, static_cast<U>(__shfl_xor_sync(kWholeWarp, highest, distance)));
      }
      const CodeMap<U> map(lowest, highest, arguments.descending);
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        row_words[e] = in_row<kQuads>(e) ? (map(codes[e]) & ~kIndexMask) | place_of<kQuads>(e) : ~0u;
      }
    }
  }

  // Words of one pass of the exact sort: the code's bits from `shift` on, and the place of the key in the order of the pass before.
  __device__ __forceinline__ void load_pass(uint32_t (&row_words)[kItems], bool first, int shift) {
    const int start = row_in_warp * length;
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      const int place = place_of<false>(e);
      row_words[e] = ~0u;
      if (row_in_warp < live_rows && place < length) {
        const uint32_t index = first ? static_cast<uint32_t>(place) : word_at(start + place) & kIndexMask;
        const U code = arguments.order.code(keys[start + index]);
        row_words[e] = static_cast<uint32_t>(code >> shift) << kIndexBits | place;
      }
    }
  }

  // Words of places become words of indices: word_at() still holds the order of the pass before.
  __device__ __forceinline__ void follow_places(uint32_t (&row_words)[kItems]) {
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      if (lane_in_row * kItems + e < length) row_words[e] = word_at(row_in_warp * length + (row_words[e] & kIndexMask));
    }
  }

  // Stores sorted words where all lanes of the warp find them.
  __device__ __forceinline__ void store_words(const uint32_t (&row_words)[kItems]) {
    __syncwarp();
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      const int rank = lane_in_row * kItems + e;
      if (rank < length) word_at(row_in_warp * length + rank) = row_words[e];
    }
    __syncwarp();
  }

  // Writes the rows, coalesced over all rows of the warp. Returns at which of its places (bit i: place i * 32 + lane) this lane saw a key
  // above the next one with the same leading bits.
  __device__ __forceinline__ uint32_t write() {
    const int total = live_rows * length;
    const uint32_t reciprocal = 0xffffffffu / static_cast<uint32_t>(length) + 1;  // exact quotients: places are below 2^10
    const RowOutput<U> output(arguments, offset);
    uint32_t descents = 0;
#pragma unroll 4
    for (int i = 0; i < kItems; ++i) {
      const int place = i * 32 + lane;
      if (place >= total) break;
      const int row = kRowsPerWarp == 1 ? 0 : static_cast<int>(__umulhi(static_cast<uint32_t>(place), reciprocal));
      const uint32_t word = word_at(place);
      const uint32_t index = word & kIndexMask;
      const U* row_keys = keys + row * length;
      const U key = row_keys[index];
      output.store(place, key, index);
      if constexpr (!kWholeKeys) {
        const uint32_t next = place + 1 < (row + 1) * length ? word_at(place + 1) : ~word;
        if ((word ^ next) >> kIndexBits == 0 && arguments.order.less(row_keys[next & kIndexMask], key)) descents |= 1u << i;
      }
    }
    return descents;
  }

  // Mends the descents seen by write(); false when the rows must be sorted exactly instead.
  __device__ __forceinline__ bool mend(uint32_t descents) {
    int count = __popc(descents);
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) count += __shfl_xor_sync(kWholeWarp, count, distance);
    bool failed = count * 4 > live_rows * length;  // so many descents are dearer to mend than to avoid
    while (descents != 0 && !failed) {
      const int place = (__ffs(static_cast<int>(descents)) - 1) * 32 + lane;
      descents &= descents - 1;
      const int row = place / length;
      failed = !repair_run(&arguments, offset + row * length, words, row * length, keys + row * length, place - row * length, kIndexBits);
    }
    return !__any_sync(kWholeWarp, failed);
  }

  // Sorts the warp's rows again, by all bits of the code.
  __device__ __forceinline__ void sort_exactly() {
    uint32_t row_words[kItems];
#pragma unroll 1
    for (int pass = 0; pass < kPasses; ++pass) {
      load_pass(row_words, pass == 0, pass * kLeadingBits);
      lanes_sort<kLanes>(row_words, lane);
      if (pass > 0) follow_places(row_words);
      store_words(row_words);
    }
    write();
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
              reinterpret_cast<uint32_t*>(storage + Rows::kKeyBytes)};
}

// The rare rest, out of line so that it takes no registers from the common path.
template <class U, int kLanes, int kItems>
__device__ __noinline__ void finish_register_rows(const RowArguments<U>* arguments, int64_t first_row, char* storage, uint32_t descents) {
  auto rows = rows_of_warp<U, kLanes, kItems>(*arguments, first_row, storage);
  if (!rows.mend(descents)) rows.sort_exactly();
}

// Blocks to an SM that the registers must allow: 48 a thread at 8 items, 64 up to 18; a quarter more for 64-bit keys.
template <class U>
constexpr int min_blocks(int items) {
  return sizeof(U) == 8 ? (items <= 8 ? 8 : 6) : (items <= 8 ? 10 : 8);
}

template <class U, int kLanes, int kItems>
__global__ void __launch_bounds__(row_shapes::kWarpsPerBlock * 32, min_blocks<U>(kItems))
    register_rows_kernel(const __grid_constant__ RowArguments<U> arguments) {
  using Rows = RegisterRows<U, kLanes, kItems>;
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
  lanes_sort<kLanes>(words, rows.lane);
  rows.store_words(words);
  const uint32_t descents = rows.write();
  if constexpr (!Rows::kWholeKeys) {
    if (__any_sync(kWholeWarp, descents != 0)) finish_register_rows<U, kLanes, kItems>(&arguments, first_row, storage, descents);
  }
}

}  // namespace gpusort
