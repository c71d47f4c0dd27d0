// One tile of keys alone, merged in place by one block.
//
// The tile's parts of a and b lie in shared memory as the bits that they are in global memory. Between two neighbouring keys of one sign
// the order of the contract is that of their bits as unsigned numbers, rising or falling, and a tile holds a narrow range of keys; so most
// tiles are merged without turning a key into anything (TileOrder). Each thread finds its split by co_rank, merges kItems outputs into
// registers (merge_plain_thread), and, when all have read, leaves them where the inputs were.
//
// A thread begins where its own search says and ends where its outputs led it. With sorted inputs that is where the next thread begins. If
// for any thread it is not, the inputs are not sorted and elements would be lost or doubled; such a tile is filled with its inputs as they
// lie, first a, then b (fill_from_inputs), which keeps the output a permutation.
#pragma once

#include <type_traits>

#include "../../core/loose_cut.h"
#include "async_copy.cuh"
#include "key_span.cuh"
#include "merge_block.cuh"

namespace gpusort {

// How the keys of a tile compare.
enum class TileOrder : int {
  kRising,   // their bits, as unsigned numbers
  kFalling,  // the same, the greatest first
  kEncoded,  // keys of both signs: as merge keys, into which the tile is turned first
  kSpecial,  // by codes: there are keys among them that differ and compare equal, zeros of both signs or NaNs
  kUnknown,  // kEncoded or kSpecial, which takes a look at every key
  kNumbers   // floats of both signs and no NaNs, as the numbers that they are; only windows (merge_windowed_keys.cuh) are merged so
};

// The words of a tile in shared memory: a gap, those of a, a gap, those of b, and a gap, which unsorted inputs may make a thread run into.
// Where a row's a ends, the gap behind it is full of sentinels.
template <class U, int kThreads, int kItems>
struct PlainTile {
  static constexpr int kWord = KeyWord<U>::kCount;
  static constexpr int kTile = kThreads * kItems;
  static constexpr int kGapWords = (kItems + kWord - 1) / kWord;
  static constexpr int kFrontWords = kGapWords;  // sides (merge_plain_thread) of a do not lie in front of it
  static constexpr bool kLoose = takes_loose_cuts(MergeTile{kThreads, kItems, 0}, sizeof(U));
  static constexpr int kOpenWords = kLoose ? 2 * kLoosePlaces<U> / kWord : 0;
  static constexpr int kInputWords =
      kFrontWords + kTile / kWord + 4 + kOpenWords + kGapWords;  // each part has a ragged word at either end and one element behind
  static constexpr int kWords = kInputWords + kGapWords;
  static constexpr int kBytes = kWords * 16;
  static_assert(kTile % kWord == 0, "tiles are whole words");
};

// Where a tile's parts lie in it. One more element can be read behind each part: the next of the row, or a sentinel.
struct PlainWindow {
  int a_begin, a_length;
  int b_begin, b_length;
  int a_behind, b_behind;  // 1 if a key of the row stands behind the part, 0 if a sentinel
  int words;               // in use, the gap included
  TileOrder order;

  __device__ int outputs() const { return a_length + b_length; }
};

template <class Tile, class U>
__device__ PlainWindow plain_window(const KeySpan<U>& a, int a_length, int a_behind, const KeySpan<U>& b, int b_length, int b_behind) {
  const int b_word = Tile::kFrontWords + a.count + Tile::kGapWords;
  return {Tile::kFrontWords * Tile::kWord + a.offset,
          a_length,
          b_word * KeySpan<U>::kWord + b.offset,
          b_length,
          a_behind,
          b_behind,
          b_word + b.count,
          TileOrder::kUnknown};
}

// The ends of both parts, for the first four lanes of a warp: with the element behind each, where the row has one.
template <class U>
struct TileEnds {
  const U *a, *b;
  int a_length, b_length;  // that element included
  bool row_ends;           // a sentinel stands behind one of them

