// What the kernels that sort buckets are given: rows that a partition by sampled splitters has cut into buckets.
//
// Within a row bucket b holds the keys whose codes lie in one range, ranges rise with b, and every bucket keeps the order in which its keys
// stood in the row. So a bucket sorted stably is a finished part of the result, at the same positions of the row.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "../../core/key_order.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

// In a word of `begins`: the keys of this bucket all have one code, so they are in order already; only the outputs are still to be written.
// Such a bucket may have any size: a value that is found often in a row fills several of them, of about the mean size. All other buckets
// are below bucket_capacity but for rare accidents, which go to the overflow list.
constexpr uint32_t kEqualBucket = 1u << 31;
constexpr uint32_t kBucketBeginMask = kEqualBucket - 1;

template <typename U>
struct BucketArguments {
  const U* keys = nullptr;            // [rows][length], in buckets; may be keys_out: a block reads its whole bucket before it writes it
  const uint32_t* indices = nullptr;  // [rows][length], positions within the row; null exactly when indices_out is
  bool indices_in_result = false;     // then `indices` is null, and those of a bucket are the second half of its part of indices_wide
  const uint32_t* begins = nullptr;   // [rows][buckets_per_row + 1]: position in the row | kEqualBucket; the last one is `length`
  int64_t rows = 0;
  int64_t length = 0;  // of a row, below 2^31
  int buckets_per_row = 0;
  int bucket_capacity = 0;          // the most keys of a bucket that is sorted by one block
  U* keys_out = nullptr;            // null: not wanted
  int64_t* indices_wide = nullptr;  // at most one of the two is wanted
  int32_t* indices_narrow = nullptr;
  KeyOrder<U> order;
  bool descending = false;
  bool is_float = false;         // the value maps of core/word_map.h apply (float32, float64)
  U* spare_keys = nullptr;       // [rows][length]; only buckets above the capacity touch it. Null: part of indices_wide serves, to 32 bits
  uint32_t* overflow = nullptr;  // bucket_overflow_words() of bucket_shape.h; the first two are zero at the launch

  GPUSORT_HD uint32_t begin(int64_t row, int bucket) const { return begins[row * (buckets_per_row + 1) + bucket] & kBucketBeginMask; }
  GPUSORT_HD bool all_equal(int64_t row, int bucket) const { return (begins[row * (buckets_per_row + 1) + bucket] & kEqualBucket) != 0; }
};

// The outputs and the order of a problem; the rest is the partition's to fill in.
template <typename U>
BucketArguments<U> make_bucket_arguments(const SortProblem& problem) {
  BucketArguments<U> arguments;
  arguments.rows = problem.rows;
  arguments.length = problem.length;
  arguments.keys_out = static_cast<U*>(problem.keys_out);
  if (problem.index_bytes == 8) {
    arguments.indices_wide = static_cast<int64_t*>(problem.indices_out);
  } else {
    arguments.indices_narrow = static_cast<int32_t*>(problem.indices_out);
  }
  arguments.order = problem.key.order<U>(problem.descending);
  arguments.descending = problem.descending;
  arguments.is_float = problem.key.kind == KeyKind::kFloat && sizeof(U) >= 4;
  return arguments;
}

// Sorts every bucket of every row: one launch of bucket_rows.cuh, then those of bucket_exact.cuh and bucket_rest.cuh, which leave at once
// when no bucket is left for them. Buckets above the capacity also overwrite their part of `keys` and `indices`. U is uint16_t, uint32_t or
// uint64_t.
template <typename U>
cudaError_t launch_bucket_rows(const BucketArguments<U>& arguments, const DeviceTraits& traits, cudaStream_t stream);

// The last two of the three kernels, where another has sorted all buckets but those that it has listed.
template <typename U>
cudaError_t launch_listed_buckets(const BucketArguments<U>& arguments, const DeviceTraits& traits, cudaStream_t stream);

}  // namespace gpusort
