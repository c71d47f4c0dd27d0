// Steps of a least-significant-digit radix sort, each one read and one write of the data. After Adinets and Merrill, "Onesweep" (2022).
//
// One persistent block per SM takes tiles by ticket. A tile is a part of one row. Per tile:
//   rank       each warp counts its digits in a histogram of its own, items in memory order (tile_ranks.cuh)
//   scan       256 threads add up the warps, publish the tile's counts, and turn the histograms into places in the tile
//   scatter    records to shared memory in digit order
//   look-back  where in the row the tile's run of each bin begins
//   write      in digit order, so that the runs are long; the loads of the next tile are issued between the stores
//   verify     while writing
//
// Ranks come from returning shared atomics, whose order within a warp the hardware does not promise. So the order is verified: the input of
// a step rises in (bits sorted so far, position), hence so must the staged tile in (bits sorted so far with this digit, position).
// Atomicity alone makes the ranks a permutation within each bin, so a tile that does not rise needs nothing but its neighbours exchanged
// until it does, and to be written again to the same places. Ragged tiles are filled up with pads, which have the largest code and come
// last in every order. Keys without an index are verified by their bits alone: those of one code are written as one pattern, see
// equal_codes.h. Where bits outside the window that is sorted by differ, the kExact form ranks by match.any, which is ordered by
// definition, at three times the cost.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "../primitives/dependent_launch.cuh"
#include "../primitives/look_back.cuh"
#include "copy_rows.cuh"
#include "staged_tile.cuh"

namespace gpusort {

template <class Policy, bool kExact, StepOutputs kOutputs>
struct OnesweepBlock : StagedTile<Policy, kExact, kOutputs> {
  using Base = StagedTile<Policy, kExact, kOutputs>;
  using Base::arguments;
  using Base::Base;
  using Base::clear_histogram;
  using Base::decide_by_votes;
  using Base::kAddsForAll;
  using Base::kCommon;
  using Base::kCommonDecided;
  using Base::kCommonItems;
  using Base::kDecided;
  using Base::kDecidesByTile;
  using Base::kGroup;
  using Base::kGroups;
  using Base::kHistograms;
  using Base::kLookBackWidth;
  using Base::kNextTile;
  using Base::kOffsets;
  using Base::kOneDigit;
  using Base::kThreads;
  using Base::kTileItems;
  using Base::kUnit;
  using Base::kVotes;
  using Base::kWarps;
  using Base::kWarpSums;
  using Base::lane;
  using Base::load_group;
  using Base::mend;
  using Base::place_of;
  using Base::prefetch;
  using Base::role;
  using Base::scatter;
  using Base::shared;
  using Base::spacing;
  using Base::spread_banks;
  using Base::thread;
  using Base::warp;
  using Base::write_group;
  using typename Base::TilePlace;