  __device__ static int lane() { return threadIdx.x % 32; }
  __device__ bool asks() const { return lane() < 4 && (lane() / 2 == 1 ? b_length : a_length) > 0; }
  template <bool kFresh>
  __device__ U load() const {
    if (!asks()) return U{0};
    const bool last = lane() % 2 == 1;
    return read_key<kFresh>(lane() / 2 == 1 ? b + (last ? b_length - 1 : 0) : a + (last ? a_length - 1 : 0));
  }

  // Of what load() returned, for a whole warp. Without positions a sentinel is as good as a key that equals it.
  __device__ TileOrder order(const MergeKeys<U>& keys, U mine, bool keys_alone) const {
    constexpr int kTop = KeyOrder<U>::kBits - 1;
    const U other = static_cast<U>(__shfl_down_sync(~0u, mine, 1));
    const bool may_be_special = asks() && lane() % 2 == 0 && keys.may_be_special_between(mine, other);
    if (!(keys_alone && keys.tells_all_apart()) && __ballot_sync(~0u, may_be_special) != 0) return TileOrder::kUnknown;
    const unsigned asking = __ballot_sync(~0u, asks());
    const unsigned negative = __ballot_sync(~0u, asks() && mine >> kTop != 0);
    if (negative != 0 && negative != asking) return TileOrder::kEncoded;
    if (row_ends && (keys.decode(MergeKeys<U>::kSentinel) >> kTop != 0) != (negative != 0)) return TileOrder::kEncoded;
    const U flip = (negative != 0 ? keys.order.negative_flip : keys.order.positive_flip) ^ keys.order.complement;
    return (flip & 1) != 0 ? TileOrder::kFalling : TileOrder::kRising;
  }
};

// The spans of a piece, with what stands behind each part.
template <class U>
struct TileInputs {
  int a_length, b_length;
  int a_behind, b_behind;  // 1 if a key of the row stands there
  KeySpan<U> a, b;

  // A tile that is not whole has sentinels behind it (`last`), even where its row goes on.
  __device__ TileInputs(const MergeArguments<U>& m, int64_t row, const MergeRange<int64_t>& range, bool last = false)
      : a_length(static_cast<int>(range.a_length())),
        b_length(static_cast<int>(range.b_length())),
        a_behind(!last && range.a_end < m.a_length ? 1 : 0),
        b_behind(!last && range.b_end < m.b_length ? 1 : 0),
        a(m.a_row(row) + range.a_begin, a_length, a_behind == 0, m.a, m.a + m.rows * m.a_length),
        b(m.b_row(row) + range.b_begin, b_length, b_behind == 0, m.b, m.b + m.rows * m.b_length) {}

  __device__ TileEnds<U> ends(const MergeArguments<U>& m, int64_t row, const MergeRange<int64_t>& range) const {
    return {m.a_row(row) + range.a_begin, m.b_row(row) + range.b_begin, a_length + a_behind, b_length + b_behind,
            a_behind == 0 || b_behind == 0};
  }
};

// A register that holds a key.
template <class U>
using KeyItem = std::conditional_t<(sizeof(U) < 4), uint32_t, U>;

// The outputs of a thread. Narrow keys are packed as they come, so that they take few registers.
template <class U, int kItems>
struct ThreadKeys {
  static constexpr int kPacked = sizeof(U) < 4 ? 4 / sizeof(U) : 1;  // keys in a word
  static constexpr int kWordsPerVector = 16 / (kPacked * sizeof(U));
  KeyItem<U> words[(kItems + kPacked - 1) / kPacked];

  // Called with 0, 1, 2, ...
  __device__ void append(int item, KeyItem<U> key) {
    if (item % kPacked == 0) {
      words[item / kPacked] = key;
    } else {
      words[item / kPacked] += key << (item % kPacked * KeyOrder<U>::kBits % 32);
    }
  }

