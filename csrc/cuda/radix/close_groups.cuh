// The last step of a sort of 64-bit keys by three or four leading digits: records that agree in these, a group, are put in order by the
// rest.
//
// Records come from buffer 0, sorted by the leading digits, equal ones in the order of their indices. Groups are small (16 on average at
// most, leading_digits.cu), so every record finds its place alone: it counts the records of its group that come before it. A block keeps of
// a tile of records, and of kHalo rows of 32 around it, one word each: the rest of the key, 40 bits at most, and below it the place in the
// tile, so that no two words are equal. Of each row there is a word with a bit for each record that begins a group, so where a group begins
// and ends follows from the rows around.
//
// Records with indices go to their places in shared memory first, those of neighbouring tiles too that have them in this one, and leave in
// order: a row that is stored nearly in order fills parts of sectors at its ends. Keys alone are stored at once.
//
// Groups of more than kMostGroup records stay as they are. Where one of them is not in order (a record is larger than the one after it:
// equal keys may be as many as they like), a note is made, and the kernels of high_word_ties.cu order that group.
//
// Traffic: 12 bytes read and 16 written per element with int64 indices.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "borrowed_indices.cuh"
#include "group_notes.cuh"
#include "pass_arguments.h"

namespace gpusort {

constexpr uint32_t kMostGroup = 64;

template <int kThreads, int kRowsPerWarp, bool kStaged>
struct GroupWords {
  static constexpr int kHalo = kMostGroup / 32;
  static constexpr int kRows = kThreads / 32 * kRowsPerWarp + 2 * kHalo;
  static constexpr int kAtOnce = 4;  // that a lane compares itself with; it may read so many beyond the last row
  uint64_t words[kRows * 32 + kMostGroup + kAtOnce];
  uint32_t heads[kRows + 2 * kHalo];  // of rows that are not looked at there are none
  uint64_t codes[kStaged ? kThreads * kRowsPerWarp : 1];
  uint32_t indices[kStaged ? kThreads * kRowsPerWarp : 1];
};

template <class Index, int kThreads, int kRowsPerWarp>
struct GroupCloser {
  static constexpr bool kIndexed = !std::is_same_v<Index, NoIndex>;
  // H200, 2^26 random keys: 577 us with indices staged and 647 stored at once; keys alone 420 stored at once, 460 staged.
  static constexpr bool kStaged = kIndexed;
  using Shared = GroupWords<kThreads, kRowsPerWarp, kStaged>;
  static constexpr int kHalo = Shared::kHalo;
  static constexpr int kRows = Shared::kRows;
  static constexpr uint32_t kTile = kThreads * kRowsPerWarp;
  static_assert(kRows * 32 <= 1 << 24, "a place fits the bits below 40 of the key");

  const PassArguments<uint64_t>& arguments;
  Shared& shared;
  const uint32_t shift;  // of the leading digits, 40 at most
  const uint32_t most_notes;
  const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  const uint64_t* records = static_cast<const uint64_t*>(arguments.records[0]);
  const uint64_t leading_mask = ~uint64_t{0} << shift;

  // Row number `row` of the tile and its halo. `neighbour`: the code of the record before. All lanes of a warp call.
  __device__ __forceinline__ void put_row(uint32_t row, uint32_t position, uint64_t code, uint64_t neighbour) const {
    const bool head = position == 0 || position >= arguments.length || ((code ^ neighbour) & leading_mask) != 0;
    const uint32_t heads = __ballot_sync(~0u, head);
    shared.words[row * 32 + lane] = code << (64 - shift) | (row * 32 + lane);
    if (lane == 0) shared.heads[kHalo + row] = heads;
  }

  // Of a row of the halo, whose records belong to other tiles.
  __device__ __forceinline__ void put_halo(uint32_t row, uint32_t first) const {
    const uint32_t position = first + (row - kHalo) * 32 + lane;  // wraps round before the first tile: beyond all lengths
    const uint64_t code = position < arguments.length ? records[position] : 0;
    uint64_t neighbour = __shfl_up_sync(~0u, static_cast<unsigned long long>(code), 1);
    if (lane == 0 && position - 1 < arguments.length) neighbour = records[position - 1];
    put_row(row, position, code, neighbour);
  }

  // Distances to where the record's group begins, and to where it ends. Both 0: it is too long.
  __device__ __forceinline__ uint2 group_around(uint32_t row) const {
    const uint32_t* heads = shared.heads + kHalo + row;
    const uint32_t here = heads[0], above = heads[-1], below = heads[1];
    const uint32_t up_to = __funnelshift_l(above, here, 31 - lane);  // of positions -31 to 0
    const uint32_t later = __funnelshift_rc(here, below, lane + 1);  // of positions 1 to 32
    uint2 around = make_uint2(__clz(static_cast<int>(up_to)), __ffs(static_cast<int>(later)));
    if (up_to == 0 || later == 0) {
      const uint32_t before = up_to != 0 ? up_to : __funnelshift_l(heads[-2], above, 31 - lane);
      const uint32_t after = later != 0 ? later : __funnelshift_rc(below, heads[2], lane + 1);
      around.x = (up_to != 0 ? 0 : 32) + __clz(static_cast<int>(before));
      around.y = (later != 0 ? 0 : 32) + __ffs(static_cast<int>(after));
      if (before == 0 || after == 0 || around.x + around.y > kMostGroup) around = make_uint2(0, 0);
    }
    return around;
  }

