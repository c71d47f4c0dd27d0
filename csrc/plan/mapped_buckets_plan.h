// How long rows of 32-bit keys are sorted by two partitions and buckets on chip: a pure function of (key type, rows, length, outputs,
// device). The kernels: cuda/mapped_buckets/mapped_buckets.cu.
//
//   map       samples of a row give a map of its codes to 2^16 bins that hold about the same number of keys each
//   spread    tiles go to the regions of a row, by the leading bits of the bin
//   order     tiles of a region are ordered by part, the next bits, where they lie
//   buckets   the bucket (region, part) of all tiles is pulled together and sorted on chip
//
// Rows whose samples show values that are found often, or crowds within the bins, are left to the radix sort, whose kernels leave at once
// otherwise; the device decides.
//
// Memory: the workspace is that of the radix sort, 8 bytes an element. Regions lie in the index output and, as far as partly filled chunks
// need it, in the key output; tables in the rest of that. What the buckets need while the outputs are written is in the upper bits of the
// indices in the workspace (cuda/mapped_buckets/mapped_arguments.h), so rows have at most 2^27 keys.
#pragma once

#include <algorithm>
#include <cstdint>

#include "bucket_shape.h"
#include "radix_plan.h"
#include "sort_problem.h"

namespace gpusort {

namespace mapped_shapes {

constexpr int kThreads = 512;  // of the spread
constexpr int kItems = 16;
constexpr int kTile = kThreads * kItems;  // records: of the spread, and the most of a tile that is ordered
constexpr int kBlocksPerSm = 2;
constexpr int kOrderThreads = 1024;  // of the one block to an SM that orders tiles
constexpr int kOrderSharedBytes = 222 << 10;
constexpr BucketShape kBucket = {256, 16};  // twice the mean
constexpr int kBucketBlocksPerSm = 4;
constexpr int kBucketsPerBlock = 8, kMostTurns = 4;
constexpr BucketShape kLargeBucket = {512, 16};  // for those that exceed it
constexpr int kMeanBucket = 2048;                // at most
constexpr int kSampleBits = 17;                  // of all rows, or more
constexpr int kLeastChunkBits = 14, kMostChunkBits = 17;
constexpr int kCellBits = 12;  // of the code: the map is linear within a cell
constexpr int kBinBits = 16;
constexpr int kIndexBits = 27;
constexpr int kMostRegions = 512;  // of all rows
constexpr int kMostDigitBits = 8;  // regions of a row, and parts of a region
constexpr int kTableBits = 32;     // records of the workspace that hold one word for all blocks in their upper bits

// Where it is faster. H200, float32 with index, normal keys, against the radix sort: [1, 2^23] 208 us (261), [1, 2^24] 365 (454), [1, 2^25]
// 685 (808), [1, 2^26] 1354 (1527), [1, 2^27] 2716 (2963), [1, 50000000] 1042 (1176), [16, 2^22] 1266 (1705; by pulled buckets 1535),
// [4, 2^24] 1283 (1552). Data that is left to the radix sort takes 12 to 18 us more than by that alone (2^26: 21), and 27 to 29 (48) where
// only the bins speak against the map.
constexpr int64_t kMinNumel = int64_t{1} << 23;
constexpr int64_t kMaxNumel = int64_t{1} << 27;
constexpr int64_t kMaxLength = int64_t{1} << 27;
// Integers are often of few values, whose radix sort is so short that the samples of more keys would cost it a tenth: [1, 2^26] of a byte
// 428 us, 474 behind the samples; of 40,000 values 866, 956.
constexpr int64_t kMaxIntegerNumel = int64_t{1} << 26;
constexpr int64_t kMaxIntegerLength = int64_t{1} << 25;
constexpr int64_t kMinLength = (int64_t{1} << 22) + 1;  // shorter rows by pulled buckets,
constexpr int64_t kShortMinLength = int64_t{1} << 22;   // but for these
constexpr int64_t kShortMinNumel = int64_t{1} << 25;    // if they are many

}  // namespace mapped_shapes

struct MappedBucketsPlan {
  bool possible = false;
  int region_bits = 0;  // of a row
  int part_bits = 0;
  int sample_bits = 0;  // of a row
  int tested_bits = 0;  // of the bins that samples are counted in
  int chunk_bits = 0;   // of a chunk's records
  int64_t tiles_per_row = 0;
  int64_t chunks_per_region = 0;  // at most
  int64_t first_chunks = 0;       // in the index output
  RadixPlan radix;                // for rows that are not sorted in this way
  DeviceTraits device;

  // Byte offsets into the key output, each a multiple of 256; the first part is zeroed.
  int64_t cells_offset = 0;    // [row][cell], samples
  int64_t claims_offset = 0;   // [row][region], records
  int64_t pairs_offset = 0;    // [row], 64 bits: pairs of samples in one bin
  int64_t control_offset = 0;  // MappedControl
  int64_t zeroed_bytes = 0;    // from cells_offset on
  int64_t bins_offset = 0;     // [row][tested bin], samples
  int64_t chunk_offset = 0;    // [row][region][chunk]: its number + 1
  int64_t map_offset = 0;      // [row][cell]
  int64_t samples_offset = 0;  // [row][sample], codes
  int64_t workspace_bytes = 0;