  // Leaves them in shared memory, as TileOutputs keeps outputs; decoded, if they are merge keys.
  template <int kThreads>
  __device__ void put(U* outputs, const MergeKeys<U>& keys, bool encoded) const {
    using Outputs = TileOutputs<U, kThreads, kItems>;
    if constexpr (Outputs::kWholeWords) {
      KeyWord<U> packed[Outputs::kWordsPerThread];
#pragma unroll
      for (int vector = 0; vector < Outputs::kWordsPerThread; ++vector) {
#pragma unroll
        for (int w = 0; w < kWordsPerVector; ++w) {
          const KeyItem<U> word = words[vector * kWordsPerVector + w];
          if constexpr (sizeof(U) == 8) {
            packed[vector].key[w] = word;
          } else {
            packed[vector].part[w] = word;
          }
        }
      }
      if (encoded) {
#pragma unroll
        for (int vector = 0; vector < Outputs::kWordsPerThread; ++vector) packed[vector].decode(keys);
      }
#pragma unroll
      for (int vector = 0; vector < Outputs::kWordsPerThread; ++vector) {
        reinterpret_cast<uint4*>(outputs)[Outputs::place_of_word(threadIdx.x * Outputs::kWordsPerThread + vector)] = packed[vector].vector;
      }
    } else if constexpr (kPacked > 1 && kItems % kPacked == 0) {
      constexpr int kParts = kItems / kPacked;
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        reinterpret_cast<uint32_t*>(outputs)[threadIdx.x * kParts + part] =
            encoded ? KeyWord<U>::decode_part(words[part], keys) : words[part];
      }
    } else {
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        const U key = static_cast<U>(words[item / kPacked] >> (item % kPacked * KeyOrder<U>::kBits % 32));
        outputs[threadIdx.x * kItems + item] = encoded ? keys.decode(key) : key;
      }
    }
  }

  // The first `count` of them to global memory; merge keys are decoded.
  __device__ void store(U* destination, int count, const MergeKeys<U>& keys, bool encoded) const {
    constexpr int kBytes = kItems * static_cast<int>(sizeof(U));
    using Vector = std::conditional_t<kBytes % 16 == 0, uint4, uint2>;
    constexpr int kVectors = kBytes / static_cast<int>(sizeof(Vector));
    static_assert(kBytes % sizeof(Vector) == 0, "whole vectors");
    union {
      Vector vectors[kVectors];
      KeyItem<U> words[kItems / kPacked];
      U keys[kItems];
    } out;
#pragma unroll
    for (int word = 0; word < kItems / kPacked; ++word) {
      if constexpr (kPacked > 1) {
        out.words[word] = encoded ? KeyWord<U>::decode_part(words[word], keys) : words[word];
      } else {
        out.words[word] = encoded ? keys.decode(words[word]) : words[word];
      }
    }
    if (count == kItems && reinterpret_cast<uintptr_t>(destination) % sizeof(Vector) == 0) {
#pragma unroll
      for (int vector = 0; vector < kVectors; ++vector) reinterpret_cast<Vector*>(destination)[vector] = out.vectors[vector];
    } else {
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        if (item < count) destination[item] = out.keys[item];
      }
    }
  }
};

// How two keys of a tile compare: as their bits, or as the numbers that the bits stand for (floats without NaNs).
enum class Comparison { kRising, kFalling, kRisingNumbers, kFallingNumbers };

template <Comparison kHow, class Item>
__device__ bool plain_before(Item x, Item y) {
  constexpr bool kDown = kHow == Comparison::kFalling || kHow == Comparison::kFallingNumbers;
  if constexpr (kHow == Comparison::kRising || kHow == Comparison::kFalling) {
    return kDown ? x > y : x < y;
  } else if constexpr (sizeof(Item) == 8) {
    const double first = __longlong_as_double(static_cast<long long>(x)), second = __longlong_as_double(static_cast<long long>(y));
    return kDown ? first > second : first < second;
  } else {
    const float first = __uint_as_float(x), second = __uint_as_float(y);
    return kDown ? first > second : first < second;
  }
}

