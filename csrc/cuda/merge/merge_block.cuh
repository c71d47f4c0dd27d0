// One tile merged by one block, with positions or from rings: the step that the tiled and the circular merge share. Tiles of keys alone
// that lie in one piece are merged by merge_plain.cuh.
//
// Both inputs of the tile wait in shared memory as merge keys (below). Each thread finds its split by co_rank, merges kItems outputs into
// registers and leaves them, in output order, in a second area of shared memory, from which they are stored in 16-byte words.
//
// A thread begins where its own search says and ends where its outputs led it. With sorted inputs that is where the next thread begins. If
// for any thread it is not, the inputs are not sorted and elements would be lost or doubled; the tile is then filled with its inputs as
// they lie, first a, then b, which keeps the output a permutation.
#pragma once

#include "../../core/serial_merge.h"
#include "merge_arguments.cuh"

namespace gpusort {

constexpr uint32_t kFromB = 0x8000;  // in a position: an element of b; the low 15 bits are the place in the tile's part of a or b

// Merge keys: a key with its bits flipped so that they compare as unsigned numbers, complemented when descending. They can be turned back,
// and they compare like codes but for keys that differ only in what codes leave out, the sign of a zero or the bits of a NaN. The largest
// merge key stands behind an input's last element as a sentinel. A tile that holds a -0.0, a NaN or a key equal to the sentinel is called
// special: it is merged with care (merge_thread_special); all others by comparing merge keys as they are.
template <class U>
struct MergeKeys {
  static constexpr U kSentinel = static_cast<U>(~U{0});

  KeyOrder<U> order;
  U negative_flip;  // flipped where the top bit is set, and never the top bit itself
  U flip;           // flipped in every key

  __device__ explicit MergeKeys(const KeyOrder<U>& order_)
      : order(order_),
        negative_flip(static_cast<U>(order_.positive_flip ^ order_.negative_flip)),
        flip(static_cast<U>(order_.positive_flip ^ order_.complement)) {}

  __device__ U flipped_if_negative(U bits) const {
    return static_cast<U>(bits ^ (bits >> (KeyOrder<U>::kBits - 1) ? negative_flip : U{0}));
  }
  __device__ U encode(U bits) const { return static_cast<U>(flipped_if_negative(bits) ^ flip); }
  __device__ U decode(U key) const { return flipped_if_negative(static_cast<U>(key ^ flip)); }
  __device__ U ordered(U key) const { return static_cast<U>((key ^ order.complement) - order.lowest); }
  __device__ U code(U key) const { return order.code_of_ordered(ordered(key)); }

  // True if different keys never compare equal.
  __device__ bool tells_all_apart() const { return order.clamp == kSentinel && order.zero == 0; }

  __device__ bool is_special(U key) const {
    if (key == kSentinel) return true;
    const U value = ordered(key);
    return value > order.clamp || (order.zero != 0 && static_cast<U>(value + 1) == order.zero);
  }

  // False if no key between two of a sorted run can be special, those two included.
  __device__ bool may_be_special_between(U one, U other) const {
    const U one_code = static_cast<U>(order.code(one) ^ order.complement),
            other_code = static_cast<U>(order.code(other) ^ order.complement);
    const U low = min(one_code, other_code), high = max(one_code, other_code);
    return high >= order.clamp || encode(one) == kSentinel || encode(other) == kSentinel ||
           (order.zero != 0 && low <= order.zero && order.zero <= high);
  }
};

// Sixteen bytes of keys. Narrow keys are encoded and decoded by fours or pairs, as the 32-bit registers that hold them.
template <class U>
struct KeyWord {
  static constexpr int kCount = 16 / static_cast<int>(sizeof(U));
  static constexpr int kBits = KeyOrder<U>::kBits;
  static constexpr uint32_t kOnes = kBits == 8 ? 0x01010101u : kBits == 16 ? 0x00010001u : 1u;
  static constexpr uint32_t kTops = kOnes << (kBits % 32 == 0 ? 31 : kBits - 1);
  union {
    uint4 vector;
    U key[kCount];
    uint32_t part[4];
  };

  // `negative` in the keys whose top bit is set.
  __device__ static uint32_t flipped_if_negative(uint32_t keys, uint32_t negative) {
    const uint32_t tops = keys & kTops;
    return keys ^ ((tops - (tops >> (kBits % 32 == 0 ? 31 : kBits - 1))) & negative);
  }

  __device__ static uint32_t decode_part(uint32_t part, const MergeKeys<U>& keys) {
    return flipped_if_negative(part ^ (keys.flip * kOnes), keys.negative_flip * kOnes);
  }

