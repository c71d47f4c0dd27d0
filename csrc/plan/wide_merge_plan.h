// Plans wide merge stages: up to 128 sorted runs at a time become one, by splitters of a regular sample.
//
// Every kWideSampleStep-th record of each run is a sample; the samples of a group (`ways` neighbouring runs) are sorted by narrow multiway
// stages, and every `step`-th of them is where a tile of the group's output begins. A run has at most kWideSampleStep - 1 records between
// two neighbouring samples of the group, so a tile has step * kWideSampleStep records give or take ways * kWideSampleStep, and for most
// data give or take a few hundred: the places that are sampled differ from run to run. A tile that is larger than a block holds is merged
// by another kernel (wide_rest.cuh), so the plan is never wrong, only slow.
#pragma once

#include <algorithm>
#include <cstdint>

#include "multiway_plan.h"
#include "row_plan.h"

namespace gpusort {

constexpr int kWideRounds = 7;
constexpr int kMostWideWays = 1 << kWideRounds;
constexpr int kMostWideStages = 5;  // 2^31 runs
constexpr int64_t kWideSampleStep = 64;
constexpr int kWideThreads = 512;
constexpr int kWideItems = 16;
constexpr int kWideCapacity = kWideThreads * kWideItems;   // of a tile; two blocks to a multiprocessor
constexpr int kWideSharedBytes = 112 * 1024;               // enough for the kernels
constexpr int64_t kMostWideSamples = 102;                  // of a tile: 6528 records; those of 128 random runs deviate by 300
constexpr int64_t kFewestWideElements = int64_t{1} << 22;  // of one stage; half as many again of more
constexpr int64_t kMostWideElements = int64_t{1} << 36;

struct WideMergeStage {
  int ways = 1;            // a power of two
  int64_t runs = 0;        // per row
  int64_t run_length = 0;  // a power of two
  int64_t groups = 0;      // per row
  int64_t sample_run_length = 0;
  int64_t sample_row_length = 0;
  int64_t step = 0;  // samples to a tile
  int64_t tiles_per_group = 0;
  int64_t tiles = 0;  // in all
  MultiwaySchedule sample_stages;
  int64_t samples_bytes = 0;  // of each of two buffers
  // What the tiles need, one after the other, from where the cuts are.
  int64_t bounds_offset = 0, begins_offset = 0, lists_offset = 0, cuts_bytes = 0;
};

struct WideMergeSchedule {
  int count = 0;  // 0: not possible
  WideMergeStage stage[kMostWideStages];
  int64_t sample_cuts_offset = 0;  // in the scratch memory: two sample buffers from 0 on, cuts of the narrow stages, cuts of the tiles
  int64_t cuts_offset = 0;
  int64_t scratch_bytes = 0;    // needed until the tiles of the last stage begin
  int64_t workspace_bytes = 0;  // needed by the tiles of the last stage
};

// Samples of a run: places phase, phase + kWideSampleStep, ... Phases spread over a step, so that runs that look alike do not add up.
GPUSORT_HD constexpr int64_t wide_sample_phase(int64_t run) {
  return run * 39 % kWideSampleStep;
}

inline int wide_stage_count(int64_t runs) {
  return std::max(1, (ceil_log2(runs) + kWideRounds - 1) / kWideRounds);
}

inline WideMergeSchedule plan_wide_merge(int key_bytes, int64_t rows, int64_t row_length, int64_t run_length, const DeviceTraits& traits) {
  WideMergeSchedule schedule;
  const int64_t runs = (row_length + run_length - 1) / run_length;
  int rounds_left = ceil_log2(runs);
  schedule.count = wide_stage_count(runs);
  int64_t stage_run_length = run_length, sample_cuts = 0, samples = 0, cuts = 0;
  const auto aligned = [](int64_t bytes) { return round_up(bytes, 256); };
  for (int s = 0; s < schedule.count; ++s) {
    WideMergeStage& stage = schedule.stage[s];
    const int stages_left = schedule.count - s;
    const int rounds = (rounds_left + stages_left - 1) / stages_left;
    rounds_left -= rounds;
    stage.ways = 1 << rounds;
    stage.run_length = stage_run_length;
    stage.runs = (row_length + stage_run_length - 1) / stage_run_length;
    stage.groups = (stage.runs + stage.ways - 1) / stage.ways;
    stage.sample_run_length = stage_run_length / kWideSampleStep;
    stage.sample_row_length =
        (stage.runs - 1) * stage.sample_run_length + (row_length - (stage.runs - 1) * stage_run_length) / kWideSampleStep;
    const int64_t group_samples = std::min(stage.ways * stage.sample_run_length, stage.sample_row_length);
    const int64_t even_tiles = (group_samples + kMostWideSamples - 1) / kMostWideSamples;
    stage.step = (group_samples + even_tiles - 1) / even_tiles;
    stage.tiles_per_group = (group_samples + stage.step - 1) / stage.step;
    stage.tiles = rows * stage.groups * stage.tiles_per_group;
    stage.sample_stages = plan_multiway(key_bytes, false, rows, stage.sample_row_length,
                                        (stage.sample_row_length + stage.sample_run_length - 1) / stage.sample_run_length,
                                        stage.sample_run_length, traits, rounds);
    stage.samples_bytes = aligned(rows * stage.sample_row_length * 8);
    const int64_t bounds = rows * stage.groups * (stage.tiles_per_group + 1);
    stage.bounds_offset = aligned(bounds * stage.ways * 4);
    stage.begins_offset = stage.bounds_offset + aligned(bounds * 8);
    stage.lists_offset = stage.begins_offset + aligned(bounds * 4);
    stage.cuts_bytes = stage.lists_offset + aligned((2 + 2 * stage.tiles) * 4);
    samples = std::max(samples, stage.samples_bytes);
    sample_cuts = std::max(sample_cuts, aligned(stage.sample_stages.cuts_bytes));
    if (s + 1 < schedule.count) {
      cuts = std::max(cuts, stage.cuts_bytes);
    } else {
      schedule.workspace_bytes = stage.cuts_bytes;
    }
    stage_run_length *= stage.ways;
  }
  schedule.sample_cuts_offset = 2 * samples;
  schedule.cuts_offset = schedule.sample_cuts_offset + sample_cuts;
  schedule.scratch_bytes = schedule.cuts_offset + cuts;
  return schedule;
}

}  // namespace gpusort
