// Sorts the buckets that mapped_bucket.cuh leaves over: accidents of sampling, and the few that hold NaNs or zeros of both signs.
//
// Their words (code, index) are in the index output, in any order, and all differ. A block sorts a bucket by a network whose comparisons
// all point the same way (Batcher's bitonic merge with the first step mirrored), so what lies beyond the end counts as the largest and is
// never touched: chunks in shared memory, then longer and longer runs, whose last steps are in shared memory again.
#pragma once

#include <cstdint>

#include "mapped_bucket.cuh"

namespace gpusort {

constexpr uint32_t kWordChunk = 8192;
constexpr int kListedThreads = mapped_shapes::kLargeBucket.threads;
constexpr int kListedSharedBytes = MappedRows<kListedThreads, mapped_shapes::kLargeBucket.items>::kStorageBytes + kStorageSlack;
static_assert(kListedSharedBytes >= static_cast<int>(kWordChunk) * 8, "");

struct WordNetwork {
  uint64_t* words;
  uint32_t size;

  __device__ __forceinline__ void exchange(uint32_t low, uint32_t high) const {
    if (high >= size) return;
    const uint64_t a = words[low], b = words[high];
    if (a <= b) return;
    words[low] = b;
    words[high] = a;
  }

  // Each place of a run with its mirror image. `pairs`: half of a multiple of `run`.
  __device__ __forceinline__ void mirror(uint32_t run, uint32_t pairs) const {
    const uint32_t half = run / 2;
    for (uint32_t i = threadIdx.x; i < pairs; i += kListedThreads) {
      const uint32_t begin = i / half * run, inside = i % half;
      exchange(begin + inside, begin + run - 1 - inside);
    }
    __syncthreads();
  }

  // Steps of distances from `from` down to `to`.
  __device__ __forceinline__ void halve(uint32_t from, uint32_t to, uint32_t pairs) const {
    for (uint32_t distance = from; distance >= to && distance > 0; distance /= 2) {
      for (uint32_t i = threadIdx.x; i < pairs; i += kListedThreads) {
        const uint32_t low = i / distance * 2 * distance + i % distance;
        exchange(low, low + distance);
      }
      __syncthreads();
    }
  }
};

// Half of the least power of two that is not below `size`.
__device__ __forceinline__ uint32_t pairs_of(uint32_t size) {
  return size < 2 ? 0 : 1u << (31 - __clz(static_cast<int>(size - 1)));
}

__device__ __forceinline__ void sort_words(uint64_t* words, uint32_t size, uint64_t* staged) {
  const auto for_each_chunk = [&](auto sort_chunk) {
    for (uint32_t first = 0; first < size; first += kWordChunk) {
      const WordNetwork chunk{staged, min(kWordChunk, size - first)};
      for (uint32_t i = threadIdx.x; i < chunk.size; i += kListedThreads) staged[i] = __ldcg(words + first + i);
      __syncthreads();
      sort_chunk(chunk);
      for (uint32_t i = threadIdx.x; i < chunk.size; i += kListedThreads) words[first + i] = staged[i];
      __syncthreads();
    }
  };
  for_each_chunk([](const WordNetwork& chunk) {
    const uint32_t pairs = pairs_of(chunk.size);
    for (uint32_t run = 2; run <= 2 * pairs; run *= 2) {
      chunk.mirror(run, pairs);
      chunk.halve(run / 4, 1, pairs);
    }
  });
  const WordNetwork all{words, size};
  const uint32_t pairs = pairs_of(size);
  for (uint32_t run = 2 * kWordChunk; run <= 2 * pairs; run *= 2) {
    all.mirror(run, pairs);
    all.halve(run / 4, kWordChunk, pairs);
    for_each_chunk([](const WordNetwork& chunk) { chunk.halve(kWordChunk / 2, 1, kWordChunk / 2); });
  }
}

// Keys come back from their codes, but for zeros and NaNs, which are fetched from the row: their codes have lost some bits.
struct CodeOutput {
  FlatOrder<uint32_t> flats;
  KeyCodec<uint32_t> codec;
  uint32_t zero_code, nan_code;
  const uint32_t* row;
  uint32_t* keys;
  int64_t* indices;

  __device__ __forceinline__ CodeOutput(const MappedArguments& arguments, uint32_t number, int64_t offset)
      : flats(arguments.order),
        codec(arguments.codec),
        zero_code(arguments.order.code_of_ordered(arguments.order.zero)),
        nan_code(arguments.order.code_of_ordered(arguments.order.clamp)),
        row(arguments.keys_in + static_cast<uint64_t>(number) * arguments.length),
        keys(arguments.buckets.keys_out + offset),
        indices(arguments.buckets.indices_wide + offset) {}

