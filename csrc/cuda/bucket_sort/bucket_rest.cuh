// Sorts the buckets that distribution leaves over (bucket_rows.cuh, bucket_exact.cuh): stable least-significant-digit radix sort in one
// block, of no more bits than the bucket's range has.
//
// What a tile holds, as most crowded buckets (of values found often, or of values that crowd together), stays on chip: one pass for each 8
// bits of the range, records in registers, places by ballots (the classic warp ranking: Adinets, Merrill, "Onesweep", 2022), exchanged
// through shared memory. Larger buckets go tile by tile between where they lie and the spare buffers, an even number of passes, so that
// they end where they lay and the outputs are written from there: a few us a pass and tile, but such buckets are accidents of sampling.
// Invariant of both: before a pass the records rise by the digits of the passes before it, equal ones in the order of their indices.
#pragma once

#include <cstdint>

#include "../../core/word_map.h"
#include "../primitives/block_scan.cuh"
#include "../primitives/dependent_launch.cuh"
#include "../rows/warp_reduce.cuh"
#include "bucket_records.cuh"

namespace gpusort {

constexpr int kRestDigitBits = 8;
constexpr int kRestDigits = 1 << kRestDigitBits;

// The block's own variables.
template <class Flat>
struct RestNotes {
  Flat lowest[32];
  Flat highest[32];
  BlockScanStorage<uint32_t> scan;
  uint32_t tile_begins[kRestDigits];  // of the digits, in the tile
  uint32_t begins[kRestDigits];       // of the digits, in the bucket; move on with the tiles
};

template <class U, int kThreads, int kItems>
struct BucketRest {
  static constexpr int kWarps = kThreads / 32;
  static constexpr uint32_t kCapacity = kThreads * kItems;
  static constexpr int kBlocksPerSm = 1;
  static constexpr int kWarpsTogether = 8;  // whose counts are read at a time
  static constexpr int kKeysTogether = 8;   // loaded at a time where all keys of a large bucket are read
  static_assert(kThreads >= kRestDigits && kWarps % kWarpsTogether == 0, "a thread to a digit");

  using Flat = typename BucketRecords<U>::Flat;
  using Notes = RestNotes<Flat>;

  // Shared memory: histograms of the warps | keys | indices.
  static constexpr int kHistogramBytes = kWarps * kRestDigits * 4;
  static constexpr int kSharedBytes = kHistogramBytes + static_cast<int>(kCapacity * (sizeof(U) + 4));

  struct Records {
    U* keys;
    uint32_t* indices;  // null: not wanted
  };

  // The digit of a pass.
  struct Digits {
    KeyOrder<U> order;
    Flat lowest;
    int shift;
    int bits;

    __device__ __forceinline__ uint32_t operator()(U key) const {
      return static_cast<uint32_t>((static_cast<Flat>(order.code(key)) - lowest) >> shift) & ((1u << bits) - 1);
    }
  };

  const BucketSpan<U>& bucket;
  Notes& notes;
  const uint32_t thread, lane, warp;
  uint32_t (*histograms)[kRestDigits];
  Records staged;

  __device__ __forceinline__ BucketRest(const BucketSpan<U>& span, uint4* storage, Notes& shared)
      : bucket(span),
        notes(shared),
        thread(threadIdx.x),
        lane(threadIdx.x % 32),
        warp(threadIdx.x / 32),
        histograms(reinterpret_cast<uint32_t (*)[kRestDigits]>(storage)) {
    char* const records = reinterpret_cast<char*>(storage) + kHistogramBytes;
    staged = Records{reinterpret_cast<U*>(records), reinterpret_cast<uint32_t*>(records + kCapacity * sizeof(U))};
  }

  // Records of a tile in the registers of one thread. A warp's are neighbours, so that the order of lanes and items is that of memory.
  struct Held {
    uint32_t size;    // of the tile
    uint32_t rounds;  // items of a thread in use
    U keys[kItems];
    uint32_t indices[kItems];
    uint32_t places[kItems];
  };

  // Calls visit(e, slot) for this thread's records.
  template <class Visit>
  __device__ __forceinline__ void for_each_item(const Held& held, Visit visit) const {
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      const uint32_t slot = (warp * held.rounds + e) * 32 + lane;
      if (e < held.rounds && slot < held.size) visit(e, slot);
    }
  }

  __device__ __forceinline__ void load(Held& held, const Records& from, uint32_t size) const {
    held.size = size;
    held.rounds = (size + kThreads - 1) / kThreads;
    for_each_item(held, [&](int e, uint32_t slot) {
      held.keys[e] = from.keys[slot];
      held.indices[e] = from.indices ? from.indices[slot] : slot;
    });
  }