// Whether x, at `side`, comes before y, of the other part: equal keys are taken from a, whose sides lie below the threshold. Bits are
// compared as one longer number, which the machine does by passing a carry on.
template <Comparison kHow, class Item>
__device__ bool plain_takes(Item x, Item y, uint32_t side, uint32_t threshold) {
  if constexpr (kHow == Comparison::kRising || kHow == Comparison::kFalling) {
    constexpr bool kDown = kHow == Comparison::kFalling;
    using Wide = std::conditional_t<sizeof(Item) == 8, unsigned __int128, uint64_t>;
    const Wide lesser = static_cast<Wide>(kDown ? y : x) << 32 | side;
    const Wide greater = static_cast<Wide>(kDown ? x : y) << 32 | threshold;
    return lesser < greater;
  } else {
    return side < threshold ? !plain_before<kHow>(y, x) : plain_before<kHow>(x, y);
  }
}

// co_rank in a tile: where the head of a is at output `rank`. Addresses are in bytes of shared memory; a and b are where the parts begin.
//
// The strides are known to the compiler. `head` grows by each stride whose elements all come first, cut at the last that can; testing that
// one again, or the element in front of an empty range, changes nothing. Both parts together hold at most kTile elements, so the range is
// no longer than kTile / 2.
template <int kTile, Comparison kHow, class U>
__device__ uint32_t plain_co_rank(uint32_t a, int a_length, uint32_t b, int b_length, int rank) {
  constexpr int kBytes = sizeof(U);
  constexpr int kSteps = []() {
    int steps = 0;
    while ((1 << steps) <= kTile / 2) ++steps;
    return steps;
  }();
  int head = static_cast<int>(a) + max(0, rank - b_length) * kBytes;
  const int last = static_cast<int>(a) + min(rank, a_length) * kBytes;
  const int both = static_cast<int>(a + b) + rank * kBytes;
#pragma unroll
  for (int step = kSteps - 1; step >= 0; --step) {
    const int next = min(head + (kBytes << step), last);
    const KeyItem<U> from_a = load_shared_key<U>(static_cast<uint32_t>(next - kBytes));
    const KeyItem<U> from_b = load_shared_key<U>(static_cast<uint32_t>(both - next));
    if (!plain_before<kHow>(from_b, from_a)) head = next;
  }
  return static_cast<uint32_t>(head);
}

// Merges kItems outputs from the heads at addresses a and b. Returns where the head of a is then.
//
// One head is called current: the one behind the key taken last. Where the other one is follows from the step, since together they
// advance by one element a step: other = a + b + step - current. Counted without the steps already done (side = current - step), the
// current head does not move while its part goes on giving, and changes to a + b - step - side when it does not. So an output costs one
// read, two selections, one comparison in two parts, and one subtraction that counts only when the sides change.
// Sides of a are below the threshold and those of b are not, because the gap between them is longer than kItems elements.
template <int kItems, Comparison kHow, class U>
__device__ uint32_t merge_plain_thread(uint32_t a, uint32_t b, uint32_t threshold, ThreadKeys<U, kItems>& outputs) {
  constexpr uint32_t kBytes = sizeof(U);
  const uint32_t heads = a + b;
  uint32_t side = a;
  KeyItem<U> current = load_shared_key<U>(a), other = load_shared_key<U>(b);
#pragma unroll
  for (int step = 0; step < kItems; ++step) {
    const bool stays = plain_takes<kHow>(current, other, side, threshold);
    outputs.append(step, stays ? current : other);
    other = stays ? other : current;
    side = stays ? side : heads - step * kBytes - side;
    if (step + 1 < kItems) current = load_shared_key<U>(side + (step + 1) * kBytes);
  }
  return min(side + kItems * kBytes, heads - side);
}

