// The tiles of a wide merge that crowd the even bins, by bins that follow the data.
//
// Some of the tile's words are taken and ranked among themselves; between two neighbours of them in order lie about as many words as
// between any two, and each such gap has as many bins of its own. So words may spread over their range as unevenly as they like (floats of
// all magnitudes around zero, heavy values between rare ones); what is left in a bin is a part of one gap. A bisection says the gap of a
// word, once; a byte to each place, the number of its word in the bin, says later where the bin begins and ends.
#pragma once

#include "wide_tile.cuh"

namespace gpusort {

constexpr int kWideGaps = 256;
constexpr int kBinsPerGapBits = 5;
static_assert(kWideGaps << kBinsPerGapBits == kWideCapacity, "");

struct WideGapWords {
  uint64_t taken[kWideGaps];
  uint64_t words[kWideGaps + 1];  // in order; first and last are the bounds of the tile
  uint8_t numbers[kWideCapacity + 1];
};

template <class U, bool kFirst>
struct WideCrowd {
  using Tile = WideTile<U, kFirst>;
  static constexpr int kThreads = Tile::kThreads, kItems = Tile::kItems, kGroup = Tile::kGroup;

  const Tile& tile;
  WideGapWords& gaps;

  // Ends with a barrier.
  __device__ __forceinline__ void take_words(const WideGroup& group) const {
    const WideMergeArguments<U>& m = tile.m;
    const uint32_t thread = tile.thread;
    if (thread < kWideGaps) {
      // One of each share of the slots, at multiples of the golden ratio (Weyl): in pieces that look alike the places spread evenly.
      const uint32_t share = tile.size / kWideGaps, slot = thread * share + __umulhi(thread * 2654435769u, share);
      gaps.taken[thread] = spread_word(tile.word_of(tile.fetch(group, slot, tile.pieces.chunk_piece[slot / 32])), m.index_shift);
    } else if (thread == kWideGaps) {
      gaps.words[0] = spread_word(m.bounds[tile.bound], m.index_shift);
      gaps.words[kWideGaps] = spread_word(m.bounds[tile.bound + 1], m.index_shift);
      gaps.numbers[tile.size] = 0;
    }
    __syncthreads();
    if (thread < kWideGaps) {
      const uint64_t own = gaps.taken[thread];
      uint32_t rank = 0;
#pragma unroll 8
      for (int other = 0; other < kWideGaps; ++other) rank += gaps.taken[other] < own;
      if (rank > 0) gaps.words[rank] = own;
    }
    __syncthreads();
  }

  __device__ __forceinline__ uint32_t bin(uint64_t word) const {
    const uint64_t spread = spread_word(word, tile.m.index_shift);
    uint32_t gap = 0;
#pragma unroll
    for (uint32_t step = kWideGaps / 2; step > 0; step /= 2) {
      if (gaps.words[gap + step] <= spread) gap += step;
    }
    const uint64_t lowest = gaps.words[gap], highest = gaps.words[gap + 1], range = highest - lowest;
    const uint32_t low_code = static_cast<uint32_t>(lowest >> 32), high_code = static_cast<uint32_t>(highest >> 32);
    const uint32_t code = static_cast<uint32_t>(spread >> 32), index = static_cast<uint32_t>(spread);
    const uint32_t leading = static_cast<uint32_t>(((spread - lowest) << min(__clzll(static_cast<long long>(range)), 63)) >> 32);
    // Where the ends of the gap are different keys, words of either are told apart by their indices, in a quarter of the bins each.
    uint32_t part = leading >> (32 - kBinsPerGapBits);
    if (low_code != high_code) {
      constexpr uint32_t kQuarter = 1u << (kBinsPerGapBits - 2);
      part = kQuarter + (leading >> (33 - kBinsPerGapBits));
      const uint32_t low_index = static_cast<uint32_t>(lowest), high_index = static_cast<uint32_t>(highest);
      if (code == low_code) part = (index - low_index) << min(__clz(static_cast<int>(~low_index)), 31) >> (34 - kBinsPerGapBits);
      if (code == high_code) part = 3 * kQuarter + (index << min(__clz(static_cast<int>(high_index)), 31) >> (34 - kBinsPerGapBits));
    }
    return gap << kBinsPerGapBits | part;
  }

