// What the kernels of the bucket sort share: records of a bucket in shared memory, where a bucket lies, and the lists of those left over.
#pragma once

#include <cstdint>

#include "../primitives/shared_memory.cuh"
#include "bucket_arguments.h"

namespace gpusort {

// Records are read by fours past the last one: what lies there is the largest record, below none.
constexpr int kRecordPads = 4;
constexpr uint32_t kPadIndex = ~0u;

// A key in its flat form and the index that tells equal keys apart, compared as one number. Keys to 32 bits share a 64-bit word with it.
template <class U>
struct BucketRecords {
  using Flat = uint32_t;
  struct Record {
    Flat key;
    uint32_t index;
    __device__ __forceinline__ bool operator<(const Record& other) const {
      return (static_cast<uint64_t>(key) << 32 | index) < (static_cast<uint64_t>(other.key) << 32 | other.index);
    }
  };

  uint32_t records;  // shared addresses

  __device__ __forceinline__ BucketRecords(uint32_t storage, int) : records(storage) {}

  __device__ __forceinline__ void set(uint32_t place, const Record& record) const {
    store_shared(records + place * 8, make_uint2(record.index, record.key));
  }
  __device__ __forceinline__ Record get(uint32_t place) const {
    uint2 raw;
    load_shared(records + place * 8, raw);
    return Record{raw.y, raw.x};
  }
};

template <>
struct BucketRecords<uint64_t> {
  using Flat = uint64_t;
  struct Record {
    Flat key;
    uint32_t index;
    __device__ __forceinline__ bool operator<(const Record& other) const {
      return key == other.key ? index < other.index : key < other.key;
    }
  };

  uint32_t keys, indices;

  __device__ __forceinline__ BucketRecords(uint32_t storage, int capacity)
      : keys(storage), indices(storage + (capacity + kRecordPads) * 8) {}

  __device__ __forceinline__ void set(uint32_t place, const Record& record) const {
    store_shared(keys + place * 8, make_uint2(static_cast<uint32_t>(record.key), static_cast<uint32_t>(record.key >> 32)));
    store_shared(indices + place * 4, record.index);
  }
  __device__ __forceinline__ Record get(uint32_t place) const {
    uint2 raw;
    load_shared(keys + place * 8, raw);
    return Record{static_cast<uint64_t>(raw.y) << 32 | raw.x, load_shared(indices + place * 4)};
  }
};

// One bucket: where it lies. Its pointers are made where they are used, which keeps them out of registers in between.
template <class U>
struct BucketSpan {
  const BucketArguments<U>& arguments;
  uint32_t number;  // of the bucket, in all rows
  uint32_t size;
  bool all_equal;
  int64_t offset;

  __device__ __forceinline__ BucketSpan(const BucketArguments<U>& all, uint32_t bucket) : arguments(all), number(bucket) {
    const uint32_t row = bucket / static_cast<uint32_t>(arguments.buckets_per_row);
    const uint32_t* bounds = arguments.begins + (static_cast<int64_t>(bucket) + row);  // one bound more than buckets in every row
    const uint32_t begin = bounds[0];
    all_equal = (begin & kEqualBucket) != 0;
    size = (bounds[1] & kBucketBeginMask) - (begin & kBucketBeginMask);
    offset = row * arguments.length + (begin & kBucketBeginMask);
  }

  // Known without the table of begins.
  __device__ __forceinline__ BucketSpan(const BucketArguments<U>& all, uint32_t bucket, uint32_t keys_in_bucket, bool equal, int64_t begin)
      : arguments(all), number(bucket), size(keys_in_bucket), all_equal(equal), offset(begin) {}

  __device__ __forceinline__ const U* keys() const { return arguments.keys + offset; }
  __device__ __forceinline__ const uint32_t* indices() const {
    if (arguments.indices_in_result) return reinterpret_cast<const uint32_t*>(arguments.indices_wide + offset) + size;
    return arguments.indices ? arguments.indices + offset : nullptr;
  }
};

// The outputs of a bucket. A null pointer is an output nobody wants.
template <class U>
struct BucketOutput {
  U* keys;
  int64_t* indices_wide;
  int32_t* indices_narrow;

  __device__ __forceinline__ explicit BucketOutput(const BucketSpan<U>& bucket)
      : keys(bucket.arguments.keys_out ? bucket.arguments.keys_out + bucket.offset : nullptr),
        indices_wide(bucket.arguments.indices_wide ? bucket.arguments.indices_wide + bucket.offset : nullptr),
        indices_narrow(bucket.arguments.indices_narrow ? bucket.arguments.indices_narrow + bucket.offset : nullptr) {}

  __device__ __forceinline__ void store(uint32_t place, U key, uint32_t index) const {
    if (keys) keys[place] = key;
    if (indices_wide) indices_wide[place] = index;
    if (indices_narrow) indices_narrow[place] = static_cast<int32_t>(index);
  }
};

// Writes a bucket that is in order as it lies; all threads of the block. Keys that lie in the output already stay. Indices may lie in the
// second half of their output: a stored one covers those of places up to its own, which all threads have read by then.
template <class U>
__device__ __forceinline__ void copy_bucket(const BucketSpan<U>& bucket, uint32_t thread, uint32_t threads) {
  constexpr int kTogether = 8;
  BucketOutput<U> output(bucket);
  const U* keys = bucket.keys();
  const uint32_t* indices = bucket.indices();
  if (output.keys == keys) output.keys = nullptr;
#pragma unroll 1
  for (uint32_t begin = 0; begin < bucket.size; begin += kTogether * threads) {
    const uint32_t first = begin + thread;
    U key[kTogether];
    uint32_t index[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const uint32_t place = first + k * threads;
      if (place < bucket.size && output.keys) key[k] = keys[place];
      if (place < bucket.size && indices) index[k] = indices[place];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const uint32_t place = first + k * threads;
      if (place < bucket.size) output.store(place, key[k], index[k]);
    }
  }
}

// What came of a bucket in bucket_rows.cuh.
enum class BucketFate { kSorted, kNotFlat, kCrowded };

// The lists of buckets that are left over: two counts, the buckets left to bucket_rest.cuh, those left to bucket_exact.cuh.
constexpr uint32_t kRestCount = 0, kExactCount = 1, kFirstListed = 2;
constexpr uint32_t kCrowdedBucket = 1u << 31;  // in the second list

template <class U>
__device__ __forceinline__ uint32_t* rest_list(const BucketArguments<U>& arguments) {
  return arguments.overflow + kFirstListed;
}

template <class U>
__device__ __forceinline__ uint32_t* exact_list(const BucketArguments<U>& arguments) {
  return rest_list(arguments) + arguments.rows * arguments.buckets_per_row;
}

template <class U>
__device__ __forceinline__ void note_for_rest(const BucketArguments<U>& arguments, uint32_t bucket) {
  rest_list(arguments)[atomicAdd(arguments.overflow + kRestCount, 1u)] = bucket;
}

template <class U>
__device__ __forceinline__ void note_for_exact(const BucketArguments<U>& arguments, uint32_t bucket, BucketFate fate) {
  exact_list(arguments)[atomicAdd(arguments.overflow + kExactCount, 1u)] = bucket | (fate == BucketFate::kCrowded ? kCrowdedBucket : 0);
}

}  // namespace gpusort