  // The sum over threads 0..255 up to and with this one, in two halves with a barrier of the whole block between them: inside the warp,
  // which leaves the warp's sum, then over the warps before.
  __device__ __forceinline__ uint32_t sum_in_warp(uint32_t value) const {
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, value, distance);
      if (lane >= distance) value += other;
    }
    if (lane == 31) store_shared(shared + kWarpSums + warp * 4, value);
    return value;
  }
  __device__ __forceinline__ uint32_t sum_over_warps(uint32_t sum) const {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const uint32_t other = load_shared(shared + kWarpSums + k * 4);
      if (k < warp) sum += other;
    }
    return sum;
  }

  // Thread b: its counter in histogram number h.
  __device__ __forceinline__ uint32_t column(int h) const {
    return shared + (thread * 4 ^ spread_banks(h)) + h * (kRadixBins * 4);
  }

  // Thread b: the tile's count of bin b, in bytes.
  __device__ __forceinline__ uint32_t count_of_bin(const TilePlace& place, uint32_t* word) const {
    uint32_t total = 0;
#pragma unroll
    for (int h = 0; h < kHistograms; ++h) total += load_shared(column(h));
    if (place.number != 0) publish_count(word, total / kUnit);
    if (total > kTileItems * kUnit / 2) store_shared(shared + kOneDigit, 1);
    if (kAddsForAll && total > kTileItems * kUnit / 32 * kCommonItems) {
      raise_shared(shared + kCommon, thread * 4 | kCommonDecided);
      if constexpr (kDecidesByTile) raise_shared(shared + Base::kCommonLow, Base::kTopOffset - thread * 4 | kCommonDecided);
    }
    return total;
  }

  // Thread b: the histograms become places in the tile, from the start of bin b's run on.
  __device__ __forceinline__ void place_bin(uint32_t start) const {
    uint32_t next = start;
#pragma unroll 8
    for (int h = 0; h < kHistograms; ++h) {
      const uint32_t count = load_shared(column(h));
      store_shared(column(h), next);
      next += count;
    }
  }

  // Thread b: publishes the position after the tile's run of bin b, and keeps what must be added to a place in the tile to get the position
  // in the row. All threads of the block call.
  __device__ __forceinline__ void find_offsets(const TilePlace& place, uint32_t tile, uint32_t* word, uint32_t total,
                                               uint32_t start) const {
    uint32_t before = 0;
    if (place.number == 0) {  // the row's first tile starts from the bins: all later words are positions in the row
      uint32_t items = 0;
      if (thread < kRadixBins) {
        items = arguments.bins[((static_cast<uint64_t>(place.row) * arguments.passes + role.digit) * kRadixBins + thread) * spacing()];
        before = sum_in_warp(items);
      }
      __syncthreads();
      if (thread < kRadixBins) before = sum_over_warps(before) - items;
    } else if (thread < kRadixBins) {
      before = look_back<kLookBackWidth>(word, tile, kRadixBins * spacing());
    }
    if (thread >= kRadixBins) return;
    publish_inclusive(word, before + total / kUnit);
    store_shared(shared + kOffsets + thread * 4, before - start / kUnit);
  }

  // A share of the next step's look-back table, by tile.
  __device__ __forceinline__ void clear_next_table(uint32_t tile) const {
    if constexpr (kOutputs != StepOutputs::kRecords) return;
    uint32_t* table = arguments.look_back[(role.step + 1) & 1];
    const uint32_t begin = tile * arguments.look_back_share;
    const uint32_t end = min(begin + arguments.look_back_share, arguments.look_back_rows);
    for (uint32_t row = begin + thread / kRadixBins; row < end; row += kThreads / kRadixBins) {
      table[static_cast<uint64_t>(row) * kRadixBins + thread % kRadixBins] = 0;
    }
  }

  // Takes tiles until there are none, or, where tiles decide, until they are of the other kind: skewed or not. Returns whether there are
  // more.
  template <bool kSkewed>
  __device__ __forceinline__ bool run_tiles(uint32_t* ticket, uint32_t& tile, uint32_t& written) {
    for (;;) {  // the tile is loaded and ranked, the counts are complete
      const TilePlace place = place_of(tile);
      uint32_t next_tile = 0;
      if (thread == kThreads - 1) next_tile = atomicAdd(ticket, 1u);
      clear_next_table(tile);
      uint32_t total = 0, start = 0;
      uint32_t* word = arguments.look_back[role.step & 1] + (static_cast<uint64_t>(tile) * kRadixBins + thread) * spacing();
      if (thread < kRadixBins) {
        total = count_of_bin(place, word);
        start = sum_in_warp(total);
      }
      __syncthreads();
      if (thread < kRadixBins) {
        start = sum_over_warps(start) - total;
        place_bin(start);
      }
      __syncthreads();  // places in the tile are known
      if (thread == kThreads - 1) {
        store_shared(shared + kNextTile, next_tile);
        decide_by_votes();
        if constexpr (Policy::kShape.prefetch) {
          const bool one_digit =
              load_shared(shared + kOneDigit) != 0;  // slower then: middle pass 410 us with, 335-350 without (H200, 2^26)
          store_shared(shared + kOneDigit, 0);
          if (!one_digit && next_tile < arguments.tiles) prefetch(next_tile);
        }
      }
      scatter(place);
      __syncwarp();
      clear_histogram();
      find_offsets(place, tile, word, total, start);
      __syncthreads();  // records and offsets are in place
      tile = warp_uniform(load_shared(shared + kNextTile));
      const bool more = tile < arguments.tiles;
      bool skewed = kSkewed;
      if constexpr (kDecidesByTile) skewed = load_shared(shared + kDecided) != 0;
      const TilePlace next = place_of(more ? tile : 0);
      bool wrong = false;
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        if (more) load_group(next, group);
        wrong |= write_group(place, group * kGroup);
      }
      if (more) this->template rank_tile<kSkewed ? RankMode::kDecided : RankMode::kPlain>(next);
      if constexpr (kExact) {
        __syncthreads();
      } else {
        if (__syncthreads_or(wrong)) mend(place);
      }
      ++written;
      if (!more) return false;
      if (skewed != kSkewed) return true;
    }
  }

  // Returns how many tiles the block has written.
  __device__ __forceinline__ uint32_t run() {
    uint32_t* ticket = control_word(arguments.control, offsetof(RadixControl, tickets) + role.step * 4, spacing());
    uint32_t written = 0;
    if (thread == kThreads - 1) {
      store_shared(shared + kNextTile, atomicAdd(ticket, 1u));
      store_shared(shared + kOneDigit, 0);
      store_shared(shared + kVotes, 0);
      store_shared(shared + kDecided, 0);
      store_shared(shared + kCommon, 0);
      if constexpr (kDecidesByTile) store_shared(shared + Base::kCommonLow, 0);
    }
    __syncthreads();
    uint32_t tile = warp_uniform(load_shared(shared + kNextTile));
    if (tile >= arguments.tiles) return 0;
    clear_histogram();
    {
      const TilePlace place = place_of(tile);
#pragma unroll
      for (int group = 0; group < kGroups; ++group) load_group(place, group);
      this->template rank_tile<RankMode::kFirst>(place);
    }
    __syncthreads();
    if constexpr (kDecidesByTile) {
      bool skewed = load_shared(shared + kVotes) >= kWarps / 2 || load_shared(shared + kCommon) != 0;
      __syncthreads();  // the first warp to go on may raise kCommon
      for (;;) {
        if (!skewed && !run_tiles<false>(ticket, tile, written)) return written;
        if (!run_tiles<true>(ticket, tile, written)) return written;
        skewed = false;
      }
    } else {
      run_tiles<true>(ticket, tile, written);
      return written;
    }
  }
};

