// Multiway merge stages: how k sorted runs at a time become one, and how many stages bring all runs of a row together.
//
// A stage cuts each group's output (a group: `ways` neighbouring runs) into tiles. A tile's pieces of the runs are merged in shared memory,
// so a stage reads and writes the data once whatever its ways. Pieces start at whole threads there: up to items - 1 slots are lost for
// each of the ways, and a tile is smaller than its threads x items by that much.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sort_problem.h"

namespace gpusort {

constexpr int kMaxWays = 32;  // one run to a lane where cuts are searched
constexpr int kMaxRoundsPerStage = 5;
constexpr int kMaxStages = 13;         // 2^63 runs
constexpr int kMultiwayThreads = 512;  // of the largest tile; two blocks to a multiprocessor
constexpr int kFewestMultiwayThreads = 128;
constexpr int kCutSlack = 64;
constexpr int kSlotBits = 13;                                   // of a place in a tile
constexpr int64_t kNarrowIndexLength = (int64_t{1} << 32) - 1;  // rows to this length move 32-bit indices

// How records lie between stages: keys up to 32 bits and their index in one 64-bit word, or codes and indices in an array each.
constexpr bool records_packed(int key_bytes, bool wide_indices) {
  return key_bytes <= 4 && !wide_indices;
}

constexpr int record_bytes(int key_bytes, bool wide_indices) {
  return records_packed(key_bytes, wide_indices) ? 8 : key_bytes + (wide_indices ? 8 : 4);
}

// Records per thread: odd, so that threads meet different banks, and few enough for 64 registers a thread.
constexpr int multiway_items(int key_bytes, bool wide_indices) {
  return records_packed(key_bytes, wide_indices) ? 15 : wide_indices ? 9 : 11;
}

struct MultiwayStage {
  int ways = 1;
  int threads = kMultiwayThreads;
  int64_t tile = 0;             // outputs
  int64_t stride = 1;           // original runs in a run of this stage
  int64_t runs = 0;             // of this stage's input, per row
  int64_t run_length = 0;       // regular runs: elements of each but the last of a row
  int64_t groups = 0;           // per row
  int64_t tiles = 0;            // in all, at most
  int64_t tiles_per_group = 0;  // regular runs
};

struct MultiwaySchedule {
  int count = 0;
  MultiwayStage stage[kMaxStages];
  int64_t cuts_bytes = 0;  // the largest stage's
};

inline int ceil_log2(int64_t value) {
  int bits = 0;
  while ((int64_t{1} << bits) < value) ++bits;
  return bits;
}

inline int multiway_stage_count(int64_t runs) {
  return std::max(1, (ceil_log2(runs) + kMaxRoundsPerStage - 1) / kMaxRoundsPerStage);
}

// run_length 0: runs of any lengths, whose groups are only known on the device (one row). No more than 2^most_rounds runs become one.
inline MultiwaySchedule plan_multiway(int key_bytes, bool wide_indices, int64_t rows, int64_t row_length, int64_t runs, int64_t run_length,
                                      const DeviceTraits& traits, int most_rounds = 63) {
  MultiwaySchedule schedule;
  const int items = multiway_items(key_bytes, wide_indices);
  int rounds_left = std::min(ceil_log2(runs), most_rounds);
  schedule.count = std::max(1, (rounds_left + kMaxRoundsPerStage - 1) / kMaxRoundsPerStage);
  int64_t stride = 1;
  for (int s = 0; s < schedule.count; ++s) {
    MultiwayStage& stage = schedule.stage[s];
    const int stages_left = schedule.count - s;
    const int rounds = (rounds_left + stages_left - 1) / stages_left;
    rounds_left -= rounds;
    stage.stride = stride;
    stage.runs = (runs + stride - 1) / stride;
    stage.run_length = run_length * stride;
    stage.ways = static_cast<int>(std::min<int64_t>(int64_t{1} << rounds, stage.runs));
    stage.groups = (stage.runs + stage.ways - 1) / stage.ways;
    for (stage.threads = kMultiwayThreads;; stage.threads /= 2) {
      stage.tile = int64_t{stage.threads} * items - int64_t{stage.ways} * (items - 1) - 2 * kCutSlack;
      if (stage.threads == kFewestMultiwayThreads || rows * (row_length / stage.tile) >= 2 * traits.sm_count) break;
    }
    if (run_length > 0) {
      const int64_t group_length = stage.groups == 1 ? row_length : stage.run_length * stage.ways;
      stage.tiles_per_group = (group_length + stage.tile - 1) / stage.tile;
      stage.tiles = rows * stage.groups * stage.tiles_per_group;
    } else {
      stage.tiles = row_length / stage.tile + stage.groups;
    }
    schedule.cuts_bytes = std::max<int64_t>(schedule.cuts_bytes, stage.tiles * stage.ways * 8);
    stride *= int64_t{1} << rounds;
  }
  return schedule;
}

}  // namespace gpusort
