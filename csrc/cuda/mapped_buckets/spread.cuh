// First partition: tiles go to the regions of their row, by the leading bits of the bin, with indices.
//
//   count    atomics count the digits of the tile
//   claim    a thread to a digit takes the next places of its region by an atomic: runs of a region stand in any order
//   place    a second atomic gives each key its place in shared memory: in any order within the digit
//   write    runs of a digit, a warp to each
//
// Order within a region means nothing: records carry their indices, and the buckets' sort compares them. So there are no ranks to keep, no
// look-back and nothing to verify. Regions are lists of chunks, of which the one that claims a chunk's first record takes a new one;
// others that need it wait for its number. They have claimed after it, so it is running. Hence no sizes need be known, and no data can
// exceed them.
//
// Two blocks share an SM, and what one waits for the other hides; beyond that the kernel's time is its instructions: about 35 a key. So
// tiles that are full ask for no bounds, a key's counter is kept instead of its digit, and runs are prepared as pointers.
#pragma once

#include <cstdint>

#include "../rows/warp_reduce.cuh"
#include "sample_map.cuh"

namespace gpusort {

constexpr int kMostDigits = 1 << mapped_shapes::kMostDigitBits;

struct SpreadShared {
  alignas(1024) uint32_t counters[kMostDigits];
  uint32_t map[kMapCells];
  uint32_t starts[kMostDigits + 1];  // of digits, in the tile
  uint32_t totals[kMostDigits / 32];
  uint32_t nowhere[32];                    // counters of what lies behind the end of a row
  alignas(16) uint4 runs[2][kMostDigits];  // as below, and the part of it that goes to a second chunk
  alignas(16) uint2 records[mapped_shapes::kTile];
};

// A run of the tile, in step with the lines of 128 bytes that it goes to: from the first of them on, in memory (x, y) and in shared memory
// (z); w: records to the end, those before the run << 16, and whether a second part follows.
constexpr uint32_t kSecondPart = 1u << 31;

// Counters become starts. All threads call; returns the count of digit `thread`. Barriers before the last reads and after the writes.
__device__ __forceinline__ uint32_t starts_of_digits(uint32_t* counters, uint32_t* starts, uint32_t* totals) {
  const uint32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  uint32_t count = 0, inclusive = 0;
  if (thread < kMostDigits) {
    count = counters[thread];
    inclusive = warp_inclusive_scan(count);
    if (lane == 31) totals[warp] = inclusive;
  }
  __syncthreads();
  if (thread < kMostDigits) {
    const uint32_t start = inclusive - count + __reduce_add_sync(~0u, lane < warp ? totals[lane] : 0);
    counters[thread] = start;
    starts[thread] = start;
    if (thread == kMostDigits - 1) starts[kMostDigits] = start + count;
  }
  __syncthreads();
  return count;
}

// The record at this place among all chunks.
__device__ __forceinline__ uint2* record_at(const MappedArguments& arguments, uint32_t place) {
  return place < arguments.first_records ? arguments.chunks[0] + place : arguments.chunks[1] + (place - arguments.first_records);
}

struct SpreadBlock {
  static constexpr int kThreads = mapped_shapes::kThreads;
  static constexpr int kItems = mapped_shapes::kItems;
  static constexpr int kBatch = 8;  // keys whose accesses to shared memory are on their way together

  const MappedArguments& arguments;
  SpreadShared& shared;
  const uint32_t thread, lane, warp, counters, records;

  __device__ __forceinline__ SpreadBlock(const MappedArguments& all, SpreadShared& storage)
      : arguments(all),
        shared(storage),
        thread(threadIdx.x),
        lane(threadIdx.x % 32),
        warp(threadIdx.x / 32),
        counters(shared_address(storage.counters)),
        records(shared_address(storage.records)) {}

  __device__ __forceinline__ void load(uint32_t row, uint32_t begin, uint32_t (&keys)[kItems]) const {
    const uint32_t* const from = arguments.keys_in + static_cast<uint64_t>(row) * arguments.length + begin + thread;
    if (begin + mapped_shapes::kTile <= arguments.length) {
#pragma unroll
      for (int item = 0; item < kItems; ++item) keys[item] = from[item * kThreads];
    } else {
      const uint32_t left = arguments.length - begin;
#pragma unroll
      for (int item = 0; item < kItems; ++item) keys[item] = thread + item * kThreads < left ? from[item * kThreads] : 0;
    }
  }

  // The chunk that the block has used last for digit `thread`.
  struct LastChunk {
    uint32_t number = ~0u;  // in the region
    uint32_t chunk = 0;     // among all, + 1
  };