  // Writes the tile, or returns false for all threads when a bin holds too many. Counters are clear.
  __device__ __forceinline__ bool distribute(const WideGroup& group, const uint64_t (&held)[kItems]) const {
    const uint32_t no_counter = tile.words() + tile.thread * 4;  // of items that do not exist: nothing lies there yet
    uint32_t bins[kItems / 2], numbers[kItems / 4];
    tile.for_each_group([&](int first) {
      numbers[first / 4] = 0;
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const int e = first + k;
        const uint32_t own = bin(held[e]), number = fetch_add_shared(tile.exists(e) ? tile.counters + own * 4 : no_counter, 1);
        numbers[first / 4] += number << (k * 8);
        bins[e / 2] = e % 2 == 0 ? own : bins[e / 2] | own << 16;
      }
    });
    if (!tile.scan(kItems / 4, kThreads)) return false;
    tile.for_each_group([&](int first) {
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const int e = first + k;
        if (!tile.exists(e)) continue;
        const uint32_t number = numbers[first / 4] >> (k * 8) & 0xff;
        const uint32_t place = load_shared(tile.counters + (bins[e / 2] >> (e % 2 * 16) & 0xffff) * 4) + number;
        store_shared(tile.words() + place * 8, make_uint2(static_cast<uint32_t>(held[e]), static_cast<uint32_t>(held[e] >> 32)));
        gaps.numbers[place] = static_cast<uint8_t>(number);
      }
    });
    __syncthreads();
    const int64_t destination = group.row_begin + group.begin + tile.m.begins[tile.bound];
#pragma unroll 1
    for (uint32_t place = tile.thread; place < tile.size; place += kThreads) {
      const uint64_t mine = load_shared_word(tile.words() + place * 8);
      uint32_t other = place - gaps.numbers[place], rank = other;
      do {
        rank += load_shared_word(tile.words() + other * 8) < mine;
        ++other;
      } while (gaps.numbers[other] != 0);
      write_wide_word(tile.m, group.row_begin, destination + rank, mine);
    }
    return true;
  }
};

template <class U, bool kFirst>
__global__ void __launch_bounds__(kWideThreads, 2) wide_crowds_kernel(const __grid_constant__ WideMergeArguments<U> m) {
  using Tile = WideTile<U, kFirst>;
  extern __shared__ uint4 shared_memory[];
  __shared__ WidePieces pieces;
  __shared__ WideGapWords gaps;
  const uint32_t count = m.lists[kWideCrowds], thread = threadIdx.x;
  for (uint32_t listed = blockIdx.x; listed < count; listed += gridDim.x) {
    const uint32_t bound = wide_list(m, kWideCrowds)[listed];
    const uint32_t size = m.begins[bound + 1] - m.begins[bound];
    if (size < 2 * kWideGaps) {  // too few to take words of
      if (thread == 0) note_wide_tile(m, kWideRest, bound);
      continue;
    }
    const Tile tile(m, pieces, shared_address(shared_memory), bound, size);
    const WideGroup group(m, bound / (m.tiles_per_group + 1));
    tile.clear_counters(Tile::kItems / 4);
    tile.set_up_pieces();
    const WideCrowd<U, kFirst> crowd{tile, gaps};
    crowd.take_words(group);
    uint64_t held[Tile::kItems];
    tile.load(group, held);
    if (!crowd.distribute(group, held) && thread == 0) note_wide_tile(m, kWideRest, bound);
    __syncthreads();
  }
}

}  // namespace gpusort