// Forms that count and place records by two atomics: placed_block.cuh.
template <class Policy, StepOutputs kOutputs>
struct PlacedBlock;

template <class Policy, bool kExact, StepOutputs kOutputs>
using BlockOf = std::conditional_t<Policy::kPlaced && !kExact, PlacedBlock<Policy, kOutputs>, OnesweepBlock<Policy, kExact, kOutputs>>;

// Waits until all blocks together have written all tiles of the step. Only a running block has ever taken a tile, so this ends wherever
// the blocks run, at once or one after the other.
__device__ __forceinline__ void wait_for_step(uint32_t* written_tiles, uint32_t written, uint32_t tiles) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (written != 0) atomicAdd(written_tiles, written);
    while (load_relaxed(written_tiles) != tiles) __nanosleep(100);
    __threadfence();
  }
  __syncthreads();
}

template <class Policy, bool kExact>
__device__ __forceinline__ void write_records(const PassArguments<typename Policy::Key>& arguments, const PassRole& role, uint32_t shared) {
  if constexpr (Policy::kOnlyTarget >= 0) {
    if (role.target != Policy::kOnlyTarget) return;
    using Only = std::conditional_t<Policy::kOnlyTarget == kBufferInPieces, ToPieces<Policy>, FromPieces<Policy>>;
    BlockOf<Only, kExact, StepOutputs::kRecords>(arguments, role, shared).run();
  } else if constexpr (Policy::kInPieces) {
    if (role.target == kBufferInPieces)
      BlockOf<ToPieces<Policy>, kExact, StepOutputs::kRecords>(arguments, role, shared).run();
    else
      BlockOf<FromPieces<Policy>, kExact, StepOutputs::kRecords>(arguments, role, shared).run();
  } else {
    BlockOf<Policy, kExact, StepOutputs::kRecords>(arguments, role, shared).run();
  }
}

