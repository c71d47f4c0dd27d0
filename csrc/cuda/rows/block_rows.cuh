// Rows of up to 16384 keys, one to a block, sorted as 32-bit words: each warp sorts its words in registers, then runs are merged in shared
// memory by merge path until one is left.
//
// Words, ties and the exact sort are those of register_rows.cuh; the leading bits are fewer here (18 at 16384), so finite floats get the
// value maps of core/word_map.h. The exact sort of the few rows whose ties can not be mended runs in the same block: ceil(key bits /
// leading bits) passes over the same words, each stable, with the order of the pass before noted in the row's own output. So a row costs
// one read and one write, and in the worst case 2 more sorts of its words (32-bit keys; 3 or 4 for 64 bits), whatever the data. Merge path:
// Odeh, Green, Mwassi, Shmueli, Birk, "Merge path" (2012); words differ, so the split is unique.
#pragma once

#include <cstdint>

#include "../../core/word_map.h"
#include "../../plan/row_plan.h"
#include "lane_sort.cuh"
#include "row_access.cuh"
#include "tie_repair.cuh"
#include "warp_reduce.cuh"

namespace gpusort {

constexpr int kLinearMapLength = 5120;  // longer rows take LinearMap where it fits (H200: 8192 normal 667 us with it)
constexpr int kScaledMapBits = 28;      // codes that span less keep more leading bits by CodeMap than by ScaledMap

// What one row's maps are made of, shared by the block.
template <class U>
struct RowExtremes {
  U lowest[32];
  U highest[32];
  float sum[32];
};

enum class MapKind { kCodes, kScaled, kLinear };

template <class U, int kItems>
struct BlockRows {
  static constexpr bool kWholeKeys = sizeof(U) <= 2;
  static constexpr bool kKeepsKeys = sizeof(U) <= 4;  // 64-bit keys are read again from shared memory, to spare registers
  static constexpr int kKeyBits = static_cast<int>(sizeof(U) * 8);

  const RowArguments<U>& arguments;
  int thread, threads, length;
  int index_bits;
  int64_t offset;  // of the row in the arrays
  U* keys;         // the row's keys, in shared memory
  uint32_t* words;

  __device__ __forceinline__ uint32_t index_mask() const { return (1u << index_bits) - 1; }
  __device__ __forceinline__ uint32_t& word_at(int place) { return words[padded_position(place)]; }

  // Item e of a thread is this place of the row, striped by threads, or by fours when quads are read. 64-bit keys are always striped once
  // they are in shared memory.
  template <bool kQuads>
  __device__ __forceinline__ int place_of(int e) const {
    return kQuads ? (e / 4 * threads + thread) * 4 + e % 4 : e * threads + thread;
  }

  template <bool kQuads>
  __device__ __forceinline__ bool in_row(int e) const {
    return place_of<kQuads>(kQuads ? e / 4 * 4 : e) < length;  // rows read in quads have a multiple of 4 keys
  }

  // Reads the row and keeps its keys in shared memory. Places beyond the row read its last keys again, which changes no extreme.
  template <bool kQuads>
  __device__ __forceinline__ void load(U (&held)[kItems]) {
    const U* from = arguments.keys_in + offset;
    if constexpr (kQuads) {
#pragma unroll
      for (int e = 0; e < kItems; e += 4) {
        const int place = min(place_of<true>(e), length - 4);
        U quad[4];
        load_quad(from + place, quad);
        store_quad(keys + place, quad);
        if constexpr (kKeepsKeys) {
#pragma unroll
          for (int i = 0; i < 4; ++i) held[e + i] = quad[i];
        }
      }
    } else {
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        const int place = min(place_of<false>(e), length - 1);
        const U key = from[place];
        keys[place] = key;
        if constexpr (kKeepsKeys) held[e] = key;
      }
    }
    if constexpr (!kKeepsKeys) __syncthreads();
  }

  // Calls visit(e, key) for this thread's keys.
  template <class Visit>
  __device__ __forceinline__ void for_each_key(const U (&held)[kItems], Visit visit) const {
#pragma unroll
    for (int e = 0; e < kItems; ++e) visit(e, kKeepsKeys ? held[e] : keys[min(place_of<false>(e), length - 1)]);
  }

