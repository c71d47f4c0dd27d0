// What a sort is going to do, read from the plan that it is going to use: algorithm, kernels, tiles, memory, bytes moved. Pure, as the
// plans.
//
// One function for each family turns its plan into steps. A step moves bytes: what it reads and writes of keys, indices and records between
// passes. Tables (histograms, look-back, samples, cuts) are left out: they are some thousandths of the data. Steps that the device may skip
// (constant digits, input that is sorted already) are counted. What it may do besides is not: another sort of rows that the samples do not
// suit, buckets above their capacity, ties to be mended.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bucket_launches.h"
#include "grid_sort_plan.h"
#include "mapped_buckets_plan.h"
#include "merge_sort_plan.h"
#include "radix_plan.h"
#include "row_plan.h"
#include "sort_plan.h"
#include "sort_problem.h"
#include "steps_plan.h"

namespace gpusort {

struct ExplainedStep {
  std::string name;
  int64_t blocks = 0;
  int64_t threads = 0;  // to a block
  int64_t tile = 0;     // elements that a block takes at a time; 0: it does not go by tiles
  int64_t shared_bytes = 0;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
};

struct SortExplanation {
  std::string algorithm;
  std::string note;  // what is decided on the device; empty: nothing
  std::vector<ExplainedStep> steps;
  int64_t workspace_bytes = 0;