  __device__ void encode(const MergeKeys<U>& keys) {
    if constexpr (sizeof(U) < 4) {
#pragma unroll
      for (int p = 0; p < 4; ++p) part[p] = flipped_if_negative(part[p], keys.negative_flip * kOnes) ^ (keys.flip * kOnes);
    } else {
#pragma unroll
      for (int e = 0; e < kCount; ++e) key[e] = keys.encode(key[e]);
    }
  }
  __device__ void decode(const MergeKeys<U>& keys) {
    if constexpr (sizeof(U) < 4) {
#pragma unroll
      for (int p = 0; p < 4; ++p) part[p] = decode_part(part[p], keys);
    } else {
#pragma unroll
      for (int e = 0; e < kCount; ++e) key[e] = keys.decode(key[e]);
    }
  }
};

// A word full of one key.
template <class U>
__device__ KeyWord<U> word_of(U key) {
  KeyWord<U> word;
#pragma unroll
  for (int e = 0; e < KeyWord<U>::kCount; ++e) word.key[e] = key;
  return word;
}

// The inputs of a tile, at cursors into shared memory: plain (kRing = 0), or two rings of kRing elements. kCodes: read as codes.
template <class U, int kRing, bool kCodes>
struct TileSource {
  const U* elements;
  const MergeKeys<U>& keys;

  __device__ U key(bool from_b, int cursor) const {
    return kRing == 0 ? elements[cursor] : elements[(cursor & (kRing - 1)) + (from_b ? kRing : 0)];
  }
  __device__ U read(bool from_b, int cursor) const { return kCodes ? keys.code(key(from_b, cursor)) : key(from_b, cursor); }
};

// One side of a TileSource, as co_rank and serial_merge want it.
template <class Source>
struct TileSide {
  const Source& source;
  bool from_b;
  int begin;

  __device__ auto operator[](int place) const { return source.read(from_b, begin + place); }
};

// Where the parts of a and b that a tile may use lie. One more element can be read behind each part: the next of the row, or a sentinel.
struct TileWindow {
  int a_begin, a_length;  // cursor and count
  int b_begin, b_length;
  int outputs;   // at most the tile's; fewer only if they are all that is left of the row, that is a_length + b_length
  bool special;  // special keys may be among the elements
};

// Outputs of a tile in shared memory. Threads write 16-byte words, a whole number of them each where that is possible; where the number is
// even, words are exchanged within groups of eight so that the eight threads served together meet different banks.
template <class U, int kThreads, int kItems>
struct TileOutputs {
  static constexpr int kWord = KeyWord<U>::kCount;
  static constexpr int kWordsPerThread = kItems / kWord;
  static constexpr bool kWholeWords = kItems % kWord == 0;
  static constexpr bool kExchange = kWholeWords && kWordsPerThread % 2 == 0;
  static constexpr size_t kBytes = (static_cast<size_t>(kThreads) * kItems * sizeof(U) + 15) / 16 * 16;

  __device__ static int place_of_word(int word) { return kExchange ? word ^ (word >> 3 & 7) : word; }
  __device__ static U& at(U* outputs, int index) { return outputs[place_of_word(index / kWord) * kWord + index % kWord]; }

  // Leaves a thread's keys there, decoded if they are merge keys.
  template <class Item>
  __device__ static void put(U* outputs, const Item (&items)[kItems], const MergeKeys<U>& keys, bool encoded = true) {
    if constexpr (kWholeWords) {
#pragma unroll
      for (int word = 0; word < kWordsPerThread; ++word) {
        KeyWord<U> packed;
#pragma unroll
        for (int e = 0; e < kWord; ++e) packed.key[e] = static_cast<U>(items[word * kWord + e]);
        if (encoded) packed.decode(keys);
        reinterpret_cast<uint4*>(outputs)[place_of_word(threadIdx.x * kWordsPerThread + word)] = packed.vector;
      }
    } else {
#pragma unroll
      for (int item = 0; item < kItems; ++item)
        outputs[threadIdx.x * kItems + item] = encoded ? keys.decode(static_cast<U>(items[item])) : static_cast<U>(items[item]);
    }
  }

