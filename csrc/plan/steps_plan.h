// Plans of the teaching steps: radix by single bits and by block (R1 to R4), bitonic sort (O1), sample sort on one GPU (O2).
// Pure functions of shapes: passes, tiles and the layout of the one workspace. No device is asked and no data is read.
// Whether indices_out is null is part of the shape: a plan is made once the wanted outputs are set, and used with the same ones.
#pragma once

#include <cstdint>
#include <vector>

#include "sort_problem.h"

namespace gpusort {

inline int64_t steps_ceil_div(int64_t numerator, int64_t denominator) {
  return (numerator + denominator - 1) / denominator;
}

inline int64_t steps_power_of_two_at_least(int64_t value) {
  int64_t power = 1;
  while (power < value) power *= 2;
  return power;
}

// Hands out 256-byte aligned slices of one allocation, as offsets in bytes.
class StepsWorkspace {
 public:
  int64_t take(int64_t bytes) {
    const int64_t offset = bytes_;
    bytes_ += steps_ceil_div(bytes, kAlignment) * kAlignment;
    return offset;
  }
  int64_t bytes() const { return bytes_; }

 private:
  static constexpr int64_t kAlignment = 256;
  int64_t bytes_ = 0;
};

// Items one block of the device-wide scan handles; see cuda/primitives/device_scan.cuh.
constexpr int64_t kScanTile = 4096;

// ------------------------------------------------------------------------------------------------------------------ radix steps

constexpr int kRadixBlockThreads = 256;

// Records travel as (ordered key, position in the row) between two buffers; the first pass reads the input, the last writes the result.
struct RadixStepsPlan {
  int digit_bits = 1;
  int keys_per_thread = 1;
  bool wide_loads = false;  // 16-byte loads where the tile is full and aligned
  int passes = 1;           // at least one, so that an empty range of bits is a stable copy
  int64_t tile = 0;         // keys one block partitions (block kernel only)
  int64_t tiles_per_row = 0;
  int record_index_bytes = 0;  // 0: no indices wanted; 4 or 8 between passes
  int offset_bytes = 4;        // of the scanned counts: 8 from 2^32 keys on
  int64_t offset_count = 0;    // items scanned per pass; 0 when a row is one tile and nothing is shared between blocks
  int64_t buffer_keys[2] = {0, 0};
  int64_t buffer_indices[2] = {0, 0};
  int64_t offsets = 0;
  int64_t scan_totals = 0;
  int64_t workspace_bytes = 0;
};

namespace steps_detail {

inline void lay_out_radix(const SortProblem& problem, RadixStepsPlan& plan) {
  const int64_t keys = problem.numel();
  const int bits = problem.end_bit > problem.begin_bit ? problem.end_bit - problem.begin_bit : 0;
  plan.passes = bits > plan.digit_bits ? static_cast<int>(steps_ceil_div(bits, plan.digit_bits)) : 1;
  plan.record_index_bytes = problem.indices_out == nullptr ? 0 : problem.length <= (int64_t{1} << 32) ? 4 : 8;
  plan.offset_bytes = keys < (int64_t{1} << 32) ? 4 : 8;
  StepsWorkspace workspace;
  for (int buffer = 0; buffer < 2 && buffer < plan.passes - 1; ++buffer) {
    plan.buffer_keys[buffer] = workspace.take(keys * problem.key.bytes);
    plan.buffer_indices[buffer] = workspace.take(keys * plan.record_index_bytes);
  }
  plan.offsets = workspace.take(plan.offset_count * plan.offset_bytes);
  plan.scan_totals = workspace.take(steps_ceil_div(plan.offset_count, kScanTile) * plan.offset_bytes);
  plan.workspace_bytes = workspace.bytes();
}

}  // namespace steps_detail

// R1: one bit a pass. The scan covers one flag per key and one more, so that the last row finds its total too.
inline RadixStepsPlan plan_radix_scan_scatter(const SortProblem& problem) {
  RadixStepsPlan plan;
  plan.offset_count = problem.numel() + 1;
  steps_detail::lay_out_radix(problem, plan);
  return plan;
}

// R2 to R4: digit_bits is 1, 2, 4 or 8; keys_per_thread is 1, 4, 8 or 16.
inline RadixStepsPlan plan_radix_block(const SortProblem& problem, int digit_bits = 8, int keys_per_thread = 16, bool wide_loads = true) {
  RadixStepsPlan plan;
  plan.digit_bits = digit_bits;
  plan.keys_per_thread = keys_per_thread;
  plan.wide_loads = wide_loads;
  plan.tile = int64_t{kRadixBlockThreads} * keys_per_thread;
  plan.tiles_per_row = steps_ceil_div(problem.length, plan.tile);
  plan.offset_count = plan.tiles_per_row > 1 ? problem.rows * plan.tiles_per_row << digit_bits : 0;
  steps_detail::lay_out_radix(problem, plan);
  return plan;
}

// ------------------------------------------------------------------------------------------------------------------ bitonic sort

// (code, position) travels as one 64-bit word when both halves fit 32 bits, else as two 64-bit words.
inline bool steps_pairs_are_packed(const SortProblem& problem) {
  return problem.key.bytes <= 4 && problem.length < (int64_t{1} << 32);
}
constexpr int64_t kPackedPairBytes = 8;
constexpr int64_t kWidePairBytes = 16;

// One block of 1024 threads, 64 KB of pairs: 8 packed or 4 wide pairs a thread stay in registers.
constexpr int kBitonicMaxThreads = 1024;
inline int64_t steps_bitonic_tile(bool packed) {
  return kBitonicMaxThreads * (packed ? 8 : 4);
}

struct BitonicPlan {
  bool packed = true;
  int64_t tile = 0;             // longest row that is sorted on chip in one launch
  int64_t workspace_bytes = 0;  // the pairs of all rows, when a row is longer than that
};

inline BitonicPlan plan_bitonic_sort(const SortProblem& problem) {
  BitonicPlan plan;
  plan.packed = steps_pairs_are_packed(problem);
  plan.tile = steps_bitonic_tile(plan.packed);
  StepsWorkspace workspace;
  if (problem.length > plan.tile) workspace.take(problem.numel() * (plan.packed ? kPackedPairBytes : kWidePairBytes));
  plan.workspace_bytes = workspace.bytes();
  return plan;
}

// ------------------------------------------------------------------------------------------------------------------ sample sort

// One distribution: every segment is cut into sorted tiles, `buckets` regular samples are taken of each tile, and every
// buckets-th part of the sorted samples is a splitter.
struct SampleLevel {
  int64_t segments = 0;       // segments that are distributed
  int64_t segment_bound = 0;  // no segment is longer
  int64_t tiles_per_segment = 0;
  int buckets = 0;           // power of two; also the samples per tile
  int64_t sample_gap = 0;    // tile / buckets: every sample_gap-th item of a sorted tile is a sample
  int64_t bucket_bound = 0;  // no bucket is longer
  int64_t starts = 0;        // workspace: where each bucket begins, and the end of the last
};

struct SamplePlan {
  bool packed = true;
  int64_t tile = 0;  // also the longest bucket that is sorted on chip
  std::vector<SampleLevel> levels;
  int64_t pairs[2] = {0, 0};
  int64_t samples = 0;
  int64_t counts = 0;
  int64_t scan_totals = 0;
  int64_t workspace_bytes = 0;
};

// A bucket holds at most ceil(samples / buckets) samples. Its part of one sorted tile is a contiguous range, and a range with c samples
// in it has at most (c + 1) * gap - 1 items. Summed over the tiles: samples_in_bucket * gap + tiles * (gap - 1), about 2n / buckets.
inline int64_t sample_bucket_bound(int64_t segment_bound, int64_t tiles, int buckets, int64_t gap) {
  const int64_t samples = segment_bound / gap;
  const int64_t bound = steps_ceil_div(samples, buckets) * gap + tiles * (gap - 1);
  return bound < segment_bound ? bound : segment_bound;
}

constexpr int kSampleMaxBuckets = 256;

inline SamplePlan plan_sample_sort(const SortProblem& problem) {
  SamplePlan plan;
  plan.packed = steps_pairs_are_packed(problem);
  plan.tile = steps_bitonic_tile(plan.packed);
  const int64_t pair_bytes = plan.packed ? kPackedPairBytes : kWidePairBytes;
  StepsWorkspace workspace;
  int64_t segments = problem.rows;
  int64_t bound = problem.length;
  int64_t most_counts = 0;
  while (bound > plan.tile) {
    SampleLevel level;
    level.segments = segments;
    level.segment_bound = bound;
    level.tiles_per_segment = steps_ceil_div(bound, plan.tile);
    // Twice as many buckets as full tiles, because the bound is twice the mean.
    const int64_t wanted = steps_power_of_two_at_least(steps_ceil_div(2 * bound, plan.tile));
    level.buckets = static_cast<int>(wanted < kSampleMaxBuckets ? wanted : kSampleMaxBuckets);
    level.sample_gap = plan.tile / level.buckets;
    level.bucket_bound = sample_bucket_bound(bound, level.tiles_per_segment, level.buckets, level.sample_gap);
    level.starts = workspace.take((segments * level.buckets + 1) * static_cast<int64_t>(sizeof(uint64_t)));
    const int64_t counts = segments * level.buckets * level.tiles_per_segment;  // as many as samples
    if (counts > most_counts) most_counts = counts;
    segments *= level.buckets;
    bound = level.bucket_bound;
    plan.levels.push_back(level);
  }
  if (!plan.levels.empty()) {
    for (int64_t& pairs : plan.pairs) pairs = workspace.take(problem.numel() * pair_bytes);
    plan.samples = workspace.take(most_counts * pair_bytes);
    plan.counts = workspace.take(most_counts * static_cast<int64_t>(sizeof(uint64_t)));
    plan.scan_totals = workspace.take(steps_ceil_div(most_counts, kScanTile) * static_cast<int64_t>(sizeof(uint64_t)));
  }
  plan.workspace_bytes = workspace.bytes();
  return plan;
}

}  // namespace gpusort