  template <class T>
  __device__ __forceinline__ void reduce_extremes(T& lowest, T& highest, T* lowest_of_warps, T* highest_of_warps) const {
    const int warp = thread / 32, lane = thread % 32, warps = threads / 32;
    lowest = warp_min(lowest);
    highest = warp_max(highest);
    if (warps == 1) return;
    if (lane == 0) {
      lowest_of_warps[warp] = lowest;
      highest_of_warps[warp] = highest;
    }
    __syncthreads();
    const int other = lane < warps ? lane : 0;
    lowest = warp_min(lowest_of_warps[other]);
    highest = warp_max(highest_of_warps[other]);
  }

  // Reads the row, chooses its map from its extremes and makes the words.
  template <bool kQuads>
  __device__ __forceinline__ void load_words(uint32_t (&row_words)[kItems], RowExtremes<U>& shared) {
    constexpr bool kByFours = kQuads && kKeepsKeys;
    U held[kItems];
    load<kQuads>(held);
    const uint32_t mask = index_mask();
    const auto set_word = [&](int e, uint32_t mapped) {
      row_words[e] = in_row<kByFours>(e) ? (mapped & ~mask) | place_of<kByFours>(e) : ~0u;
    };
    if constexpr (kWholeKeys) {
      for_each_key(held, [&](int e, U key) { set_word(e, static_cast<uint32_t>(arguments.order.code(key)) << (32 - kKeyBits)); });
    } else {
      const bool descending = arguments.descending;
      MapKind kind = MapKind::kCodes;
      float least = 0.0f, greatest = 0.0f;
      if (arguments.is_float) kind = choose_value_map(held, shared, least, greatest);
      if (kind == MapKind::kScaled) {
        const ScaledMap map(fmaxf(fabsf(least), fabsf(greatest)), descending);
        for_each_key(held, [&](int e, U key) { set_word(e, map(float_of_bits(key))); });
      } else if (kind == MapKind::kLinear) {
        const LinearMap map(least, greatest, descending);
        for_each_key(held, [&](int e, U key) { set_word(e, map(float_of_bits(key))); });
      } else {
        KeyOrder<U> ascending = arguments.order;
        ascending.complement = 0;
        U lowest = static_cast<U>(~U{0}), highest = 0;
        for_each_key(held, [&](int, U key) {
          const U code = ascending.code(key);
          lowest = min(lowest, code);
          highest = max(highest, code);
        });
        reduce_extremes(lowest, highest, shared.lowest, shared.highest);
        const CodeMap<U> map(lowest, highest, descending);
        for_each_key(held, [&](int e, U key) { set_word(e, map(ascending.code(key))); });
      }
    }
  }

  // A value map for a row of finite floats, unless their codes are close enough together to be better off with CodeMap.
  __device__ __forceinline__ MapKind choose_value_map(const U (&held)[kItems], RowExtremes<U>& shared, float& least, float& greatest) {
    const int warp = thread / 32, lane = thread % 32, warps = threads / 32;
    least = INFINITY;
    greatest = -INFINITY;
    float sum = 0.0f;
    for_each_key(held, [&](int, U key) {
      const float value = float_of_bits(key);
      least = fminf(least, value);
      greatest = fmaxf(greatest, value);
      sum += value;
    });
    sum = warp_sum(sum);
    if (warps > 1 && lane == 0) shared.sum[warp] = sum;
    uint32_t lowest = ordered_bits(least), highest = ordered_bits(greatest);
    reduce_extremes(lowest, highest, reinterpret_cast<uint32_t*>(shared.lowest), reinterpret_cast<uint32_t*>(shared.highest));
    if (warps > 1) {
      sum = warp_sum(lane < warps ? shared.sum[lane] : 0.0f);
      __syncthreads();  // the arrays may be used once more
    }
    least = value_of_ordered(lowest);
    greatest = value_of_ordered(highest);
    if (!(fabsf(sum) < INFINITY)) return MapKind::kCodes;  // an infinity, a NaN, or too large to tell
    const int bits = range_bits(highest - lowest);
    if (bits <= 32 - index_bits) return MapKind::kCodes;
    if (length > kLinearMapLength && LinearMap::fits(least, greatest)) {
      const float middle = (sum / static_cast<float>(threads * kItems) - least) / (greatest - least);
      if (middle > 0.05f && middle < 0.95f) return MapKind::kLinear;  // else most values crowd at one end
    }
    return bits <= kScaledMapBits ? MapKind::kCodes : MapKind::kScaled;
  }

