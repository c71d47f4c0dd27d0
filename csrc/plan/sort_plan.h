// Which algorithm sorts a shape: the one place where the crossovers between families are decided, and where their names are read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bucket_sort_plan.h"
#include "grid_sort_plan.h"
#include "mapped_buckets_plan.h"
#include "one_launch_plan.h"
#include "pulled_buckets_plan.h"
#include "row_plan.h"
#include "sort_problem.h"

namespace gpusort {

enum class SortAlgorithm {
  kAuto,
  // For whole keys of the shapes they take, by name too; others go to the radix sort.
  kRows,              // rows that fit on chip
  kGrid,              // few rows that fit the chip as a whole
  kBuckets,           // many long rows: one partition, then buckets that fit on chip
  kRadix,             // R5, the production radix sort
  kMerge,             // S1 to S3
  kBitonic,           // O1
  kSample,            // O2
  kRadixScanScatter,  // R1
  kRadixBlock         // R2 to R4
};

// False for a name that `algorithm=` does not take.
inline bool parse_sort_algorithm(const std::string& name, SortAlgorithm* algorithm) {
  const struct {
    const char* name;
    SortAlgorithm algorithm;
  } names[] = {{"auto", SortAlgorithm::kAuto},       {"radix", SortAlgorithm::kRadix},    {"merge", SortAlgorithm::kMerge},
               {"bitonic", SortAlgorithm::kBitonic}, {"sample", SortAlgorithm::kSample},  {"rows", SortAlgorithm::kRows},
               {"grid", SortAlgorithm::kGrid},       {"buckets", SortAlgorithm::kBuckets}};
  for (const auto& entry : names) {
    if (name == entry.name) {
      *algorithm = entry.algorithm;
      return true;
    }
  }
  return false;
}

constexpr const char* kSortAlgorithmNames = "'auto', 'radix', 'merge', 'bitonic', 'sample', 'rows', 'grid' and 'buckets'";

// A radix sort by name. The error of a wrong number of bits lists `digit_bits_names`.
struct RadixKernel {
  SortAlgorithm algorithm = SortAlgorithm::kRadix;
  int digit_bits = 8;
  const char* digit_bits_names = "None or 8";
  bool digit_bits_allowed = true;
};

constexpr const char* kRadixKernelNames = "'auto', 'onesweep', 'scan_scatter' and 'block'";

// False for a name that `kernel=` does not take. "auto" is the production sort, unless digits are asked for that only "block" has.
inline bool parse_radix_kernel(const std::string& name, std::optional<int64_t> digit_bits, RadixKernel* kernel) {
  const bool block_has_them = !digit_bits || *digit_bits == 1 || *digit_bits == 2 || *digit_bits == 4 || *digit_bits == 8;
  if (name == "onesweep") {
    *kernel = {SortAlgorithm::kRadix, 8, "None or 8", !digit_bits || *digit_bits == 8};
  } else if (name == "scan_scatter") {
    *kernel = {SortAlgorithm::kRadixScanScatter, 1, "None or 1", !digit_bits || *digit_bits == 1};
  } else if (name == "block" || name == "auto") {
    const bool production = name == "auto" && digit_bits.value_or(8) == 8;
    *kernel = {production ? SortAlgorithm::kRadix : SortAlgorithm::kRadixBlock, 8, "None, 1, 2, 4 or 8", block_has_them};
    if (digit_bits && block_has_them) kernel->digit_bits = static_cast<int>(*digit_bits);
  } else {
    return false;
  }
  return true;
}

namespace sort_plan_detail {

// Rows that would leave most of the GPU idle, one block or a few tiles each, are cut over all of it in one launch instead. H200, float32
// with index, in a graph: 2^13 11 us (one block: 16), 2^14 12 (30), 2^18 28 (radix: 45), [4, 65536] 27; [8, 128256] 82, where the radix
// sort wins.
constexpr int64_t kGridMinLength = 6144;             // of one row
constexpr int64_t kGridMaxNumel = int64_t{1} << 18;  // of all rows

inline bool grid_is_faster(const SortProblem& problem, const DeviceTraits& traits) {
  return problem.length >= kGridMinLength && problem.numel() <= kGridMaxNumel && problem.rows * 8 <= traits.sm_count;
}

// Long rows of which there is enough to fill the GPU with their buckets. H200, with index, against the radix sort: float32 [1024, 65536]
// 1064 us (1863), [3855, 17408] 1202 (2814), [963, 17408] 325 (724), [60, 17408] 34 (81), [12, 17408] 21 (48), [1, 2^20] 39 (61); int64
// [3855, 17408] 1685 (6109), [60, 17408] 50 (177), [1, 2^20] 59 (105). Rows above 2^20 where one launch holds all of them, or where buckets
// pull their keys: float32 [1, 1.2 M] 52 (76), [1, 2^21] 56 (90), [1, 2^22] 114 (152), [16, 2^22] 1544 (1733); int64 [1, 2^21] 111 (173).
// Keys alone only where buckets pull them, in rows up to 2^20: float32 [1, 2^20] 35 (52), [64, 128256] 139 (197), [1024, 65536] 913 (1191);
// but [1, 2^20] sorted 40 (18), all equal 30 (18), Zipf values 60 to 66 (52), all less than CUB's 71, 51 and 68; at 2^21 Zipf values are
// slower still. Keys of 16 bits have fewer bytes to move there and stay with it.
constexpr int64_t kBucketsMinNumel = kGridMaxNumel + 1;        // of all rows
constexpr int64_t kBucketsMinLength = (int64_t{1} << 14) + 1;  // what one block does not sort
constexpr int64_t kBucketsMaxLength = int64_t{1} << 20;

inline bool buckets_are_faster(const SortProblem& problem, const DeviceTraits& traits) {
  if (problem.key.bytes < 4 || problem.numel() < kBucketsMinNumel || problem.length < kBucketsMinLength ||
      !bucket_sort_can_run(problem, traits)) {
    return false;
  }
  const bool long_rows = problem.length > kBucketsMaxLength;
  if (problem.indices_out == nullptr) return !long_rows && plan_pulled_buckets(problem, traits).possible;
  return !long_rows || plan_one_launch(problem, traits).possible || plan_pulled_buckets(problem, traits).possible ||
         plan_mapped_buckets(problem, traits).possible;
}

}  // namespace sort_plan_detail

// Whether an on-chip family takes the shape at all. Bit windows are the radix sort's business.
inline bool on_chip_sort_can_run(SortAlgorithm algorithm, const SortProblem& problem, const DeviceTraits& traits) {
  switch (algorithm) {
    case SortAlgorithm::kRows: return problem.whole_key() && problem.length <= row_sort_max_length(problem.key.bytes, traits);
    case SortAlgorithm::kGrid:
      return problem.whole_key() && problem.length <= grid_sort_max_length(problem.key.bytes, problem.rows, traits);
    case SortAlgorithm::kBuckets: return bucket_sort_can_run(problem, traits);
    default: return true;
  }
}

// A row that fits on chip is read once and written once, which no sequence of passes can beat.
inline SortAlgorithm choose_sort_algorithm(const SortProblem& problem, SortAlgorithm requested, const DeviceTraits& traits) {
  const auto can_run = [&](SortAlgorithm algorithm) { return on_chip_sort_can_run(algorithm, problem, traits); };
  if (requested != SortAlgorithm::kAuto) return can_run(requested) ? requested : SortAlgorithm::kRadix;
  if (sort_plan_detail::grid_is_faster(problem, traits) && can_run(SortAlgorithm::kGrid)) return SortAlgorithm::kGrid;
  if (can_run(SortAlgorithm::kRows)) return SortAlgorithm::kRows;
  if (sort_plan_detail::buckets_are_faster(problem, traits)) return SortAlgorithm::kBuckets;
  return SortAlgorithm::kRadix;
}

// Bytes of a position in rows that are packed for the sort and put into their places, and their width, afterwards.
inline int packed_index_bytes(const SortProblem& problem, SortAlgorithm requested, const DeviceTraits& traits) {
  if (choose_sort_algorithm(problem, requested, traits) == SortAlgorithm::kRows && problem.length <= int64_t{1} << 16) return 2;
  return problem.length <= int64_t{1} << 31 ? 4 : problem.index_bytes;
}

}  // namespace gpusort
