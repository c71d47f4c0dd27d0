// What the kernels of a multiway merge stage are given: where the runs lie, what is read, what is written.
#pragma once

#include <cstdint>

#include "../../core/key_order.h"
#include "../../plan/multiway_plan.h"

namespace gpusort {

// Records between stages. Packed: the code above the index in one 64-bit word; else an array of each.
template <class U, class Index>
struct RecordFormat {
  static constexpr bool kWide = sizeof(Index) == 8;
  static constexpr bool kPacked = records_packed(sizeof(U), kWide);
  static constexpr int kItems = multiway_items(sizeof(U), kWide);
};

template <class U, class Index>
struct RecordArray {
  uint64_t* words = nullptr;  // packed
  U* codes = nullptr;         // not packed
  Index* indices = nullptr;
};

// One tile of the output of a group of runs.
struct MultiwayTileSpot {
  int64_t row = 0;
  int64_t first_run = 0;  // of the group, in the row
  int64_t tile = 0;       // in the group
  bool exists = false;
};

// The runs of a stage: regular ones, computed, or any, from offsets. Begins and lengths are within the row.
struct MultiwayRuns {
  int ways = 1;
  int64_t tile = 0;
  int64_t row_length = 0;
  int64_t runs = 0;  // per row
  int64_t groups = 0;
  int64_t run_length = 0;
  int64_t tiles_per_group = 0;
  int64_t stride = 1;
  int64_t original_runs = 0;
  const int64_t* offsets = nullptr;     // null: regular
  const int64_t* tile_begin = nullptr;  // with offsets

  // Any run up to one behind the last.
  __device__ int64_t begin(int64_t run) const {
    return offsets != nullptr ? offsets[min(run * stride, original_runs)] : min(run * run_length, row_length);
  }
  // The lane-th run of a group, within the row's runs.
  __device__ int64_t run_of(const MultiwayTileSpot& spot, int lane) const { return min(spot.first_run + min(lane, ways), runs); }
  __device__ int64_t group_begin(const MultiwayTileSpot& spot) const { return begin(spot.first_run); }
  __device__ int64_t group_length(const MultiwayTileSpot& spot) const { return begin(run_of(spot, ways)) - group_begin(spot); }

  __device__ MultiwayTileSpot locate(int64_t number) const {
    MultiwayTileSpot spot;
    if (offsets == nullptr) {
      const int64_t group = number / tiles_per_group;
      spot.tile = number - group * tiles_per_group;
      spot.row = group / groups;
      spot.first_run = (group - spot.row * groups) * ways;
      spot.exists = spot.tile * tile < group_length(spot);
      return spot;
    }
    int64_t low = 0, high = groups;  // the last group that begins at or before the tile; empty groups begin with the next
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      if (tile_begin[middle] <= number) {
        low = middle;
      } else {
        high = middle;
      }
    }
    spot.tile = number - tile_begin[low];
    spot.first_run = low * ways;
    spot.exists = number < tile_begin[groups];
    return spot;
  }
};

enum class MultiwaySource {
  kRuns,    // sorted keys and their 32-bit positions within the run
  kKeys,    // sorted keys, whose index is their place in the row
  kRecords  // what the stage before wrote
};

template <class U, class Index>
struct MultiwayArguments {
  MultiwayRuns runs;
  KeyOrder<U> order;
  MultiwaySource source = MultiwaySource::kRecords;
  const U* keys = nullptr;              // kRuns, kKeys
  const uint32_t* positions = nullptr;  // kRuns
  int64_t source_row_stride = 0;        // elements from row to row in the source
  RecordArray<U, Index> records_in;
  RecordArray<U, Index> records_out;
  bool last = false;                // the last stage, which writes the results
  const U* original = nullptr;      // last stage: the keys as they were given, for those that a code does not tell
  U* keys_out = nullptr;            // null: not wanted
  int64_t* indices_wide = nullptr;  // at most one of the two is wanted
  int32_t* indices_narrow = nullptr;
  int64_t* cuts = nullptr;            // [tile][way]: elements of the run before the tile
  uint32_t* contradictory = nullptr;  // null: runs are sorted; else not 0 when the cuts contradict each other

  __device__ U source_code(int64_t place) const {
    if (source != MultiwaySource::kRecords) return order.code(keys[place]);
    if constexpr (RecordFormat<U, Index>::kPacked) return static_cast<U>(records_in.words[place] >> 32);
    return records_in.codes[place];
  }
};

}  // namespace gpusort