  // Order-preserving bits of a float that is not NaN.
  __device__ __forceinline__ static uint32_t ordered_bits(float value) {
    const uint32_t bits = __float_as_uint(value);
    return bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u);
  }

  __device__ __forceinline__ static float value_of_ordered(uint32_t ordered) {
    return __uint_as_float(ordered ^ (static_cast<uint32_t>(static_cast<int32_t>(~ordered) >> 31) | 0x80000000u));
  }

  __device__ __forceinline__ void store_words(const uint32_t (&row_words)[kItems]) {
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kItems; ++e) word_at(thread * kItems + e) = row_words[e];
    __syncthreads();
  }

  // Sorts the block's words; afterwards word_at(p) is the word of rank p for every thread.
  __device__ __forceinline__ void sort_words(uint32_t (&row_words)[kItems]) {
    lanes_sort<32>(row_words, thread % 32);
    const int places = threads * kItems;
#pragma unroll 1
    for (int run = 32 * kItems; run < places; run *= 2) {
      store_words(row_words);
      // This thread makes kItems outputs of the merge of two neighbouring runs, [left, left_end) and [left_end, right_end).
      const int output = thread * kItems;
      const int left = output / (2 * run) * (2 * run);
      const int left_end = min(left + run, places), right_end = min(left + 2 * run, places);
      const int diagonal = output - left;
      int low = max(0, diagonal - (right_end - left_end)), high = min(diagonal, left_end - left);
      while (low < high) {
        const int middle = (low + high) >> 1;
        if (word_at(left + middle) <= word_at(left_end + diagonal - 1 - middle)) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      int a = left + low, b = left_end + diagonal - low;
      uint32_t a_word = a < left_end ? word_at(a) : ~0u, b_word = b < right_end ? word_at(b) : ~0u;
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        const bool take_b = b_word < a_word;
        row_words[e] = take_b ? b_word : a_word;
        a += !take_b;
        b += take_b;
        const int place = take_b ? b : a, end = take_b ? right_end : left_end;
        uint32_t next = ~0u;
        if (place < end) next = word_at(place);
        if (take_b) {
          b_word = next;
        } else {
          a_word = next;
        }
      }
    }
    store_words(row_words);
  }

  // Writes the row in the order of the words. Returns at which of its places (bit i: place i * threads + thread) this thread saw a key
  // above the next one with the same leading bits.
  __device__ __forceinline__ uint32_t write() {
    const uint32_t mask = index_mask();
    const RowOutput<U> output(arguments, offset);
    uint32_t descents = 0;
#pragma unroll 4
    for (int i = 0; i < kItems; ++i) {
      const int place = i * threads + thread;
      if (place >= length) break;
      const uint32_t word = word_at(place);
      const uint32_t index = word & mask;
      const U key = keys[index];
      output.store(place, key, index);
      if constexpr (!kWholeKeys) {
        const uint32_t next = place + 1 < length ? word_at(place + 1) : ~word;
        if ((word ^ next) >> index_bits == 0 && arguments.order.less(keys[next & mask], key)) descents |= 1u << i;
      }
    }
    return descents;
  }

  // Mends the descents seen by write(); false when the row must be sorted exactly instead. The same for all threads.
  __device__ __forceinline__ bool mend(uint32_t descents) {
    const int crowded = __syncthreads_count(__popc(descents) * 4 > kItems);
    if (crowded * 4 > threads) return false;  // so many descents are dearer to mend than to avoid
    bool failed = false;
    while (descents != 0 && !failed) {
      const int place = (__ffs(static_cast<int>(descents)) - 1) * threads + thread;
      descents &= descents - 1;
      failed = !repair_run(&arguments, offset, words, 0, keys, place, index_bits);
    }
    return !__syncthreads_or(failed);
  }

  // Sorts the row again, by all bits of the code.
  __device__ __forceinline__ void sort_exactly() {
    uint32_t row_words[kItems];
    const int leading_bits = 32 - index_bits;
#pragma unroll 1
    for (int shift = 0; shift < kKeyBits; shift += leading_bits) {
      load_pass(row_words, shift == 0, shift);
      sort_words(row_words);
      if (shift > 0) follow_places(row_words);
    }
    write();
  }

  // Words of one pass of the exact sort: the code's bits from `shift` on, and the place of the key in the order of the pass before.
  __device__ __forceinline__ void load_pass(uint32_t (&row_words)[kItems], bool first, int shift) {
    uint32_t* notes = RowOutput<U>(arguments, offset).notes();
    const uint32_t mask = index_mask();
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      const int place = e * threads + thread;
      row_words[e] = ~0u;
      if (place < length) {
        uint32_t index = place;
        if (!first) {
          index = word_at(place) & mask;
          notes[place] = index;
        }
        row_words[e] = static_cast<uint32_t>(arguments.order.code(keys[index]) >> shift) << index_bits | place;
      }
    }
  }

  // Words of places become words of indices, by the notes of load_pass().
  __device__ __forceinline__ void follow_places(uint32_t (&row_words)[kItems]) {
    const uint32_t* notes = RowOutput<U>(arguments, offset).notes();
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      const int place = e * threads + thread;
      if (place < length) row_words[e] = notes[word_at(place) & index_mask()];
    }
    __syncthreads();  // the notes are read before they are written over
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      const int place = e * threads + thread;
      if (place < length) word_at(place) = row_words[e];
    }
    __syncthreads();
  }
};

