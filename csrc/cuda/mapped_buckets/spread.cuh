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
#pragma once

#include <cstdint>

#include "../rows/warp_reduce.cuh"
#include "sample_map.cuh"

namespace gpusort {

constexpr int kMostDigits = 1 << mapped_shapes::kMostDigitBits;

struct SpreadShared {
  uint32_t map[kMapCells];
  uint32_t counters[kMostDigits];
  uint32_t starts[kMostDigits + 1];  // of digits, in the tile
  uint32_t totals[kMostDigits / 32];
  uint32_t position[2][kMostDigits];  // among all chunks, of the run's two parts, less the start
  uint32_t split[kMostDigits];        // where the second part begins in the tile
  alignas(16) uint2 records[mapped_shapes::kTile];
};

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
    const uint32_t* const from = arguments.keys_in + static_cast<uint64_t>(row) * arguments.length;
#pragma unroll
    for (int item = 0; item < kItems; ++item) keys[item] = from[min(begin + item * kThreads + thread, arguments.length - 1)];
  }

  // The chunk that the block has used last for digit `thread`.
  struct LastChunk {
    uint32_t number = ~0u;  // in the region
    uint32_t chunk = 0;     // among all, + 1
  };

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
    const uint32_t start = shared.starts[thread], split = start + length - inside;
    shared.position[0][thread] = ((chunk - 1) << bits) + inside - start;
    shared.position[1][thread] = ((second - 1) << bits) - split;
    shared.split[thread] = split;
    known = {last, last == first ? chunk : second};
  }

  // Records [from, to) of the tile, in step with the lines of 128 bytes that they go to.
  __device__ __forceinline__ void write_run(uint32_t from, uint32_t to, uint32_t position) const {
    constexpr int kTogether = 3;
    uint2* const target = record_at(arguments, position + from);
    const int count = static_cast<int>(to - from);
#pragma unroll 1
    for (int i = static_cast<int>(lane) - static_cast<int>((position + from) & 15); i < count; i += kTogether * 32) {
      uint2 record[kTogether];
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        if (i + k * 32 >= 0 && i + k * 32 < count) load_shared(records + (from + i + k * 32) * 8, record[k]);
      }
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        if (i + k * 32 >= 0 && i + k * 32 < count) target[i + k * 32] = record[k];
      }
    }
  }

  __device__ __forceinline__ void write() const {
#pragma unroll 1
    for (uint32_t digit = warp; digit < 1u << arguments.region_bits; digit += kThreads / 32) {
      const uint32_t start = shared.starts[digit], end = shared.starts[digit + 1];
      if (start == end) continue;
      const uint32_t split = shared.split[digit];
      write_run(start, min(end, split), shared.position[0][digit]);
      if (end > split) write_run(split, end, shared.position[1][digit]);
    }
  }

  // Tiles that follow each other, most often of one row.
  __device__ __forceinline__ void run() const {
    const uint32_t tiles = arguments.rows * arguments.tiles_per_row, regions = 1u << arguments.region_bits;
    uint32_t tile = static_cast<uint32_t>(static_cast<uint64_t>(tiles) * blockIdx.x / gridDim.x);
    const uint32_t end = static_cast<uint32_t>(static_cast<uint64_t>(tiles) * (blockIdx.x + 1) / gridDim.x);
    if (tile == end) return;
    const SampledMap map{shared_address(shared.map)};
    const int shift = mapped_shapes::kBinBits - arguments.region_bits;
    uint32_t row = tile / arguments.tiles_per_row, begin = (tile - row * arguments.tiles_per_row) * mapped_shapes::kTile;
    if (thread < kMostDigits) shared.counters[thread] = 0;
    load_map(arguments, row, shared.map);
    uint32_t keys[kItems];
    load(row, begin, keys);
    LastChunk known;
    __syncthreads();
    for (;;) {
      const bool full = begin + mapped_shapes::kTile <= arguments.length;
      uint32_t digits[kItems / 4];
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        const uint32_t digit = map.bin(arguments.codec.code(keys[item])) >> shift;
        if (full || begin + item * kThreads + thread < arguments.length) add_shared(counters + digit * 4, 1);
        digits[item / 4] = item % 4 == 0 ? digit : digits[item / 4] | digit << (item % 4 * 8);
      }
      __syncthreads();
      const uint32_t count = starts_of_digits(shared.counters, shared.starts, shared.totals);
      uint32_t claimed = 0;
      if (count > 0) claimed = atomicAdd(arguments.claims + row * regions + thread, count);
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        const uint32_t index = begin + item * kThreads + thread;
        if (full || index < arguments.length) {
          const uint32_t place = fetch_add_shared(counters + (digits[item / 4] >> (item % 4 * 8) & 255) * 4, 1);
          store_shared(records + place * 8, make_uint2(index, keys[item]));
        }
      }
      const bool more = ++tile < end, next_row = begin + mapped_shapes::kTile >= arguments.length;
      const uint32_t next_begin = next_row ? 0 : begin + mapped_shapes::kTile;
      if (more) load(row + (next_row ? 1 : 0), next_begin, keys);
      if (count > 0) find_target(row, claimed, count, known);
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
  extern __shared__ uint4 storage[];
  if (!accepted(arguments)) return;
  SpreadBlock(arguments, *reinterpret_cast<SpreadShared*>(storage)).run();
}

}  // namespace gpusort
