// One tile of a wide merge, by distribution: the pieces of up to 128 runs are not merged two by two, but every record goes to the bin that
// its word says, and then to its place among the few records of that bin.
//
// A tile holds the words between two bounds, all of them, so any way to sort it ends the merge; the bounds are its range.
//   count    bin of a word by one multiplication; an atomic addition counts the bin and numbers its words
//   scan     exclusive sums of the counts are where the bins begin
//   scatter  each word goes to shared memory at its bin's begin + its number: in order up to the order within bins
//   rank     each word counts the words of its bin that are below it, and goes to that place of the output
// Steps per record do not depend on the number of runs, which is what lets a stage merge so many. The cost is linear as long as words
// spread over their range (Dobosiewicz, "Sorting by distributive partitioning", 1978). Words hold the index below the code and no two are
// equal: equal keys spread over the bins by their indices, and the result is the stable one whatever the atomics' order was.
// Tiles in which many bins have more than kManyInWideBin words are listed for wide_crowds.cuh, which knows better bins; larger ones than a
// block holds for wide_rest.cuh. Invariant after the scatter: a word of an earlier bin is below, one of a later bin above.
#pragma once

#include "../primitives/block_scan.cuh"
#include "../primitives/shared_memory.cuh"
#include "wide_arguments.cuh"

namespace gpusort {

constexpr uint32_t kMostNumber = 255;    // a byte holds the number of a word in its bin
constexpr uint32_t kManyInWideBin = 48;  // ranking is quadratic in it: a few bins may have more
constexpr int kMostCrowdedThreads = 24;  // that see such bins: about what floats around zero take
constexpr uint32_t kWidePads = 2;        // words are read by twos past the last one
constexpr uint32_t kWideCounterBytes = kWideCapacity * 4 + 32;
constexpr uint32_t kWideTileBytes = kWideCounterBytes + (kWideCapacity + kWidePads) * 8;

// Which pieces of runs a tile has. Slots number its records, piece after piece.
struct WidePieces {
  uint32_t slots[kMostWideWays + 1];  // where each piece begins; all behind the last used are the tile's size
  uint32_t offsets[kMostWideWays];    // from a slot to a record of the group
  uint32_t totals[32];
  uint8_t chunk_piece[kWideCapacity / 32];  // of every 32nd slot
};

__device__ __forceinline__ uint64_t load_shared_word(uint32_t address) {
  uint2 raw;
  load_shared(address, raw);
  return static_cast<uint64_t>(raw.y) << 32 | raw.x;
}

// The word as bins see it: the index brought to the top of its 32 bits, so that it counts where codes are few.
__device__ __forceinline__ uint64_t spread_word(uint64_t word, int index_shift) {
  return (word & 0xffffffff00000000) | static_cast<uint32_t>(static_cast<uint32_t>(word) << index_shift);
}

// Bins of equal width over the range of the tile; monotone.
struct EvenBins {
  uint64_t lowest;
  int index_shift, shift;
  uint32_t factor;

  __device__ __forceinline__ EvenBins(uint64_t low, uint64_t high, int shift_of_index, uint32_t bins)
      : lowest(spread_word(low, shift_of_index)), index_shift(shift_of_index) {
    const uint64_t range = spread_word(high, shift_of_index) - lowest;
    shift = min(__clzll(static_cast<long long>(range)), 63);
    const float leading = static_cast<float>(static_cast<uint32_t>((range << shift) >> 32)) + 1.0f;
    // Five roundings of 2^-24 (the division: 2^-22) are less than what the last factor takes away.
    factor = static_cast<uint32_t>(__fdividef(static_cast<float>(bins) * 4294967296.0f, leading) * (1.0f - 0x1p-20f));
  }

  __device__ __forceinline__ uint32_t bin(uint64_t word) const {
    return __umulhi(static_cast<uint32_t>(((spread_word(word, index_shift) - lowest) << shift) >> 32), factor);
  }
};

template <class U, bool kFirst>
struct WideTile {
  static constexpr int kThreads = kWideThreads, kItems = kWideItems, kWarps = kThreads / 32;
  static constexpr int kRankTogether = 2;
  static constexpr int kRankStep = 2;
  static constexpr int kGroup = 4;  // items that are worked on at a time; a byte to each in a word
  static_assert(kRankStep <= static_cast<int>(kWidePads), "");

  const WideMergeArguments<U>& m;
  WidePieces& pieces;
  const uint32_t counters;               // shared address; there is room before it and behind
  const uint32_t thread, size, vectors;  // vectors: of four counters, to a thread
  const uint32_t bound;

  __device__ __forceinline__ WideTile(const WideMergeArguments<U>& arguments, WidePieces& shared, uint32_t storage, uint32_t bound_number,
                                      uint32_t records)
      : m(arguments),
        pieces(shared),
        counters(opaque(storage + 16)),
        thread(threadIdx.x),
        size(records),
        vectors(min((records + 4 * kThreads - 1) / (4 * kThreads), static_cast<uint32_t>(kItems / 4))),
        bound(bound_number) {}