  int64_t bytes_moved() const {
    int64_t bytes = 0;
    for (const ExplainedStep& step : steps) bytes += step.bytes_read + step.bytes_written;
    return bytes;
  }
};

namespace explain_detail {

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

inline int64_t input_bytes(const SortProblem& problem) {
  return problem.numel() * problem.key.bytes;
}

inline int64_t output_bytes(const SortProblem& problem) {
  const int64_t per_element =
      (problem.keys_out != nullptr ? problem.key.bytes : 0) + (problem.indices_out != nullptr ? problem.index_bytes : 0);
  return problem.numel() * per_element;
}

// "scatter by digit, pass 2 of 4"; the name alone where there is one.
inline std::string numbered(const std::string& name, const std::string& unit, int64_t number, int64_t of) {
  return of == 1 ? name : name + ", " + unit + " " + std::to_string(number) + " of " + std::to_string(of);
}

}  // namespace explain_detail

inline SortExplanation explain_rows(const SortProblem& problem, const RowPlan& plan) {
  using namespace explain_detail;
  SortExplanation result;
  result.algorithm = "rows";
  const bool copy = plan.kernel == RowKernel::kCopy;
  const std::string name = copy                               ? "copy rows of one"
                           : plan.kernel == RowKernel::kBlock ? "sort a row to a block"
                                                              : "sort rows in registers";
  ExplainedStep step{name, plan.blocks, plan.threads, 0, plan.shared_bytes, input_bytes(problem), output_bytes(problem)};
  if (plan.kernel == RowKernel::kBlock) step.tile = int64_t{plan.threads} * plan.items;
  if (plan.kernel == RowKernel::kRegisters) step.tile = int64_t{plan.threads} * plan.items;
  if (plan.far_keys) step.bytes_read *= 2;  // once for the words, once for the values
  if (plan.cluster_threads > 0) {
    step.name = "sort a row to a cluster of " + std::to_string(kRowClusterBlocks) + " blocks";
    step.blocks = problem.rows * kRowClusterBlocks;
    step.threads = plan.cluster_threads;
    step.tile = row_part_length(static_cast<int>(problem.length));
    step.shared_bytes = plan.cluster_shared_bytes;
    step.bytes_read *= 2;
  }
  result.steps = {step};
  result.workspace_bytes = plan.workspace_bytes;
  return result;
}

inline SortExplanation explain_grid(const SortProblem& problem, const GridSortPlan& plan) {
  using namespace explain_detail;
  SortExplanation result;
  result.algorithm = "grid";
  result.note = "one launch: all blocks are resident and wait for each other between the two steps";
  const int64_t words = problem.numel() * (problem.key.bytes == 8 ? 16 : 8);
  result.steps = {{plan.by_partition ? "partition tiles by samples" : "sort tiles on chip", plan.blocks, plan.threads, plan.tile_length,
                   plan.shared_bytes, input_bytes(problem), words},
                  {plan.by_partition ? "sort buckets on chip" : "merge buckets on chip", plan.blocks, plan.threads, plan.bucket_capacity,
                   plan.shared_bytes, words, output_bytes(problem)}};
  result.workspace_bytes = plan.workspace_bytes;
  return result;
}

namespace explain_detail {

constexpr const char* kRareBuckets = "buckets above the capacity, which samples make unlikely, are sorted by a slower kernel";

// What all bucket sorts end with, after the steps that cut the rows: each bucket reads what the last of them has written.
template <class Plan>
SortExplanation explain_cut_rows(const SortProblem& problem, const Plan& plan, const char* note, std::vector<ExplainedStep> cut,
                                 const char* sort) {
  SortExplanation result;
  result.algorithm = "buckets";
  result.note = note;
  result.workspace_bytes = plan.workspace_bytes;
  result.steps = std::move(cut);
  const int64_t records = result.steps.back().bytes_written;
  result.steps.push_back({sort, problem.rows * plan.buckets_per_row, 0, plan.bucket_capacity, 0, records, output_bytes(problem)});
  return result;
}

}  // namespace explain_detail

inline SortExplanation explain_buckets(const SortProblem& problem, const BucketSortPlan& plan) {
  using namespace explain_detail;
  const int64_t tiles = problem.rows * plan.tiles_per_row, threads = bucket_sort_shapes::kThreads, input = input_bytes(problem);
  const int64_t records = input + (problem.indices_out != nullptr ? problem.numel() * 4 : 0);
  return explain_cut_rows(problem, plan, kRareBuckets,
                          {{"count in " + std::to_string(plan.buckets_per_row) + " buckets", tiles, threads, plan.tile_length, 0, input, 0},
                           {"partition", tiles, threads, plan.tile_length, plan.partition_shared_bytes, input, records}},
                          "sort buckets on chip");
}

// The same with the partition in one launch.
inline SortExplanation explain_one_launch(const SortProblem& problem, const OneLaunchPlan& plan) {
  using namespace explain_detail;
  const int64_t input = input_bytes(problem), records = input + problem.numel() * 4;
  return explain_cut_rows(problem, plan, "all blocks are resident and hold their keys while they wait for each other",
                          {{"partition in " + std::to_string(plan.buckets_per_row) + " buckets", problem.rows * plan.tiles_per_row,
                            one_launch_shapes::kThreads, plan.tile_length, plan.shared_bytes, input, records}},
                          "sort buckets on chip");
}

// The same where buckets pull their keys from tiles.
inline SortExplanation explain_pulled_buckets(const SortProblem& problem, const PulledBucketsPlan& plan) {
  using namespace explain_detail;
  const int64_t input = input_bytes(problem), records = input + (problem.indices_out != nullptr ? problem.numel() * 2 : 0);
  return explain_cut_rows(problem, plan, kRareBuckets,
                          {{"order tiles by " + std::to_string(plan.buckets_per_row) + " buckets", problem.rows * plan.tiles_per_row,
                            pulled_shapes::kThreads, plan.tile_length, plan.tile_shared_bytes, input, records}},
                          "pull and sort buckets on chip");
}

// The longest rows of 32-bit keys, cut twice.
inline SortExplanation explain_mapped_buckets(const SortProblem& problem, const MappedBucketsPlan& plan) {
  using namespace explain_detail;
  using namespace mapped_shapes;
  SortExplanation result;
  result.algorithm = "buckets";
  result.note = "rows in whose samples values are found often are left to the radix sort; the device decides";
  result.workspace_bytes = plan.workspace_bytes;
  const int64_t records = problem.numel() * 8, sms = plan.device.sm_count, blocks = kBlocksPerSm * sms;
  result.steps = {
      {"spread to " + std::to_string(1 << plan.region_bits) + " regions", blocks, kThreads, kTile, 0, input_bytes(problem), records},
      {"order tiles by " + std::to_string(1 << plan.part_bits) + " parts", sms, kOrderThreads, kTile, kOrderSharedBytes, records, records},
      {"pull and sort buckets on chip", plan.bucket_blocks(problem.rows), kBucket.threads, kMeanBucket, 0, records, output_bytes(problem)}};
  return result;
}

// One long row of 8-bit keys with indices.
inline SortExplanation explain_byte_sort(const SortProblem& problem, const ByteSortPlan& plan) {
  using namespace explain_detail;
  SortExplanation result;
  result.algorithm = "radix";
  result.note = "the keys are not carried: they follow from the counts";
  result.workspace_bytes = plan.workspace_bytes;
  result.steps = {{"count bytes", plan.groups, kByteSortThreads, plan.tile_items, 0, input_bytes(problem), 0},
                  {"scatter by byte", plan.groups, kByteSortThreads, plan.tile_items, byte_sort_shared_bytes(plan.rounds),
                   input_bytes(problem), output_bytes(problem)}};
  return result;
}

// One row of 16-bit keys with indices.
inline SortExplanation explain_half_sort(const SortProblem& problem, const HalfSortPlan& plan) {
  using namespace explain_detail;
  SortExplanation result;
  result.algorithm = "radix";
  result.workspace_bytes = plan.workspace_bytes;
  const int64_t input = input_bytes(problem), output = output_bytes(problem), records = problem.numel() * 6;
  if (plan.grid.threads != 0) {
    const HalfShape shape = plan.grid;
    result.note = "one launch: all blocks are resident and meet between the two partitions";
    const int shared_bytes = half_shared_bytes(HalfStep::kHigh, shape);
    result.steps = {{"partition by the low byte", plan.first_grid, shape.threads, shape.tile_items(), shared_bytes, input, records},
                    {"partition by the high byte", plan.first_grid, shape.threads, shape.tile_items(), shared_bytes, records, output}};
    return result;
  }
  const HalfShape low = half_shape(HalfStep::kLow), high = half_last_shape(plan.last_threads);
  result.note = "decided on the device: few patterns take one pass from the keys to the outputs, sorted rows are copied";
  result.steps = {
      {"count digits", plan.histogram_grid, 1024, 0, kHalfHistogramSharedBytes, input, 0},
      {"partition by the low byte", plan.first_grid, low.threads, low.tile_items(), half_shared_bytes(HalfStep::kLow, low), input, records},
      {"partition by the high byte", plan.last_grid, high.threads, high.tile_items(), half_shared_bytes(HalfStep::kHigh, high), records,
       output}};
  return result;
}

inline SortExplanation explain_radix(const SortProblem& problem, const RadixPlan& plan) {
  using namespace explain_detail;
  if (plan.byte_sort.used) return explain_byte_sort(problem, plan.byte_sort);
  if (plan.half_sort.used) return explain_half_sort(problem, plan.half_sort);
  SortExplanation result;
  result.algorithm = "radix";
  result.workspace_bytes = plan.workspace_bytes;
  const int key_bytes = problem.key.bytes;
  const bool apart = key_bytes == 8 || plan.wide;
  const int64_t record_bytes = !plan.indexed ? key_bytes : !apart ? 8 : key_bytes + (plan.wide ? 8 : 4);
  const int64_t records = problem.numel() * record_bytes;
  if (plan.bool_keys.used) {
    result.note = "the values are written from the count alone, unless there are other bytes than 0 and 1";
    const int64_t tile = int64_t{kBoolKeysThreads} * kBoolKeysRounds * 16;
    result.steps = {{"count True", plan.bool_keys.blocks, kBoolKeysThreads, 0, 0, input_bytes(problem), 0},
                    {"write False and True", plan.bool_keys.blocks, kBoolKeysThreads, tile, 0, 0, output_bytes(problem)}};
    return result;
  }
  if (plan.counting.used) {
    result.note = "the values are written from the counts alone, unless several are equal in the order";
    result.steps = {{"count values", plan.counting.blocks, 1024, 0, kCountingSharedBytes, input_bytes(problem), 0},
                    {"write runs of equal keys", plan.grid[0] * int64_t{8}, 256, 0, 0, 0, output_bytes(problem)}};
    if (problem.rows > 1) result.note += "; one row after the other";
    return result;
  }
  if (plan.passes == 0) {
    result.note = "no bits to sort by: a copy";
    result.steps = {{"copy", plan.grid[0], 0, 0, 0, input_bytes(problem), output_bytes(problem)}};
    return result;
  }
  result.steps.push_back({"count digits", plan.histogram_grid, 0, plan.histogram_chunk, 0, input_bytes(problem), 0});
  if (key_bytes == 1 && !plan.indexed && problem.whole_key()) {
    result.note = "the values are written from the counts alone, unless several bytes are equal in the order";
    result.steps.push_back({"write runs of equal keys", plan.grid[0] * int64_t{8}, 0, 0, 0, 0, output_bytes(problem)});
    return result;
  }
  result.note = "digits that are the same in all keys are skipped on the device, and sorted input is copied";
  if (plan.high_word_samples > 0)
    result.note += "; where two to four leading digits tell most keys apart, only those are sorted by, and what they leave is mended";
  if (plan.scratch_keys_offset >= 0) result.note += "; the keys are sorted too, in the workspace";
  const int64_t last_bytes = output_bytes(problem) + (plan.scratch_keys_offset >= 0 ? problem.numel() * key_bytes : 0);
  if (plan.low_bytes.used) result.note += "; keys that differ in their low byte alone are sorted as bytes";
  for (int pass = 0; pass < plan.passes; ++pass) {
    const bool first = pass == 0, last = pass + 1 == plan.passes;
    const PassKind kind = first ? PassKind::kFirst : last ? PassKind::kLast : PassKind::kMiddle;
    const TileShape shape = plan.wide ? TileShape{radix_plan_detail::kWideThreads,
                                                  radix_plan_detail::kWideTileItems / radix_plan_detail::kWideThreads, 0, false}
                                      : radix_tile_shape(key_bytes, plan.indexed, plan.tile_class, kind);
    const int64_t shared = plan.wide ? 0 : radix_shared_bytes(key_bytes, plan.indexed, plan.tile_class, kind);
    result.steps.push_back({numbered("scatter by digit", "pass", pass + 1, plan.passes), plan.grid[static_cast<int>(kind)], shape.threads,
                            shape.tile_items(), shared, first ? input_bytes(problem) : records, last ? last_bytes : records});
  }
  return result;
}

inline SortExplanation explain_merge_sort(const SortProblem& problem, const MergeSortPlan& plan) {
  using namespace explain_detail;
  SortExplanation result;
  if (!plan.possible) {
    result.note = "this GPU has too little shared memory for its runs";
  } else if (plan.on_chip) {
    result = explain_rows(problem, plan.row_plan);
  } else {
    const int64_t records = problem.numel() * record_bytes(problem.key.bytes, plan.wide_indices);
    const int64_t sorted_runs = input_bytes(problem) + problem.numel() * 4;
    if (plan.padded_length > 0) {
      const int64_t padded = problem.rows * plan.padded_length * problem.key.bytes;
      result.steps.push_back({"pad rows to whole runs", 0, 0, 0, 0, input_bytes(problem), padded});
    }
    const RowPlan& runs = plan.row_plan;
    result.steps.push_back(
        {"sort runs on chip", runs.blocks, runs.threads, plan.run_length, runs.shared_bytes, input_bytes(problem), sorted_runs});
    for (int s = 0; s < plan.wide.count; ++s) {
      const WideMergeStage& stage = plan.wide.stage[s];
      const bool first = s == 0, last = s + 1 == plan.wide.count;
      result.steps.push_back({numbered("merge " + std::to_string(stage.ways) + " runs by a sample", "stage", s + 1, plan.wide.count),
                              stage.tiles, kWideThreads, stage.step * kWideSampleStep, kWideSharedBytes, first ? sorted_runs : records,
                              last ? output_bytes(problem) : records});
    }
    for (int s = 0; s < plan.stages.count; ++s) {
      const MultiwayStage& stage = plan.stages.stage[s];
      const bool first = s == 0, last = s + 1 == plan.stages.count;
      result.steps.push_back({numbered("merge " + std::to_string(stage.ways) + " runs", "stage", s + 1, plan.stages.count), stage.tiles,
                              stage.threads, stage.tile, 0, first ? sorted_runs : records, last ? output_bytes(problem) : records});
    }
    result.workspace_bytes = plan.workspace_bytes;
  }
  result.algorithm = "merge";
  return result;
}

// After the tiles: every doubling of the sorted length is some steps over all pairs, up to three at a time, and the rest on chip.
inline SortExplanation explain_bitonic(const SortProblem& problem, const BitonicPlan& plan) {
  using namespace explain_detail;
  SortExplanation result;
  result.algorithm = "bitonic";
  result.workspace_bytes = plan.workspace_bytes;
  const int64_t pairs = problem.numel() * (plan.packed ? kPackedPairBytes : kWidePairBytes);
  const bool on_chip = problem.length <= plan.tile;
  const int64_t tile = on_chip ? problem.length : plan.tile, tiles = problem.rows * ceil_div(problem.length, plan.tile);
  result.steps.push_back({"sort tiles on chip", tiles, 0, tile, 0, input_bytes(problem), on_chip ? output_bytes(problem) : pairs});
  const int64_t padded = steps_power_of_two_at_least(problem.length);
  for (int64_t merged = 2 * plan.tile; merged <= padded; merged *= 2) {
    const int64_t passes = ceil_div(ceil_log2(merged / plan.tile), 3);
    result.steps.push_back({"exchange to spans of " + std::to_string(merged), 0, 0, 0, 0, pairs * passes, pairs * passes});
    result.steps.push_back({"finish them on chip", tiles, 0, tile, 0, pairs, merged == padded ? output_bytes(problem) : pairs});
  }
  return result;
}

inline SortExplanation explain_sample(const SortProblem& problem, const SamplePlan& plan) {
  using namespace explain_detail;
  SortExplanation result;
  result.algorithm = "sample";
  result.workspace_bytes = plan.workspace_bytes;
  const int64_t pairs = problem.numel() * (plan.packed ? kPackedPairBytes : kWidePairBytes);
  const auto levels = static_cast<int64_t>(plan.levels.size());
  for (int64_t i = 0; i < levels; ++i) {
    const SampleLevel& level = plan.levels[i];
    const int64_t tiles = level.segments * level.tiles_per_segment;
    result.steps.push_back(
        {numbered("sort tiles on chip", "level", i + 1, levels), tiles, 0, plan.tile, 0, i == 0 ? input_bytes(problem) : pairs, pairs});
    result.steps.push_back({"count in " + std::to_string(level.buckets) + " buckets", tiles, 0, plan.tile, 0, pairs, 0});
    result.steps.push_back({"move to them", tiles, 0, plan.tile, 0, pairs, pairs});
  }
  result.steps.push_back({"sort buckets on chip", 0, 0, plan.tile, 0, levels == 0 ? input_bytes(problem) : pairs, output_bytes(problem)});
  return result;
}

inline SortExplanation explain_radix_steps(const SortProblem& problem, const RadixStepsPlan& plan, bool by_block) {
  using namespace explain_detail;
  SortExplanation result;
  result.algorithm = by_block ? "radix, kernel 'block'" : "radix, kernel 'scan_scatter'";
  result.workspace_bytes = plan.workspace_bytes;
  const int64_t records = problem.numel() * (problem.key.bytes + plan.record_index_bytes);
  const int64_t flags = by_block ? 0 : problem.numel() * plan.offset_bytes;  // written, scanned in place, read
  const int64_t blocks = by_block ? problem.rows * plan.tiles_per_row : 0, threads = by_block ? kRadixBlockThreads : 0;
  for (int pass = 0; pass < plan.passes; ++pass) {
    const int64_t read = pass == 0 ? input_bytes(problem) : records;
    const int64_t keys = input_bytes(problem);
    if (plan.offset_count > 0)
      result.steps.push_back(
          {numbered("count", "pass", pass + 1, plan.passes), blocks, threads, plan.tile, 0, keys + 2 * flags, 2 * flags});
    result.steps.push_back({numbered("scatter", "pass", pass + 1, plan.passes), blocks, threads, plan.tile, 0, read + flags,
                            pass + 1 == plan.passes ? output_bytes(problem) : records});
  }
  return result;
}

// The pointers of `problem` only say which results are wanted. `digit_bits` is for kRadixBlock.
inline SortExplanation explain_sort(const SortProblem& problem, SortAlgorithm requested, const DeviceTraits& traits, int digit_bits = 8) {
  if (problem.numel() == 0) {
    SortExplanation nothing;
    nothing.algorithm = "none";
    nothing.note = "there are no elements";
    return nothing;
  }
  switch (choose_sort_algorithm(problem, requested, traits)) {
    case SortAlgorithm::kRows: return explain_rows(problem, plan_row_sort(problem, traits));
    case SortAlgorithm::kGrid: return explain_grid(problem, plan_grid_sort(problem, traits));
    case SortAlgorithm::kBuckets: {
      const BucketLaunches launches = plan_bucket_launches(problem, traits);
      const auto* one = std::get_if<OneLaunchPlan>(&launches);
      if (one != nullptr) return explain_one_launch(problem, *one);
      const auto* mapped = std::get_if<MappedBucketsPlan>(&launches);
      if (mapped != nullptr) return explain_mapped_buckets(problem, *mapped);
      const auto* pulled = std::get_if<PulledBucketsPlan>(&launches);
      return pulled != nullptr ? explain_pulled_buckets(problem, *pulled) : explain_buckets(problem, std::get<BucketSortPlan>(launches));
    }
    case SortAlgorithm::kMerge: return explain_merge_sort(problem, plan_merge_sort(problem, traits));
    case SortAlgorithm::kBitonic: return explain_bitonic(problem, plan_bitonic_sort(problem));
    case SortAlgorithm::kSample: return explain_sample(problem, plan_sample_sort(problem));
    case SortAlgorithm::kRadixScanScatter: return explain_radix_steps(problem, plan_radix_scan_scatter(problem), false);
    case SortAlgorithm::kRadixBlock: return explain_radix_steps(problem, plan_radix_block(problem, digit_bits), true);
    case SortAlgorithm::kAuto:
    case SortAlgorithm::kRadix: break;
  }
  return explain_radix(problem, plan_radix_sort(problem, traits));
}

}  // namespace gpusort