// Where a thread's head of a was, and where it is behind its outputs, in shared memory.
struct HeadsOfA {
  uint32_t begin, end;
};

// Whether the keys at [begin, begin + bytes) all are `key`.
template <class U>
__device__ bool all_equal(uint32_t begin, uint32_t bytes, KeyItem<U> key) {
#pragma unroll 1
  for (uint32_t done = 0; done < bytes; done += sizeof(U)) {
    if (load_shared_key<U>(begin + done) != key) return false;
  }
  return true;
}

// Where the parts begin in shared memory, and the threshold that tells the sides of one from those of the other.
template <class U>
struct PlainAddresses {
  uint32_t a, b, threshold;

  __device__ PlainAddresses(const void* shared, const PlainWindow& window, int items) {
    constexpr uint32_t kBytes = sizeof(U);
    constexpr uint32_t kWord = KeyWord<U>::kCount;
    const uint32_t begin = shared_address(shared);
    a = begin + window.a_begin * kBytes;
    b = begin + window.b_begin * kBytes;
    threshold = begin + (window.b_begin / kWord * kWord - items + 1) * kBytes;
  }
};

// Where the calling thread's head of a is.
template <int kThreads, int kItems, class U>
__device__ uint32_t find_plain_head(const void* shared, const PlainWindow& window) {
  const PlainAddresses<U> at(shared, window, kItems);
  const int rank = min(static_cast<int>(threadIdx.x) * kItems, window.outputs());
  return window.order == TileOrder::kFalling
             ? plain_co_rank<kThreads * kItems, Comparison::kFalling, U>(at.a, window.a_length, at.b, window.b_length, rank)
             : plain_co_rank<kThreads * kItems, Comparison::kRising, U>(at.a, window.a_length, at.b, window.b_length, rank);
}

// Where a thread's head of a is behind its outputs, of which the last `surplus` were taken from the sentinels behind a. `heads` is the sum
// of its heads, `head` the one of a behind all outputs.
//
// Behind the last of a row's a, sentinels may have been taken for keys of b that equal them; then the heads say so, but the outputs are the
// same, and the head of a is taken to be where a ends.
template <class U>
__device__ uint32_t end_of_a(uint32_t head, uint32_t heads, int surplus, const PlainWindow& window, uint32_t a, U sentinel) {
  constexpr uint32_t kBytes = sizeof(U);
  const uint32_t end = head - surplus * kBytes, a_end = a + window.a_length * kBytes;
  if (window.a_behind == 0 && end > a_end) {
    const uint32_t b_end = heads - surplus * kBytes - end;
    if (all_equal<U>(b_end, end - a_end, sentinel)) return a_end;
  }
  return end;
}

// Merges from there. Returns where the head of a is then.
template <class U, int kItems>
__device__ uint32_t merge_plain_from(uint32_t head, const void* shared, const PlainWindow& window, U sentinel,
                                     ThreadKeys<U, kItems>& outputs) {
  constexpr uint32_t kBytes = sizeof(U);
  const PlainAddresses<U> at(shared, window, kItems);
  const int rank = min(static_cast<int>(threadIdx.x) * kItems, window.outputs());
  const uint32_t b_head = at.a + at.b + rank * kBytes - head;
  const uint32_t end = window.order == TileOrder::kFalling
                           ? merge_plain_thread<kItems, Comparison::kFalling, U>(head, b_head, at.threshold, outputs)
                           : merge_plain_thread<kItems, Comparison::kRising, U>(head, b_head, at.threshold, outputs);
  return end_of_a<U>(end, at.a + at.b + (rank + kItems) * kBytes, max(0, rank + kItems - window.outputs()), window, at.a, sentinel);
}