  // Records [from, to) of the tile, which go to the place `position` among all chunks.
  __device__ __forceinline__ uint4 run_of(uint32_t from, uint32_t to, uint32_t position) const {
    const uint32_t before = position % 16;
    const uint64_t target = reinterpret_cast<uint64_t>(record_at(arguments, position) - before);
    const uint32_t words[2] = {static_cast<uint32_t>(target), static_cast<uint32_t>(target >> 32)};
    return make_uint4(words[0], words[1], records + (from - before) * 8, (to - from + before) | before << 16);
  }

  // Digit `thread` of the tile has `count` records, of which the first is number `claimed` of its region.
  __device__ __forceinline__ void find_target(uint32_t row, uint32_t claimed, uint32_t count, LastChunk& known) const {
    uint32_t* const chunk_of =
        arguments.chunk_of + static_cast<uint64_t>((row << arguments.region_bits) + thread) * arguments.chunks_per_region;
    const int bits = arguments.chunk_bits;
    const uint32_t length = 1u << bits, first = claimed >> bits, last = (claimed + count - 1) >> bits, inside = claimed & (length - 1);
    uint32_t chunk = first == known.number ? known.chunk : 0, second = 1;
    if (inside == 0) {
      chunk = atomicAdd(&arguments.control->next_chunk, 1u) + 1;
      atomicExch(chunk_of + first, chunk);
    }
    if (last != first) {
      second = atomicAdd(&arguments.control->next_chunk, 1u) + 1;
      atomicExch(chunk_of + last, second);
    }
    while (chunk == 0) chunk = *static_cast<volatile uint32_t*>(chunk_of + first);
    const uint32_t start = shared.starts[thread], end = start + count, split = last == first ? end : start + length - inside;
    uint4 run = run_of(start, split, ((chunk - 1) << bits) + inside);
    if (last != first) {
      run.w |= kSecondPart;
      shared.runs[1][thread] = run_of(split, end, (second - 1) << bits);
    }
    shared.runs[0][thread] = run;
    known = {last, last == first ? chunk : second};
  }

  // Record i of a run and the 32nd and 64th behind it, those from `least` to `end`: without branches, by addresses with constant offsets.
  __device__ __forceinline__ static void write_three(uint32_t from, uint64_t to, uint32_t i, uint32_t least, uint32_t end) {
    asm volatile(
        "{\n"
        ".reg .pred a, b, c;\n"
        ".reg .b32 x<3>, y<3>;\n"
        "setp.ne.u32 a, %2, 0;\n"
        "setp.ne.u32 b, %3, 0;\n"
        "setp.ne.u32 c, %4, 0;\n"
        "@a ld.shared.v2.b32 {x0, y0}, [%0];\n"
        "@b ld.shared.v2.b32 {x1, y1}, [%0 + 256];\n"
        "@c ld.shared.v2.b32 {x2, y2}, [%0 + 512];\n"
        "@a st.global.v2.b32 [%1], {x0, y0};\n"
        "@b st.global.v2.b32 [%1 + 256], {x1, y1};\n"
        "@c st.global.v2.b32 [%1 + 512], {x2, y2};\n"
        "}\n" ::"r"(from),
        "l"(to), "r"(i >= least && i < end ? 1 : 0), "r"(i + 32 < end ? 1 : 0), "r"(i + 64 < end ? 1 : 0)
        : "memory");
  }

  // Whole warps: all runs, in turn.
  __device__ __forceinline__ void write() const {
    constexpr uint32_t kRunBytes = sizeof(uint4), kAtOnce = 3 * 32;
    const uint32_t runs = shared_address(shared.runs), end_of_runs = runs + (kRunBytes << arguments.region_bits);
#pragma unroll 1
    for (uint32_t place = runs + warp * kRunBytes; place < end_of_runs; place += kThreads / 32 * kRunBytes) {
      uint4 run;
      load_shared(place, run);
      for (;;) {
        const uint32_t end = run.w & 0xffff;
        uint32_t from = run.z + lane * 8;
        uint64_t to = (static_cast<uint64_t>(run.y) << 32 | run.x) + lane * 8;
        write_three(from, to, lane, run.w >> 16 & 15, end);
#pragma unroll 1
        for (uint32_t i = kAtOnce; i < end; i += kAtOnce) {
          from += kAtOnce * 8;
          to += kAtOnce * 8;
          write_three(from, to, i + lane, 0, end);
        }
        if ((run.w & kSecondPart) == 0) break;
        load_shared(place + kMostDigits * kRunBytes, run);
      }
    }
  }