  // How many of the `size` words from `group` on are smaller than word `own`. All lanes of a warp call.
  __device__ __forceinline__ uint32_t count_smaller(uint32_t own, uint32_t group, uint32_t size) const {
    const uint64_t word = shared.words[own];
    const uint64_t* others = shared.words + group;
    const uint32_t most = __reduce_max_sync(~0u, size);
    uint32_t smaller = 0;
    if (most < 2) return 0;
#pragma unroll 1
    for (uint32_t k = 0; k < most; k += Shared::kAtOnce) {
      uint64_t other[Shared::kAtOnce];
#pragma unroll
      for (int i = 0; i < Shared::kAtOnce; ++i) other[i] = others[k + i];
#pragma unroll
      for (int i = 0; i < Shared::kAtOnce; ++i) smaller += k + i < size && other[i] < word ? 1 : 0;
    }
    return smaller;
  }

  // Notes the first record in each long group of the row that is smaller than the one before it. All lanes call.
  __device__ __forceinline__ void note_drops(uint32_t row, uint32_t position, uint64_t code, bool too_long) const {
    const uint32_t heads = shared.heads[kHalo + row];
    const bool drop = too_long && position < arguments.length && (heads >> lane & 1) == 0 && records[position - 1] > code;
    const uint32_t drops = __ballot_sync(~0u, drop);
    if (!drop) return;
    const uint32_t below = (1u << lane) - 1;
    const uint32_t last_head = 31 - __clz(static_cast<int>(heads & below | 1u));
    if ((drops & below) >> last_head != 0) return;
    note_group(arguments, most_notes, position);
  }

  __device__ __forceinline__ void store(uint32_t place, uint64_t code, uint32_t index, uint32_t borrowed_begin) const {
    arguments.keys_out[place] = arguments.codec.bits(code);
    if constexpr (std::is_same_v<Index, int64_t>)
      store_wide_index(static_cast<int64_t*>(arguments.indices_out), place, borrowed_begin, index);
    else if constexpr (kIndexed)
      static_cast<uint32_t*>(arguments.indices_out)[place] = index;
  }

  // A record goes to its place in the tile, if it has one there.
  __device__ __forceinline__ void stage(uint32_t place, uint64_t code, uint32_t index) const {
    if (place >= kTile) return;
    shared.codes[place] = code;
    shared.indices[place] = index;
  }

  __device__ __forceinline__ void close_tile(uint32_t first) const {
    const uint32_t own_first = first + warp * (kRowsPerWarp * 32) + lane;
    uint64_t code[kRowsPerWarp], before = 0;
    uint32_t index[kRowsPerWarp];
#pragma unroll
    for (int r = 0; r < kRowsPerWarp; ++r) {
      const uint32_t position = own_first + r * 32;
      code[r] = position < arguments.length ? records[position] : 0;
    }
    if (lane == 0 && own_first - 1 < arguments.length) before = records[own_first - 1];
    if constexpr (kIndexed) {
#pragma unroll
      for (int r = 0; r < kRowsPerWarp; ++r) {
        const uint32_t position = own_first + r * 32;
        index[r] = position < arguments.length ? arguments.record_indices[0][position] : 0;
      }
    }
    static_assert(kThreads / 32 >= 2 * kHalo && kHalo == 2, "one row of the halo for a warp");
    const uint32_t halo_row = warp < kHalo ? warp : kRows - 2 * kHalo + warp;  // of the first warps
    if (warp < 2 * kHalo) put_halo(halo_row, first);
    if (threadIdx.x < kHalo) shared.heads[threadIdx.x] = shared.heads[kHalo + kRows + threadIdx.x] = 0;
    const uint32_t first_row = kHalo + warp * kRowsPerWarp;
#pragma unroll
    for (int r = 0; r < kRowsPerWarp; ++r) {
      const uint64_t turned = __shfl_sync(~0u, static_cast<unsigned long long>(code[r]), (lane + 31) & 31);
      put_row(first_row + r, own_first + r * 32, code[r], lane == 0 ? before : turned);
      before = turned;  // lane 0 has the row's last one
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kRowsPerWarp; ++r) {
      const uint32_t own = (first_row + r) * 32 + lane;
      const uint2 around = group_around(first_row + r);
      const uint32_t place = own - around.x + count_smaller(own, own - around.x, around.x + around.y) - kHalo * 32;
      if constexpr (kStaged)
        stage(place, code[r], index[r]);
      else if (own_first + r * 32 < arguments.length)
        store(first + place, code[r], 0, 0);
      if (__any_sync(~0u, around.y == 0)) note_drops(first_row + r, own_first + r * 32, code[r], around.y == 0);
    }
    if (kStaged && warp < 2 * kHalo) {  // records of the halo whose groups reach into the tile may have their places there
      const uint32_t own = halo_row * 32 + lane, position = first + own - kHalo * 32;
      const uint2 around = group_around(halo_row);
      const uint32_t place = own - around.x + count_smaller(own, own - around.x, around.x + around.y) - kHalo * 32;
      if (place < kTile && position < arguments.length) stage(place, records[position], arguments.record_indices[0][position]);
    }
    __syncthreads();
    if constexpr (kStaged) {
      const uint32_t borrowed_begin = borrowed_begin_in_row(arguments, 0);
#pragma unroll
      for (int r = 0; r < kRowsPerWarp; ++r) {
        const uint32_t place = r * kThreads + threadIdx.x, position = first + place;
        if (position < arguments.length) store(position, shared.codes[place], shared.indices[place], borrowed_begin);
      }
      __syncthreads();
    }
  }
};

}  // namespace gpusort