template <class Policy, bool kExact>
__device__ __forceinline__ void write_outputs(const PassArguments<typename Policy::Key>& arguments, const PassRole& role, uint32_t shared) {
  if constexpr (Policy::kIndexed) {
    if (arguments.keys_out != nullptr && arguments.index_bytes == 8) {
      BlockOf<Policy, kExact, StepOutputs::kKeysAndInt64>(arguments, role, shared).run();
      return;
    }
  }
  BlockOf<Policy, kExact, StepOutputs::kAny>(arguments, role, shared).run();
}

template <class Policy, bool kExact>
__global__ __launch_bounds__(Policy::kShape.threads,
                             1) void onesweep_pass_kernel(const __grid_constant__ PassArguments<typename Policy::Key> arguments) {
  start_after_predecessor();
  extern __shared__ __align__(1024) uint8_t staging[];
  const int spacing = table_spacing<Policy>(arguments);
  if (arguments.may_use_low_words && arguments.low_words != sorted_by_low_words(arguments.control, spacing)) return;
  const uint32_t shared = shared_address(staging);
  if constexpr (Policy::kKind == PassKind::kMiddle && kMiddleSlotsInOneLaunch<typename Policy::Key, Policy::kIndexed>) {
#pragma unroll 1
    for (int slot = 1;; ++slot) {
      const PassRole role = pass_role(arguments.control, PassKind::kMiddle, slot, arguments.passes);
      if (!role.active) return;
      const uint32_t written = BlockOf<Policy, kExact, StepOutputs::kRecords>(arguments, role, shared).run();
      wait_for_step(arguments.control->written_tiles + slot, written, arguments.tiles);
    }
  } else if constexpr (Policy::kKind == PassKind::kMiddle) {
    const PassRole role = pass_role(arguments.control, PassKind::kMiddle, arguments.middle_slot, arguments.passes);
    if (role.active) write_records<Policy, kExact>(arguments, role, shared);
  } else {
    const PassRole role = pass_role(arguments.control, Policy::kKind, 0, arguments.passes, Policy::kLastTakesAll, spacing);
    if (!role.active) return;
    constexpr bool kLast = Policy::kKind == PassKind::kLast;
    if constexpr (kLast == Policy::kLastTakesAll) {
      if (role.live == 0) {
        copy_rows<Policy::kShape.threads, Policy::kTileItems, Policy::kKeysWanted>(arguments);
        return;
      }
    }
    if constexpr (!kLast && Policy::kLastTakesAll) {
      write_records<Policy, kExact>(arguments, role, shared);
    } else {
      if constexpr (!kLast && sizeof(typename Policy::Key) > 1) {
        if (!role.final) {
          BlockOf<Policy, kExact, StepOutputs::kRecords>(arguments, role, shared).run();
          return;
        }
      }
      if constexpr (kLast && Policy::kLastTakesAll) {
        if (role.live == 1) {
          write_outputs<WholePolicy<Policy>, kExact>(arguments, role, shared);
          return;
        }
      }
      write_outputs<Policy, kExact>(arguments, role, shared);
    }
  }
}

}  // namespace gpusort