  // The counters of keys, by which they are placed later.
  template <bool kFull>
  __device__ __forceinline__ void count(uint32_t left, const uint32_t (&keys)[kItems], uint32_t (&counter)[kItems]) const {
    const SampledMap map{shared_address(shared.map)};
    const int shift = mapped_shapes::kBinBits - arguments.region_bits - 2;
    const uint32_t nowhere = shared_address(shared.nowhere + lane);
#pragma unroll
    for (int low = 0; low < kItems; low += kBatch) {
      uint32_t cells[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) cells[k] = map.load_cell(arguments.codec.code(keys[low + k]));
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int item = low + k;
        counter[item] = (SampledMap::bin(arguments.codec.code(keys[item]), cells[k]) >> shift & ~3u) | counters;  // aligned, so no carry
        if (!kFull && thread + item * kThreads >= left) counter[item] = nowhere;
        add_shared(counter[item], 1);
      }
    }
  }

  template <bool kFull>
  __device__ __forceinline__ void place(uint32_t begin, uint32_t left, const uint32_t (&keys)[kItems],
                                        const uint32_t (&counter)[kItems]) const {
#pragma unroll
    for (int low = 0; low < kItems; low += kBatch) {
      uint32_t places[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) places[k] = fetch_add_shared(counter[low + k], 1);
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int item = low + k;
        if (kFull || thread + item * kThreads < left)
          store_shared(records + places[k] * 8, make_uint2(begin + thread + item * kThreads, keys[item]));
      }
    }
  }

  // One row: its tiles in turn with the other blocks. More of them: tiles that follow each other, most often of one row, as each has a map.
  __device__ __forceinline__ void run() const {
    const uint32_t tiles = arguments.rows * arguments.tiles_per_row, regions = 1u << arguments.region_bits;
    const bool in_turn = arguments.rows == 1;
    const auto share = [&](uint32_t block) { return static_cast<uint32_t>(static_cast<uint64_t>(tiles) * block / gridDim.x); };
    const uint32_t step = in_turn ? gridDim.x : 1, end = in_turn ? tiles : share(blockIdx.x + 1);
    uint32_t tile = in_turn ? blockIdx.x : share(blockIdx.x);
    if (tile >= end) return;
    uint32_t row = tile / arguments.tiles_per_row, begin = (tile - row * arguments.tiles_per_row) * mapped_shapes::kTile;
    if (thread < kMostDigits) shared.counters[thread] = 0;
    load_map(arguments, row, shared.map);
    uint32_t keys[kItems];
    load(row, begin, keys);
    LastChunk known;
    __syncthreads();
    for (;;) {
      const uint32_t left = arguments.length - begin;
      uint32_t counter[kItems];
      if (left >= mapped_shapes::kTile)
        count<true>(left, keys, counter);
      else
        count<false>(left, keys, counter);
      __syncthreads();
      const uint32_t own_records = starts_of_digits(shared.counters, shared.starts, shared.totals);
      uint32_t claimed = 0;
      if (own_records > 0) claimed = atomicAdd(arguments.claims + row * regions + thread, own_records);
      if (left >= mapped_shapes::kTile)
        place<true>(begin, left, keys, counter);
      else
        place<false>(begin, left, keys, counter);
      tile += step;
      const bool more = tile < end, next_row = !in_turn && left <= mapped_shapes::kTile;
      const uint32_t next_begin = next_row ? 0 : begin + step * mapped_shapes::kTile;
      if (more) load(row + (next_row ? 1 : 0), next_begin, keys);
      if (own_records > 0)
        find_target(row, claimed, own_records, known);
      else if (thread < kMostDigits)
        shared.runs[0][thread] = make_uint4(0, 0, 0, 0);
      __syncthreads();
      if (thread < kMostDigits) shared.counters[thread] = 0;
      if (more && next_row) {
        load_map(arguments, row + 1, shared.map);
        known = {};
      }
      write();
      if (!more) return;
      row += next_row ? 1 : 0;
      begin = next_begin;
      __syncthreads();
    }
  }
};

__global__ __launch_bounds__(mapped_shapes::kThreads,
                             mapped_shapes::kBlocksPerSm) void spread_kernel(const __grid_constant__ MappedArguments arguments) {
  start_after_predecessor();
  extern __shared__ __align__(1024) uint4 storage[];
  if (!accepted(arguments)) return;
  SpreadBlock(arguments, *reinterpret_cast<SpreadShared*>(storage)).run();
}

}  // namespace gpusort