template <class U, int kItems>
__device__ __forceinline__ BlockRows<U, kItems> row_of_block(const RowArguments<U>& arguments, uint4* storage) {
  using Rows = BlockRows<U, kItems>;
  const int threads = blockDim.x;
  const int key_bytes = (threads * kItems * static_cast<int>(sizeof(U)) + 15) / 16 * 16;
  return Rows{arguments,
              static_cast<int>(threadIdx.x),
              threads,
              arguments.length,
              Rows::kWholeKeys ? 32 - Rows::kKeyBits : 32 - __clz(arguments.length - 1),
              static_cast<int64_t>(blockIdx.x) * arguments.length,
              reinterpret_cast<U*>(storage),
              reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(storage) + key_bytes)};
}

// The rare rest, out of line so that it takes no registers from the common path.
template <class U, int kItems>
__device__ __noinline__ void finish_block_row(const RowArguments<U>* arguments, uint4* storage, uint32_t descents) {
  auto rows = row_of_block<U, kItems>(*arguments, storage);
  if (!rows.mend(descents)) rows.sort_exactly();
}

// Registers: 80 a thread let 256 threads x 32 items run 3 blocks to an SM (667 us at 8192; 757 with 2 blocks), 64 let 1024 threads run at
// all.
template <class U, int kItems>
__global__ void __maxnreg__(kItems > 16 ? 80 : 64) block_rows_kernel(const __grid_constant__ RowArguments<U> arguments) {
  extern __shared__ uint4 shared_memory[];
  __shared__ RowExtremes<U> extremes;
  auto rows = row_of_block<U, kItems>(arguments, shared_memory);
  uint32_t words[kItems];
  bool quads = false;
  if constexpr (kItems % 4 == 0) quads = arguments.quads;
  if (quads) {
    if constexpr (kItems % 4 == 0) rows.template load_words<true>(words, extremes);
  } else {
    rows.template load_words<false>(words, extremes);
  }
  rows.sort_words(words);
  const uint32_t descents = rows.write();
  if constexpr (!BlockRows<U, kItems>::kWholeKeys) {
    // The barrier also puts the mending after the plain output.
    if (__syncthreads_or(descents != 0)) finish_block_row<U, kItems>(&arguments, shared_memory, descents);
  }
}

}  // namespace gpusort