template <int kThreads, class U, int kItems>
__device__ HeadsOfA merge_plain_tile(const void* shared, const PlainWindow& window, U sentinel, ThreadKeys<U, kItems>& outputs) {
  const uint32_t head = find_plain_head<kThreads, kItems, U>(shared, window);
  return {head, merge_plain_from(head, shared, window, sentinel, outputs)};
}

// The same for tiles with special keys, of merge keys: writes each output at once, to global memory.
template <int kItems, class U>
__device__ HeadsOfA merge_special_tile(const U* elements, const MergeKeys<U>& keys, const PlainWindow& window, U* destination) {
  const TileWindow tile{window.a_begin, window.a_length, window.b_begin, window.b_length, window.outputs(), true};
  const ThreadSplits mine = merge_thread_special<kItems>(TileSource<U, 0, true>{elements, keys}, tile,
                                                         [&](int rank, bool, int, U key) { destination[rank] = keys.decode(key); });
  const uint32_t a = shared_address(elements + window.a_begin);
  return {static_cast<uint32_t>(a + mine.a_begin * sizeof(U)), static_cast<uint32_t>(a + mine.a_end * sizeof(U))};
}

// Turns every word of the tile into merge keys. True if the calling thread met special keys, where it is to look for them.
template <int kThreads, class U>
__device__ bool encode_tile(uint4* shared_words, const PlainWindow& window, const MergeKeys<U>& keys, bool looks) {
  constexpr int kWord = KeyWord<U>::kCount;
  const auto within = [](int place, int begin, int length) { return static_cast<unsigned>(place - begin) < static_cast<unsigned>(length); };
  bool special = false;
#pragma unroll 1
  for (int word = threadIdx.x; word < window.words; word += kThreads) {
    KeyWord<U> encoded;
    encoded.vector = shared_words[word];
    encoded.encode(keys);
    shared_words[word] = encoded.vector;
    if (!looks) continue;
#pragma unroll
    for (int e = 0; e < kWord; ++e) {
      const int place = word * kWord + e;
      special = special || ((within(place, window.a_begin, window.a_length + window.a_behind) ||
                             within(place, window.b_begin, window.b_length + window.b_behind)) &&
                            keys.is_special(encoded.key[e]));
    }
  }
  return special;
}

// The order of a tile whose ends have been looked at, and the tile encoded where that asks for it. All threads of the block call it.
template <int kThreads, class U>
__device__ TileOrder settle_order(uint4* shared_words, const PlainWindow& window, const MergeKeys<U>& keys) {
  if (window.order != TileOrder::kUnknown && window.order != TileOrder::kEncoded) return window.order;
  const bool special = encode_tile<kThreads>(shared_words, window, keys, window.order == TileOrder::kUnknown);
  return __syncthreads_or(special) ? TileOrder::kSpecial : TileOrder::kEncoded;
}

// Where the next thread's head of a is, or where a ends. `begins` holds where the first thread of each warp has it.
template <int kThreads>
__device__ uint32_t next_head(uint32_t head, uint32_t a_end, const uint32_t* begins) {
  const uint32_t next = __shfl_down_sync(~0u, head, 1);
  if (threadIdx.x == kThreads - 1) return a_end;
  return threadIdx.x % 32 == 31 ? begins[threadIdx.x / 32 + 1] : next;
}

// Whether a thread's end is not where the next thread begins.
template <int kThreads, class U>
__device__ bool contradicts(const HeadsOfA& mine, const U* elements, const PlainWindow& window, const uint32_t* begins) {
  return mine.end != next_head<kThreads>(mine.begin, shared_address(elements + window.a_begin + window.a_length), begins);
}

// A tile as its inputs lie in global memory, read past the L1.
template <int kThreads, class U>
__device__ void fill_from_inputs(const U* a, int a_length, const U* b, int b_length, U* destination) {
#pragma unroll 1
  for (int place = threadIdx.x; place < a_length + b_length; place += kThreads) {
    destination[place] = read_key<true>(place < a_length ? a + place : b + (place - a_length));
  }
}

}  // namespace gpusort