  __device__ __forceinline__ uint32_t words() const { return counters + (kWideCounterBytes - 16); }
  __device__ __forceinline__ uint32_t bins() const { return vectors * (4 * kThreads); }

  __device__ __forceinline__ void clear_counters(uint32_t per_thread) const {
    for (uint32_t v = 0; v < per_thread; ++v) clear_shared_16_bytes(counters + (v * kThreads + thread) * 16);
  }

  // Ends with a barrier.
  __device__ __forceinline__ void set_up_pieces() const {
    const uint32_t way = thread;
    uint32_t begin = 0, length = 0;
    if (way < static_cast<uint32_t>(m.ways)) {
      begin = m.cuts[int64_t{bound} * m.ways + way];
      length = m.cuts[int64_t{bound + 1} * m.ways + way] - begin;
    }
    const uint32_t inclusive = warp_inclusive_scan(length);
    if (thread % 32 == 31) pieces.totals[thread / 32] = inclusive;
    __syncthreads();
    if (way < kMostWideWays) {
      uint32_t slot = inclusive - length;
      for (uint32_t warp = 0; warp < thread / 32; ++warp) slot += pieces.totals[warp];
      pieces.slots[way] = slot;
      pieces.offsets[way] = way * static_cast<uint32_t>(m.run_length) + begin - slot;
      if (way == 0) pieces.slots[kMostWideWays] = size;
    }
    __syncthreads();
    if (thread < kWideCapacity / 32) {
      uint32_t piece = 0;
#pragma unroll
      for (uint32_t step = kMostWideWays / 2; step > 0; step /= 2) {
        if (pieces.slots[piece + step] <= thread * 32) piece += step;
      }
      pieces.chunk_piece[thread] = static_cast<uint8_t>(piece);
    }
    __syncthreads();
  }

  // Item e of this thread is in slot e * kThreads + thread of the tile.
  __device__ __forceinline__ bool exists(int e) const {
    return e * kThreads + thread < size;
  }

  // Calls visit(first) for every kGroup items of which the block has any.
  template <class Visit>
  __device__ __forceinline__ void for_each_group(Visit visit) const {
#pragma unroll
    for (int first = 0; first < kItems; first += kGroup) {
      if (first * kThreads < size) visit(first);
    }
  }

  // What lies at a slot, whose 32nd is in piece `piece` or in one behind it. In the first stage the key is above the index, not its code.
  __device__ __forceinline__ uint64_t fetch(const WideGroup& group, uint32_t slot, uint32_t piece) const {
    while (pieces.slots[piece + 1] <= slot) ++piece;
    const int64_t place = group.row_begin + group.begin + (pieces.offsets[piece] + slot);
    if constexpr (kFirst) {
      const uint32_t run_begin = static_cast<uint32_t>(group.begin) + piece * static_cast<uint32_t>(m.run_length);
      return static_cast<uint64_t>(m.keys[place]) << 32 | (m.positions[place] + run_begin);
    } else {
      return m.words_in[place];
    }
  }

  __device__ __forceinline__ uint64_t word_of(uint64_t fetched) const {
    if constexpr (!kFirst) return fetched;
    return static_cast<uint64_t>(m.order.code(static_cast<U>(fetched >> 32))) << 32 | static_cast<uint32_t>(fetched);
  }

  __device__ __forceinline__ void load(const WideGroup& group, uint64_t (&held)[kItems]) const {
    for_each_group([&](int first) {
      uint32_t slot[kGroup], piece[kGroup];
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        slot[k] = exists(first + k) ? (first + k) * kThreads + thread : 0;
        piece[k] = pieces.chunk_piece[slot[k] / 32];
      }
#pragma unroll
      for (int k = 0; k < kGroup; ++k) held[first + k] = fetch(group, slot[k], piece[k]);
    });
    for_each_group([&](int first) {
#pragma unroll
      for (int k = 0; k < kGroup; ++k) held[first + k] = word_of(held[first + k]);
    });
  }

  // Counts become begins. False, for all threads, when a bin holds more than kMostNumber, or more threads than `crowded` see one that holds
  // more than kManyInWideBin.
  __device__ __forceinline__ bool scan(uint32_t used, int crowded) const {
    __syncthreads();
    const uint32_t own = counters + thread * used * 16;
    uint32_t sum = 0, most = 0;
#pragma unroll 1
    for (uint32_t v = 0; v < used; ++v) {
      uint4 counts;
      load_shared(own + v * 16, counts);
      sum += counts.x + counts.y + counts.z + counts.w;
      most = max(max(most, max(counts.x, counts.y)), max(counts.z, counts.w));
    }
    const uint32_t inclusive = warp_inclusive_scan(sum);
    const uint32_t lane = thread % 32, warp = thread / 32;
    if (lane == 31) pieces.totals[warp] = inclusive;
    if (__syncthreads_count(most > kManyInWideBin) > crowded) return false;
    if (__syncthreads_or(most > kMostNumber)) return false;
    uint32_t begin = inclusive - sum + __reduce_add_sync(~0u, lane < warp ? pieces.totals[lane] : 0);
#pragma unroll 1
    for (uint32_t v = 0; v < used; ++v) {
      uint4 counts;
      load_shared(own + v * 16, counts);
      const uint32_t second = begin + counts.x, third = second + counts.y, fourth = third + counts.z;
      store_shared(own + v * 16, make_uint4(begin, second, third, fourth));
      begin = fourth + counts.w;
    }
    if (thread == kThreads - 1) store_shared(own + used * 16, begin);
    __syncthreads();
    return true;
  }

