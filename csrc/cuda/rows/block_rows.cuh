// Rows of up to 16384 keys, one to a block, sorted as 32-bit words: each warp sorts its words in registers, then runs are merged in shared
// memory by merge path until one is left.
//
// Words and ties are those of register_rows.cuh; the leading bits are fewer here (18 at 16384), so finite floats get the value maps of
// core/word_map.h. A row costs one read and one write, and where long runs of equal leading bits are out of order one sort more of new
// words (tie_runs.cuh). Merge path: Odeh, Green, Mwassi, Shmueli, Birk, "Merge path" (2012); words differ, so the split is unique.
#pragma once

#include <cstdint>

#include "../../core/word_map.h"
#include "../../plan/row_plan.h"
#include "../primitives/dependent_launch.cuh"
#include "lane_sort.cuh"
#include "row_access.cuh"
#include "tie_runs.cuh"
#include "warp_reduce.cuh"

namespace gpusort {

constexpr int kLinearMapLength = 5120;  // longer rows take LinearMap where it fits (H200: 8192 normal 667 us with it)
constexpr int kScaledMapBits = 28;      // codes that span less keep more leading bits by CodeMap than by ScaledMap
// In rows to so many keys a few are looked at: if more than one of kSamplesPerTiny is tiny (FloatExtremes), the codes serve better. H200,
// 2^24 keys in rows of 1024, us: runs of random bits 355 to 166, Zipf 418 to 482, normal 106.9 to 107.9; 608 rows of 676 of Zipf 29 to 15.
constexpr int kSampledLength = 2048;
constexpr int kSamplesPerTiny = 64;

// What one row's maps are made of: the warps' parts.
template <class U>
struct RowExtremes {
  U lowest[32];
  U highest[32];
  uint32_t least[32];
  uint32_t greatest[32];
  int32_t greatest_signed[32];
  float sum[32];
};

// The row's keys wait for the output in shared memory, or (kFarKeys) where they came from: a row of 16384 then leaves room for a second.
template <class U, int kItems, bool kFarKeys>
struct BlockRow {
  static constexpr bool kWholeKeys = sizeof(U) <= 2;
  static constexpr bool kKeepsKeys = sizeof(U) <= 4;  // 64-bit keys are read again from shared memory, to spare registers
  static constexpr int kKeyBits = static_cast<int>(sizeof(U) * 8);
  static constexpr bool kAlignedItems = 32 % kItems == 0;  // a thread's words do not cross the padding

  const RowArguments<U>& arguments;
  int thread, threads, length;
  int index_bits;
  int64_t offset;  // of the row in the arrays
  const U* keys;   // the row's
  uint32_t* words;
  void* long_runs;

  __device__ __forceinline__ uint32_t& word_at(int place) const { return words[padded_position(place)]; }
  __device__ __forceinline__ int first_place() const { return thread * kItems; }  // of the thread's sorted words

  // Word e of this thread.
  __device__ __forceinline__ uint32_t& own_word(int e) const {
    return kAlignedItems ? words[padded_position(first_place()) + e] : word_at(first_place() + e);
  }

  // Item e of a thread is read from this place of the row, striped by threads, or by fours when quads are read. 64-bit keys are always
  // striped once they are in shared memory.
  template <bool kQuads>
  __device__ __forceinline__ int place_of(int e) const {
    return kQuads ? (e / 4 * threads + thread) * 4 + e % 4 : e * threads + thread;
  }

  template <bool kQuads>
  __device__ __forceinline__ uint32_t word_of(int e, uint32_t mapped) const {
    return (mapped & ~((1u << index_bits) - 1)) | place_of<kQuads>(e);
  }

  // The words of places beyond the row are the largest there is.
  template <bool kQuads>
  __device__ __forceinline__ void end_row(uint32_t (&row_words)[kItems]) const {
    if (length < threads * kItems) {
#pragma unroll
      for (int e = 0; e < kItems; ++e) {
        if (place_of<kQuads>(kQuads ? e / 4 * 4 : e) >= length) row_words[e] = ~0u;  // rows read in quads have a multiple of 4 keys
      }
    }
  }