  int64_t regions(int64_t rows) const { return rows << region_bits; }
  int64_t buckets(int64_t rows) const { return rows << (region_bits + part_bits); }
  // Of the kernel that sorts buckets: in turns of as many as fit. Neighbouring buckets are too large together, and later blocks even that
  // out; but each takes time to begin, and to leave where the rows are not accepted.
  int64_t bucket_blocks(int64_t rows) const {
    const int64_t fitting = int64_t{mapped_shapes::kBucketBlocksPerSm} * device.sm_count,
                  wanted = buckets(rows) / mapped_shapes::kBucketsPerBlock;
    return std::min(std::clamp(wanted, fitting, mapped_shapes::kMostTurns * fitting), buckets(rows));
  }
};

// Needs both outputs, with 64-bit indices.
inline MappedBucketsPlan plan_mapped_buckets(const SortProblem& problem, const DeviceTraits& traits) {
  using namespace mapped_shapes;
  MappedBucketsPlan plan;
  const bool keys = problem.key.bytes == 4 &&
                    (problem.key.kind == KeyKind::kFloat || problem.key.kind == KeyKind::kSigned || problem.key.kind == KeyKind::kUnsigned);
  const int64_t rows = problem.rows, length = problem.length, numel = problem.numel();
  if (!keys || !problem.whole_key() || problem.keys_out == nullptr || problem.indices_out == nullptr || problem.index_bytes != 8)
    return plan;
  const bool integers = problem.key.kind != KeyKind::kFloat;
  if (length < (numel < kShortMinNumel ? kMinLength : kShortMinLength) || length > (integers ? kMaxIntegerLength : kMaxLength)) return plan;
  if (numel < kMinNumel || numel > (integers ? kMaxIntegerNumel : kMaxNumel)) return plan;
  if (traits.compute_major < 9 || kBlocksPerSm * (kTile * 8 + 28000) > traits.shared_bytes_per_sm ||
      kOrderSharedBytes > traits.shared_bytes_per_block) {
    return plan;
  }
  plan.device = traits;

  int bits = 0;
  while (length >> bits > kMeanBucket) ++bits;
  plan.region_bits = bits / 2;
  plan.part_bits = bits - plan.region_bits;
  if (plan.part_bits > kMostDigitBits || plan.regions(rows) > kMostRegions) return plan;
  int row_bits = 0;
  while (int64_t{1} << row_bits < rows) ++row_bits;
  plan.sample_bits = std::max(bits + 4, kSampleBits - row_bits);  // 16 to a bucket at least
  plan.tested_bits = std::min(bits + 2, kBinBits);
  plan.tiles_per_row = (length + kTile - 1) / kTile;
  plan.chunk_bits = kMostChunkBits;
  while (plan.chunk_bits > kLeastChunkBits && plan.regions(rows) << plan.chunk_bits > numel / 4) --plan.chunk_bits;
  plan.chunks_per_region = (length >> plan.chunk_bits) + 1;
  plan.first_chunks = numel >> plan.chunk_bits;

  plan.radix = plan_radix_sort(problem, traits);
  plan.radix.cleared_before = true;
  plan.workspace_bytes = plan.radix.workspace_bytes;
  if (plan.workspace_bytes != numel * 8) return plan;

  radix_plan_detail::Slicer tables;
  plan.cells_offset = tables.take(rows * 4 << kCellBits);
  plan.claims_offset = tables.take(plan.regions(rows) * 4);
  plan.pairs_offset = tables.take(rows * 8);
  plan.control_offset = tables.take(64);
  plan.zeroed_bytes = tables.used;
  plan.bins_offset = tables.take(rows * 4 << plan.tested_bits);
  plan.chunk_offset = tables.take(plan.regions(rows) * plan.chunks_per_region * 4);
  plan.map_offset = tables.take(rows * 4 << kCellBits);
  plan.samples_offset = tables.take(rows * 4 << plan.sample_bits);
  const int64_t begin = (numel * 4 - tables.used) / 256 * 256;
  const int64_t chunks = (numel >> plan.chunk_bits) + plan.regions(rows);
  if (begin < plan.radix.cleared_bytes || plan.first_chunks + (begin >> (plan.chunk_bits + 3)) < chunks) return plan;
  for (int64_t* offset : {&plan.cells_offset, &plan.claims_offset, &plan.pairs_offset, &plan.control_offset, &plan.bins_offset,
                          &plan.chunk_offset, &plan.map_offset, &plan.samples_offset}) {
    *offset += begin;
  }
  plan.possible = true;
  return plan;
}

}  // namespace gpusort