  // places[e]: where the record goes when the tile is ordered by its digits, stably. tile_begins: where the digits begin.
  // Returns how many records of the tile have the digit `thread`.
  __device__ __forceinline__ uint32_t place_by_digit(Held& held, const Digits& digit_of) {
    uint32_t* const seen = histograms[warp];
    for (int digit = lane; digit < kRestDigits; digit += 32) seen[digit] = 0;
    __syncwarp();
    const uint32_t below = (1u << lane) - 1;
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      if (e < held.rounds) {
        const bool here = (warp * held.rounds + e) * 32 + lane < held.size;
        const uint32_t digit = here ? digit_of(held.keys[e]) : 0;
        uint32_t peers = __ballot_sync(~0u, here);
#pragma unroll 1
        for (int bit = 0; bit < digit_of.bits; ++bit) {
          const bool set = digit >> bit & 1;
          const uint32_t votes = __ballot_sync(~0u, set);
          peers &= set ? votes : ~votes;
        }
        const uint32_t before = seen[digit];
        __syncwarp();
        if (here && (peers & below) == 0) seen[digit] = before + __popc(peers);
        __syncwarp();
        held.places[e] = before + __popc(peers & below);
      }
    }
    __syncthreads();
    uint32_t count = 0;
    if (thread < kRestDigits) {
#pragma unroll
      for (int first = 0; first < kWarps; first += kWarpsTogether) {
        uint32_t of_warp[kWarpsTogether];
#pragma unroll
        for (int w = 0; w < kWarpsTogether; ++w) of_warp[w] = histograms[first + w][thread];
#pragma unroll
        for (int w = 0; w < kWarpsTogether; ++w) {
          histograms[first + w][thread] = count;
          count += of_warp[w];
        }
      }
    }
    uint32_t total;
    const uint32_t begin = block_exclusive_scan(count, total, notes.scan);
    if (thread < kRestDigits) notes.tile_begins[thread] = begin;
    __syncthreads();
    for_each_item(held, [&](int e, uint32_t) {
      const uint32_t digit = digit_of(held.keys[e]);
      held.places[e] += seen[digit] + notes.tile_begins[digit];
    });
    return count;
  }

  // Orders the held records in shared memory by their places.
  __device__ __forceinline__ void stage(const Held& held) const {
    for_each_item(held, [&](int e, uint32_t) {
      staged.keys[held.places[e]] = held.keys[e];
      staged.indices[held.places[e]] = held.indices[e];
    });
    __syncthreads();
  }

  // Lowest code of the block's keys, and the bits of their range.
  __device__ __forceinline__ void reduce_range(Flat& lowest, Flat& highest) const {
    lowest = warp_min(lowest);
    highest = warp_max(highest);
    __syncthreads();
    if (lane == 0) {
      notes.lowest[warp] = lowest;
      notes.highest[warp] = highest;
    }
    __syncthreads();
    lowest = warp_min(notes.lowest[lane % kWarps]);
    highest = warp_max(notes.highest[lane % kWarps]);
  }

  __device__ __forceinline__ void sort_on_chip() {
    const BucketOutput<U> output(bucket);
    Held held;
    load(held, Records{const_cast<U*>(bucket.keys()), const_cast<uint32_t*>(bucket.indices())}, bucket.size);
    Digits digit_of{bucket.arguments.order, 0, 0, 0};
    Flat lowest = static_cast<Flat>(~Flat{0}), highest = 0;
    for_each_item(held, [&](int e, uint32_t) {
      const Flat code = digit_of.order.code(held.keys[e]);
      lowest = min(lowest, code);
      highest = max(highest, code);
    });
    reduce_range(lowest, highest);
    const int bits = range_bits(static_cast<Flat>(highest - lowest));
    if (bits == 0) {
      for_each_item(held, [&](int e, uint32_t slot) { output.store(slot, held.keys[e], held.indices[e]); });
      return;
    }
    const int passes = (bits + kRestDigitBits - 1) / kRestDigitBits;
    digit_of.lowest = lowest;
    digit_of.bits = (bits + passes - 1) / passes;
    for (int pass = 0; pass < passes; ++pass) {
      digit_of.shift = pass * digit_of.bits;
      place_by_digit(held, digit_of);
      stage(held);
      if (pass + 1 < passes) load(held, staged, bucket.size);
    }
    for (uint32_t place = thread; place < bucket.size; place += kThreads) output.store(place, staged.keys[place], staged.indices[place]);
  }

  // ---- larger than a tile --------------------------------------------------------------------------------------------------------------

  __device__ __forceinline__ Records spare_records() const {
    const BucketArguments<U>& arguments = bucket.arguments;
    Records spare{arguments.spare_keys ? arguments.spare_keys + bucket.offset : nullptr, nullptr};
    if (arguments.indices_narrow) spare.indices = reinterpret_cast<uint32_t*>(arguments.indices_narrow + bucket.offset);
    if (arguments.indices_wide) {
      spare.indices = reinterpret_cast<uint32_t*>(arguments.indices_wide + bucket.offset);
      if (!spare.keys) spare.keys = reinterpret_cast<U*>(spare.indices + bucket.size);
    }
    return spare;
  }

  // Calls visit(key) for the keys of a large bucket, each in one thread.
  template <class Visit>
  __device__ __forceinline__ void for_each_key(const U* keys, Visit visit) const {
#pragma unroll 1
    for (uint32_t first = thread; first < bucket.size; first += kKeysTogether * kThreads) {
      U key[kKeysTogether];
#pragma unroll
      for (int k = 0; k < kKeysTogether; ++k) {
        if (first + k * kThreads < bucket.size) key[k] = keys[first + k * kThreads];
      }
#pragma unroll
      for (int k = 0; k < kKeysTogether; ++k) {
        if (first + k * kThreads < bucket.size) visit(key[k]);
      }
    }
  }

  // begins[d]: how many records have a digit below d.
  __device__ __forceinline__ void find_begins(const Records& from, const Digits& digit_of) {
    if (thread < kRestDigits) notes.begins[thread] = 0;
    __syncthreads();
    for_each_key(from.keys, [&](U key) { atomicAdd(&notes.begins[digit_of(key)], 1u); });
    __syncthreads();
    uint32_t total;
    const uint32_t begin = block_exclusive_scan(thread < kRestDigits ? notes.begins[thread] : 0, total, notes.scan);
    if (thread < kRestDigits) notes.begins[thread] = begin;
    __syncthreads();
  }

  // The tile's records follow those of the tiles before.
  __device__ __forceinline__ void pass_tile(const Records& from, const Records& to, uint32_t size, const Digits& digit_of) {
    Held held;
    load(held, from, size);
    const uint32_t count = place_by_digit(held, digit_of);
    stage(held);
    for (uint32_t place = thread; place < size; place += kThreads) {
      const U key = staged.keys[place];
      const uint32_t digit = digit_of(key), target = notes.begins[digit] + place - notes.tile_begins[digit];
      to.keys[target] = key;
      if (to.indices) to.indices[target] = staged.indices[place];
    }
    __syncthreads();
    if (thread < kRestDigits) notes.begins[thread] += count;
    __syncthreads();
  }

  __device__ __forceinline__ void sort_in_tiles() {
    // What lies in the arguments' keys and indices is the first of the two buffers.
    Records from{const_cast<U*>(bucket.keys()), const_cast<uint32_t*>(bucket.indices())}, to = spare_records();
    Digits digit_of{bucket.arguments.order, 0, 0, 0};
    Flat lowest = static_cast<Flat>(~Flat{0}), highest = 0;
    for_each_key(from.keys, [&](U key) {
      const Flat code = digit_of.order.code(key);
      lowest = min(lowest, code);
      highest = max(highest, code);
    });
    reduce_range(lowest, highest);
    const int bits = range_bits(static_cast<Flat>(highest - lowest));
    const int passes = (bits + 2 * kRestDigitBits - 1) / (2 * kRestDigitBits) * 2;
    digit_of.lowest = lowest;
    digit_of.bits = passes > 0 ? (bits + passes - 1) / passes : 0;
    for (int pass = 0; pass < passes; ++pass) {
      digit_of.shift = pass * digit_of.bits;
      find_begins(from, digit_of);
      for (uint32_t first = 0; first < bucket.size; first += kCapacity) {
        const Records tile{from.keys + first, from.indices ? from.indices + first : nullptr};
        pass_tile(tile, to, min(kCapacity, bucket.size - first), digit_of);
      }
      const Records done = from;
      from = to;
      to = done;
    }
    copy_bucket(bucket, thread, kThreads);
  }
};

template <class U, int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads, BucketRest<U, kThreads, kItems>::kBlocksPerSm)
    bucket_rest_kernel(const __grid_constant__ BucketArguments<U> arguments) {
  start_after_predecessor();
  using Rest = BucketRest<U, kThreads, kItems>;
  extern __shared__ uint4 shared_memory[];
  __shared__ typename Rest::Notes notes;
  const uint32_t listed = arguments.overflow[kRestCount];
  for (uint32_t i = blockIdx.x; i < listed; i += gridDim.x) {
    const BucketSpan<U> bucket(arguments, rest_list(arguments)[i]);
    Rest rest(bucket, shared_memory, notes);
    if (bucket.size > Rest::kCapacity) {
      rest.sort_in_tiles();
    } else {
      rest.sort_on_chip();
    }
    __syncthreads();
  }
}

}  // namespace gpusort