  __device__ __forceinline__ void store_code(uint32_t place, uint32_t code, uint32_t index) const {
    const bool fetched = code == zero_code || code == nan_code;
    keys[place] = fetched ? row[index] : codec.bits(code);
    indices[place] = index;
  }
  // The block takes what it holds for flat forms, and turns these into bits.
  __device__ __forceinline__ void store(uint32_t place, uint32_t bits, uint32_t index) const { store_code(place, flats.flat(bits), index); }
};

// Sorts the words by distribution; false where there are too many, or they crowd.
__device__ __forceinline__ bool distribute_words(const MappedArguments& arguments, uint32_t bucket, const uint64_t* words, uint32_t size,
                                                 int64_t offset, uint32_t storage, BucketNotes<uint32_t>& notes, const CodeOutput& output) {
  constexpr int kItems = mapped_shapes::kLargeBucket.items;
  if (size > kListedThreads * kItems) return false;
  const BucketSpan<uint32_t> span(arguments.buckets, bucket, size, false, offset);
  using Rows = MappedRows<kListedThreads, kItems>;
  const Rows rows(span, storage, notes);
  Rows::clear_counters(storage);
  __syncthreads();
  uint32_t held[kItems], taken[kItems];
#pragma unroll
  for (int first = 0; first < kItems; first += 4) {
    if (first * kListedThreads >= size) continue;
#pragma unroll
    for (int e = first; e < first + 4; ++e) {
      const uint64_t word = __ldcg(words + min(e * kListedThreads + threadIdx.x, size - 1));
      held[e] = static_cast<uint32_t>(word >> 32);
      taken[e] = static_cast<uint32_t>(word);
    }
  }
  const auto number = [&](uint32_t code) {
    const float value = number_of(arguments.codec.bits(code));
    return arguments.buckets.descending ? -value : value;
  };
  return rows.sort_codes(held, taken, number, [&] { return output; });
}

// One block to an SM, said explicitly: otherwise the compiler spills registers for the sake of more.
__global__ __launch_bounds__(kListedThreads, 1) void listed_words_kernel(const __grid_constant__ MappedArguments arguments) {
  start_after_predecessor();
  extern __shared__ uint4 storage[];
  __shared__ BucketNotes<uint32_t> notes;
  __shared__ uint32_t begins[mapped_shapes::kMostRegions + 1], list[kListedThreads], listed;
  if (!accepted(arguments)) return;
  const uint32_t thread = threadIdx.x, regions = arguments.regions(), buckets = regions << arguments.part_bits;
  for (uint32_t region = thread / 32; region <= regions; region += kListedThreads / 32) {
    const uint32_t begin = region_begin(arguments, region);
    if (thread % 32 == 0) begins[region] = begin;
  }
  const auto parts_of = [&](uint32_t bucket) {
    const uint32_t region = bucket >> arguments.part_bits;
    return BucketParts(arguments, bucket, begins[region], begins[region + 1] - begins[region]);
  };
#pragma unroll 1
  for (uint32_t round = 0; round * gridDim.x + blockIdx.x < buckets; round += kListedThreads) {
    __syncthreads();
    if (thread == 0) listed = 0;
    __syncthreads();
    const uint32_t own = (round + thread) * gridDim.x + blockIdx.x;
    if (own < buckets) {
      const BucketParts parts = parts_of(own);
      if (!parts.none() && __ldcg(parts.mark()) >> kPlaceShift == kLeftBucket) list[atomicAdd(&listed, 1u)] = own;
    }
    __syncthreads();
#pragma unroll 1
    for (uint32_t k = 0; k < listed; ++k) {
      const BucketParts parts = parts_of(list[k]);
      uint32_t before = 0, size = 0;
      for (uint32_t tile = thread % 32; tile < parts.tiles; tile += 32) {  // each warp for itself
        const uint2 part = parts.of_tile(tile);
        before += part.x;
        size += part.y - part.x;
      }
      before = __reduce_add_sync(~0u, before);
      size = __reduce_add_sync(~0u, size);
      const uint32_t region = list[k] >> arguments.part_bits, row = region >> arguments.region_bits;
      const int64_t offset = static_cast<int64_t>(begins[region]) + before;
      uint64_t* const words = reinterpret_cast<uint64_t*>(arguments.buckets.indices_wide + offset);
      const CodeOutput output(arguments, row, offset);
      if (!distribute_words(arguments, list[k], words, size, offset, aligned_storage(storage), notes, output)) {
        __syncthreads();
        sort_words(words, size, reinterpret_cast<uint64_t*>(storage));
        for (uint32_t i = thread; i < size; i += kListedThreads) {
          const uint64_t word = words[i];
          output.store_code(i, static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word));
        }
      }
      __syncthreads();
    }
  }
}

}  // namespace gpusort