  // Writes the tile, or returns false for all threads when the bins are too crowded. Counters are clear.
  __device__ __forceinline__ bool distribute(const uint64_t (&held)[kItems], const EvenBins& map) const {
    const uint32_t no_counter = words() + thread * 4;  // of items that do not exist: nothing lies there yet
    uint32_t numbers[kItems / 4];  // of the words in their bins, a byte to each; where a bin takes more than that, the scan says so
    for_each_group([&](int first) {
      uint32_t number[kGroup];
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        number[k] = fetch_add_shared(exists(first + k) ? counters + map.bin(held[first + k]) * 4 : no_counter, 1);
      }
      numbers[first / 4] = number[0] + (number[1] << 8) + (number[2] << 16) + (number[3] << 24);
    });
    if (!scan(vectors, kMostCrowdedThreads)) return false;
    if (thread < kWidePads) store_shared(words() + (size + thread) * 8, make_uint2(~0u, ~0u));
    for_each_group([&](int first) {
      uint32_t place[kGroup];
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        place[k] = load_shared(exists(first + k) ? counters + map.bin(held[first + k]) * 4 : counters);
      }
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const uint64_t word = held[first + k];
        const uint32_t address = words() + (place[k] + (numbers[first / 4] >> (k * 8) & 0xff)) * 8;
        if (exists(first + k)) store_shared(address, make_uint2(static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32)));
      }
    });
    __syncthreads();
    rank_and_write(map);
    return true;
  }

  __device__ __forceinline__ void rank_and_write(const EvenBins& map) const {
    const WideGroup group(m, bound / (m.tiles_per_group + 1));
    const int64_t destination = group.row_begin + group.begin + m.begins[bound];
#pragma unroll 1
    for (uint32_t place = thread; place < size; place += kRankTogether * kThreads) {
      uint64_t mine[kRankTogether];
      uint32_t other[kRankTogether], end[kRankTogether], rank[kRankTogether];
#pragma unroll
      for (int i = 0; i < kRankTogether; ++i) {
        const uint32_t at = place + i * kThreads;
        mine[i] = load_shared_word(words() + (at < size ? at : place) * 8);
      }
#pragma unroll
      for (int i = 0; i < kRankTogether; ++i) {
        const uint32_t counter = counters + map.bin(mine[i]) * 4;
        rank[i] = other[i] = load_shared(counter);
        end[i] = load_shared(counter + 4);
      }
#pragma unroll
      for (int i = 0; i < kRankTogether; ++i) {
#pragma unroll 1
        for (; other[i] < end[i]; other[i] += kRankStep) {
          uint64_t others[kRankStep];
#pragma unroll
          for (int k = 0; k < kRankStep; ++k) others[k] = load_shared_word(words() + (other[i] + k) * 8);
#pragma unroll
          for (int k = 0; k < kRankStep; ++k) rank[i] += others[k] < mine[i];
        }
      }
#pragma unroll
      for (int i = 0; i < kRankTogether; ++i) {
        if (place + i * kThreads < size) write_wide_word(m, group.row_begin, destination + rank[i], mine[i]);
      }
    }
  }
};

template <class U, bool kFirst>
__global__ void __launch_bounds__(kWideThreads, 2) wide_tile_kernel(const __grid_constant__ WideMergeArguments<U> m) {
  using Tile = WideTile<U, kFirst>;
  extern __shared__ uint4 shared_memory[];
  __shared__ WidePieces pieces;
  const uint32_t tile = blockIdx.x, bound = tile + tile / m.tiles_per_group;
  const uint32_t size = m.begins[bound + 1] - m.begins[bound];
  if (size == 0) return;
  if (size > kWideCapacity) {
    if (threadIdx.x == 0) note_wide_tile(m, kWideRest, bound);
    return;
  }
  const Tile work(m, pieces, shared_address(shared_memory), bound, size);
  work.clear_counters(work.vectors);
  work.set_up_pieces();
  uint64_t held[Tile::kItems];
  work.load(WideGroup(m, bound / (m.tiles_per_group + 1)), held);
  const EvenBins map(m.bounds[bound], m.bounds[bound + 1], m.index_shift, work.bins());
  if (!work.distribute(held, map) && threadIdx.x == 0) note_wide_tile(m, kWideCrowds, bound);
}

}  // namespace gpusort