  // Reads the row and, unless they stay far, keeps its keys in shared memory. Places beyond the row read its last keys again, which changes
  // no extreme.
  template <bool kQuads>
  __device__ __forceinline__ void load(U (&held)[kItems]) {
    if constexpr (kFarKeys && !kKeepsKeys) return;
    const U* from = arguments.keys_in + offset;
    U* kept = const_cast<U*>(keys);
    if constexpr (kQuads) {
#pragma unroll
      for (int e = 0; e < kItems; e += 4) {
        const int place = min(place_of<true>(e), length - 4);
        U quad[4];
        load_quad(from + place, quad);
        if constexpr (!kFarKeys) store_quad(kept + place, quad);
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
        if constexpr (!kFarKeys) kept[place] = key;
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

  // The warps' parts of a reduction meet in `parts`; store before a barrier, combine after it.
  template <class T>
  __device__ __forceinline__ void store_part(T* parts, T value) const {
    if (thread % 32 == 0) parts[thread / 32] = value;
  }
  template <class T>
  __device__ __forceinline__ T part_of_lane(const T* parts) const {
    return parts[thread % 32 < threads / 32 ? thread % 32 : 0];
  }

  // Reads the row, chooses its map from its extremes and makes the words.
  template <bool kQuads>
  __device__ __forceinline__ void load_words(uint32_t (&row_words)[kItems], RowExtremes<U>& shared) {
    constexpr bool kByFours = kQuads && kKeepsKeys;
    U held[kItems];
    load<kQuads>(held);
    if constexpr (kWholeKeys) {
      for_each_key(held, [&](int e, U key) {
        row_words[e] = word_of<kByFours>(e, static_cast<uint32_t>(arguments.order.code(key)) << (32 - kKeyBits));
      });
    } else if (!arguments.is_float) {
      const U flip = arguments.order.positive_flip;  // one for all integers
      map_codes<kByFours>(held, row_words, shared, [=](U key) { return key ^ flip; });
    } else if (!map_values<kByFours>(held, row_words, shared)) {
      KeyOrder<U> ascending = arguments.order;
      ascending.complement = 0;
      map_codes<kByFours>(held, row_words, shared, [=](U key) { return ascending.code(key); });
    }
    end_row<kByFours>(row_words);
  }

  template <bool kByFours, class CodeOf>
  __device__ __forceinline__ void map_codes(const U (&held)[kItems], uint32_t (&row_words)[kItems], RowExtremes<U>& shared,
                                            CodeOf code_of) {
    U lowest = static_cast<U>(~U{0}), highest = 0;
    for_each_key(held, [&](int, U key) {
      const U code = code_of(key);
      lowest = min(lowest, code);
      highest = max(highest, code);
    });
    lowest = warp_min(lowest);
    highest = warp_max(highest);
    if (threads > 32) {
      store_part(shared.lowest, lowest);
      store_part(shared.highest, highest);
      __syncthreads();
      lowest = warp_min(part_of_lane(shared.lowest));
      highest = warp_max(part_of_lane(shared.highest));
    }
    const CodeMap<U> map(lowest, highest, arguments.descending);
    for_each_key(held, [&](int e, U key) { row_words[e] = word_of<kByFours>(e, map(code_of(key))); });
  }

  static __device__ __forceinline__ bool is_tiny(U key, uint32_t limit) {
    return FloatExtremes::is_tiny(__float_as_uint(float_of_bits(key)), limit);
  }

  // Words of a row of finite floats by a value map; false where their codes serve better.
  template <bool kByFours>
  __device__ __forceinline__ bool map_values(const U (&held)[kItems], uint32_t (&row_words)[kItems], RowExtremes<U>& shared) {
    FloatExtremes extremes;
    for_each_key(held, [&](int, U key) { extremes.add(__float_as_uint(float_of_bits(key))); });
    float sum = 0.0f;
    if (length > kLinearMapLength) {
      for_each_key(held, [&](int, U key) { sum += float_of_bits(key); });
      sum = warp_sum(sum);
    }
    extremes.least = warp_min(extremes.least);
    extremes.greatest = warp_max(extremes.greatest);
    extremes.greatest_signed = warp_max(extremes.greatest_signed);
    const uint32_t tiny_limit = extremes.tiny_limit();
    int tiny = 0;  // of one key of each thread, two where there is one warp; 64-bit keys would have to be read again
    if (threads > 32) {
      store_part(shared.least, extremes.least);
      store_part(shared.greatest, extremes.greatest);
      store_part(shared.greatest_signed, extremes.greatest_signed);
      if (length > kLinearMapLength) store_part(shared.sum, sum);
      if constexpr (kKeepsKeys) {
        tiny = __syncthreads_count(is_tiny(held[0], tiny_limit));
      } else {
        __syncthreads();
      }
      extremes.least = warp_min(part_of_lane(shared.least));
      extremes.greatest = warp_max(part_of_lane(shared.greatest));
      extremes.greatest_signed = warp_max(part_of_lane(shared.greatest_signed));
      if (length > kLinearMapLength) sum = warp_sum(thread % 32 < threads / 32 ? shared.sum[thread % 32] : 0.0f);
    } else if constexpr (kKeepsKeys) {
      tiny = __popc(__ballot_sync(kWholeWarp, is_tiny(held[0], tiny_limit))) +
             __popc(__ballot_sync(kWholeWarp, is_tiny(held[kItems / 2], tiny_limit)));
    }
    if (!extremes.all_finite()) return false;
    const float least = extremes.lowest(), greatest = extremes.highest();
    const int bits = range_bits(ordered_float_bits(greatest) - ordered_float_bits(least));
    if (bits <= 32 - index_bits || (length <= kSampledLength && tiny * kSamplesPerTiny > threads)) return false;
    if (length > kLinearMapLength && LinearMap::fits(least, greatest)) {
      const float middle = (sum / static_cast<float>(threads * kItems) - least) / (greatest - least);
      if (middle > 0.05f && middle < 0.95f) {  // else most values crowd at one end
        const LinearMap map(least, greatest, arguments.descending);
        for_each_key(held, [&](int e, U key) { row_words[e] = word_of<kByFours>(e, map(float_of_bits(key))); });
        return true;
      }
    }
    if (bits <= kScaledMapBits) return false;
    const ScaledMap map(fmaxf(fabsf(least), fabsf(greatest)), arguments.descending);
    for_each_key(held, [&](int e, U key) { row_words[e] = word_of<kByFours>(e, map(float_of_bits(key))); });
    return true;
  }

  __device__ __forceinline__ void store_words(const uint32_t (&row_words)[kItems]) const {
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kItems; ++e) own_word(e) = row_words[e];
    __syncthreads();
  }

  __device__ __forceinline__ void fetch_words(uint32_t (&row_words)[kItems]) const {
#pragma unroll
    for (int e = 0; e < kItems; ++e) row_words[e] = own_word(e);
  }

  // Sorts the block's words; afterwards word_at(p) is the word of rank p for every thread, and a thread still holds its own.
  __device__ __forceinline__ void sort_words(uint32_t (&row_words)[kItems], int* splits) const {
    lanes_sort<32>(row_words, thread % 32);
#pragma unroll 1
    for (int sorted = 32; sorted < threads; sorted *= 2) {
      store_words(row_words);
      merge_runs(row_words, sorted, splits);
    }
    store_words(row_words);
  }

  // This thread's part of the merge of two neighbouring runs of `sorted` threads each, [left, left_end) and [left_end, right_end) in
  // word_at(): kItems outputs. Its words of the left run, rising, then those of the right run, falling, are a bitonic sequence.
  __device__ __forceinline__ void merge_runs(uint32_t (&row_words)[kItems], int sorted, int* splits) const {
    const int left_thread = thread & ~(2 * sorted - 1);  // `sorted` is a power of two
    const int left = left_thread * kItems;
    const int left_end = min(left_thread + sorted, threads) * kItems, right_end = min(left_thread + 2 * sorted, threads) * kItems;
    const int diagonal = first_place() - left;
    int low = max(0, diagonal - (right_end - left_end)), high = min(diagonal, left_end - left);
    while (low < high) {
      const int middle = (low + high) >> 1;
      if (word_at(left + middle) <= word_at(left_end + diagonal - 1 - middle)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    // The next thread's split is where this one's words of the left run end.
    const int warp = thread / 32, lane = thread % 32;
    if (lane == 0) splits[warp] = low;
    __syncthreads();
    int next = __shfl_down_sync(kWholeWarp, low, 1);
    if (lane == 31) next = splits[warp + 1];
    if (first_place() + kItems == right_end) next = left_end - left;
    const int from_left = next - low, rising = left + low, falling = left_end + diagonal - low + kItems - 1;
#pragma unroll
    for (int e = 0; e < kItems; ++e) row_words[e] = word_at(e < from_left ? rising + e : falling - e);
    bitonic_sort_run<kItems>(row_words);
  }

  __device__ __forceinline__ uint32_t ties_of(const uint32_t (&row_words)[kItems]) const {
    const int pairs = length - 1 - first_place();
    return find_ties(row_words, pairs >= kItems ? word_at(first_place() + kItems) : 0, pairs, index_bits);
  }

  // Puts the sorted words right; true when they are new ones, to be sorted again. The same for all threads.
  __device__ __forceinline__ bool mend(uint32_t ties) const {
    const SortedRow<U> row{words, 0, keys, length, index_bits, arguments.order};
    const RunEdges edges = find_run_edges<kItems>(row, first_place(), ties);
    __syncthreads();
    if (!__syncthreads_or(mend_runs<kItems>(row, first_place(), ties, edges))) return false;
    const LongRuns<U, kItems> runs(long_runs, threads * kItems);
    spread_long_runs<kItems>(row, thread, threads, ties, edges, runs, [] { __syncthreads(); });
    return true;
  }

  // Writes the row in the order of the words.
  __device__ __forceinline__ void write() const {
    const uint32_t mask = (1u << index_bits) - 1;
    const RowOutput<U> output(arguments, offset);
    const uint32_t* own_words = words + padded_position(thread);
#pragma unroll 4
    for (int i = 0; i < kItems; ++i) {
      const int place = i * threads + thread;
      if (place >= length) break;
      const uint32_t index = own_words[i * padded_position(threads)] & mask;  // threads are a multiple of 32
      output.store(place, keys[index], index);
    }
  }
};

template <class U, int kItems, bool kFarKeys>
__device__ __forceinline__ BlockRow<U, kItems, kFarKeys> row_of_block(const RowArguments<U>& arguments, uint4* storage) {
  using Row = BlockRow<U, kItems, kFarKeys>;
  const int threads = blockDim.x, places = threads * kItems;
  const int64_t offset = static_cast<int64_t>(blockIdx.x) * arguments.length;
  char* long_runs = reinterpret_cast<char*>(storage) + (kFarKeys ? 0 : round_up(places * static_cast<int>(sizeof(U)), 16));
  return Row{arguments,
             static_cast<int>(threadIdx.x),
             threads,
             arguments.length,
             Row::kWholeKeys ? 32 - Row::kKeyBits : 32 - __clz(arguments.length - 1),
             offset,
             kFarKeys ? arguments.keys_in + offset : reinterpret_cast<const U*>(storage),
             reinterpret_cast<uint32_t*>(long_runs + long_run_bytes(sizeof(U), places, kItems)),
             long_runs};
}

// The rare rest, out of line so that it takes no registers from the common path.
template <class U, int kItems, bool kFarKeys>
__device__ __noinline__ bool mend_block_row(const RowArguments<U>* arguments, uint4* storage, uint32_t ties) {
  return row_of_block<U, kItems, kFarKeys>(*arguments, storage).mend(ties);
}

// Registers a thread: 48 let 1024 keys as 64 x 16 run 21 blocks to an SM, 64 let 16384 keys as 512 x 32 run 2.
constexpr int block_row_registers(int items) {
  return items > 16 ? 64 : 48;
}

template <class U, int kItems, bool kFarKeys>
__global__ void __maxnreg__(block_row_registers(kItems)) block_rows_kernel(const __grid_constant__ RowArguments<U> arguments) {
  using Row = BlockRow<U, kItems, kFarKeys>;
  start_after_predecessor();
  extern __shared__ uint4 shared_memory[];
  __shared__ int splits[33];  // where each warp's part of a merge begins
  auto row = row_of_block<U, kItems, kFarKeys>(arguments, shared_memory);
  RowExtremes<U>& extremes = *reinterpret_cast<RowExtremes<U>*>(row.words);  // before there are any words
  static_assert(sizeof(RowExtremes<U>) <= 4 * row_shapes::kFewestBlockPlaces, "the words have room for the extremes");
  uint32_t words[kItems];
  bool quads = false;
  if constexpr (kItems % 4 == 0) quads = arguments.quads;
  if (quads) {
    if constexpr (kItems % 4 == 0) row.template load_words<true>(words, extremes);
  } else {
    row.template load_words<false>(words, extremes);
  }
  bool again = false;
  do {
    row.sort_words(words, splits);
    if constexpr (!Row::kWholeKeys) {
      const uint32_t ties = row.ties_of(words);
      again = __syncthreads_or(ties != 0) && mend_block_row<U, kItems, kFarKeys>(&arguments, shared_memory, ties);
      if (again) row.fetch_words(words);
    }
  } while (again);
  row.write();
}

}  // namespace gpusort