  // To global memory, in 16-byte words where the destination allows.
  __device__ static void store(U* outputs, U* destination, int count) {
    int done = 0;
    if (reinterpret_cast<uintptr_t>(destination) % 16 == 0) {
      const int words = count / kWord;
#pragma unroll 4
      for (int word = threadIdx.x; word < words; word += kThreads) {
        reinterpret_cast<uint4*>(destination)[word] = reinterpret_cast<const uint4*>(outputs)[place_of_word(word)];
      }
      done = words * kWord;
    }
#pragma unroll 1
    for (int index = done + threadIdx.x; index < count; index += kThreads) destination[index] = at(outputs, index);
  }
};

// What threads of different warps tell each other about their ends.
template <int kThreads>
struct TileSplits {
  int warp_begin[kThreads / 32];
  int a_taken;
};

struct ThreadSplits {
  int a_begin, a_end;  // how much of the window's a the threads before this one take, and how far this one came
};

template <class Source>
__device__ int thread_co_rank(const Source& source, const TileWindow& window, int rank) {
  using Side = TileSide<Source>;
  return co_rank<int>(rank, Side{source, false, window.a_begin}, window.a_length, Side{source, true, window.b_begin}, window.b_length,
                      [](auto x, auto y) { return x < y; });
}

// A thread's part of a tile, for tiles without special keys.
//
// The sentinels keep the merge inside the inputs by themselves: one behind a comes after every element of b, and no element of a comes
// after the one behind b. Only when both are used up does it run on, over a; that happens in a row's last tile, where the surplus does not
// count.
template <int kItems, bool kPositions, class U, int kRing>
__device__ ThreadSplits merge_thread(const TileSource<U, kRing, false>& source, const TileWindow& window, U (&items)[kItems],
                                     uint16_t (&places)[kPositions ? kItems : 1]) {
  const int rank = min(static_cast<int>(threadIdx.x) * kItems, window.outputs);
  const int a_begin = thread_co_rank(source, window, rank);
  int i = window.a_begin + a_begin, j = window.b_begin + rank - a_begin;
  serial_merge_unrolled<kItems, false>(
      source, i, 0, j, 0, [](U x, U y) { return x < y; },
      [&](int step, bool from_b, int cursor, U key) {
        items[step] = key;
        if constexpr (kPositions)
          places[step] = static_cast<uint16_t>(from_b ? (cursor - window.b_begin) | kFromB : cursor - window.a_begin);
      });
  return {a_begin, i - window.a_begin - max(0, rank + kItems - window.outputs)};
}

// The same for tiles with special keys: compares codes, watches the ends, and hands out each output at once:
// emit(rank, from_b, place, merge key).
template <int kItems, class U, int kRing, class Emit>
__device__ ThreadSplits merge_thread_special(const TileSource<U, kRing, true>& source, const TileWindow& window, Emit emit) {
  using Side = TileSide<TileSource<U, kRing, true>>;
  const int rank = min(static_cast<int>(threadIdx.x) * kItems, window.outputs);
  const int a_begin = thread_co_rank(source, window, rank);
  int i = a_begin, j = rank - a_begin;
  serial_merge<int>(
      Side{source, false, window.a_begin}, i, window.a_length, Side{source, true, window.b_begin}, j, window.b_length,
      min(kItems, window.outputs - rank), [](U x, U y) { return x < y; },
      [&](int step, bool from_b, int place, U) {
        emit(rank + step, from_b, place, source.key(from_b, place + (from_b ? window.b_begin : window.a_begin)));
      });
  return {a_begin, i};
}

// The tile's inputs as they lie, first a, then b. Returns how many elements of a that is.
template <int kThreads, int kItems, bool kPositions, int kRing, class U>
__device__ int fill_tile(const U* elements, const MergeKeys<U>& keys, const TileWindow& window, U* outputs, uint16_t* positions) {
  const TileSource<U, kRing, false> source{elements, keys};
  const int a_taken = min(window.outputs, window.a_length);
#pragma unroll 1
  for (int index = threadIdx.x; index < window.outputs; index += kThreads) {
    const bool from_b = index >= a_taken;
    const int place = from_b ? index - a_taken : index;
    TileOutputs<U, kThreads, kItems>::at(outputs, index) =
        keys.decode(source.key(from_b, place + (from_b ? window.b_begin : window.a_begin)));
    if constexpr (kPositions) positions[index] = static_cast<uint16_t>(from_b ? place | kFromB : place);
  }
  __syncthreads();
  return a_taken;
}

// Merges one tile into `outputs` (a key's own bits) and, if kPositions, `positions`. Returns how many elements of a were used. All threads
// of the block call it, behind a barrier after the inputs were written; when it returns, outputs may be read and inputs overwritten.
template <int kThreads, int kItems, bool kPositions, int kRing, class U>
__device__ int merge_tile(const U* elements, const MergeKeys<U>& keys, const TileWindow& window, U* outputs, uint16_t* positions,
                          TileSplits<kThreads>& splits) {
  using Outputs = TileOutputs<U, kThreads, kItems>;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool last = threadIdx.x == kThreads - 1;

  ThreadSplits mine;
  if (window.special) {
    mine = merge_thread_special<kItems>(TileSource<U, kRing, true>{elements, keys}, window, [&](int rank, bool from_b, int place, U key) {
      Outputs::at(outputs, rank) = keys.decode(key);
      if constexpr (kPositions) positions[rank] = static_cast<uint16_t>(from_b ? place | kFromB : place);
    });
  } else {
    U items[kItems];
    uint16_t places[kPositions ? kItems : 1];
    mine = merge_thread<kItems, kPositions>(TileSource<U, kRing, false>{elements, keys}, window, items, places);
    Outputs::put(outputs, items, keys);
    if constexpr (kPositions) {
#pragma unroll
      for (int item = 0; item < kItems; ++item) positions[threadIdx.x * kItems + item] = places[item];
    }
  }

  if (lane == 0) splits.warp_begin[warp] = mine.a_begin;
  if (last) splits.a_taken = mine.a_end;
  int a_next = __shfl_down_sync(~0u, mine.a_begin, 1);
  __syncthreads();
  if (lane == 31 && !last) a_next = splits.warp_begin[warp + 1];
  int a_taken = splits.a_taken;
  const bool contradictory = last ? mine.a_end > window.a_length || window.outputs - mine.a_end > window.b_length : mine.a_end != a_next;
  if (__syncthreads_or(contradictory)) {
    a_taken = fill_tile<kThreads, kItems, kPositions, kRing>(elements, keys, window, outputs, positions);
  }
  return a_taken;
}

}  // namespace gpusort
