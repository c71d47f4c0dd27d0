// What the kernels of a wide merge stage are given: where the runs lie, what is read, what is written. Records are words: the code of a key
// above its index in the row. No two words of a row are equal, so words alone say the stable order.
#pragma once

#include <cstdint>

#include "../../core/key_order.h"
#include "../../plan/wide_merge_plan.h"
#include "multiway_tile.cuh"

namespace gpusort {

template <class U>
struct WideMergeArguments {
  KeyOrder<U> order;
  int64_t rows = 0, row_length = 0;
  int64_t run_length = 0;
  uint32_t groups = 0;  // per row; groups, tiles and samples of all rows are numbered in 32 bits
  uint32_t tiles_per_group = 0;
  int ways = 1;
  int index_shift = 0;  // brings the bits of an index within a group to the top of 32
  uint32_t step = 0;    // samples to a tile
  uint32_t sample_run_length = 0, sample_row_length = 0;
  const U* keys = nullptr;              // first stage: sorted runs
  const uint32_t* positions = nullptr;  // first stage: within the run
  const uint64_t* words_in = nullptr;   // later stages
  uint64_t* words_out = nullptr;        // null: the last stage, which writes the results
  const U* original = nullptr;          // last stage: the keys as they were given, for those that a code does not tell
  U* keys_out = nullptr;                // null: not wanted
  int64_t* indices_wide = nullptr;      // at most one of the two is wanted
  int32_t* indices_narrow = nullptr;
  uint64_t* samples = nullptr;  // of all rows, sorted within groups when tiles are cut
  // Of every group tiles_per_group + 1 bounds; those of tiles that are not there are the end of the group.
  uint32_t* cuts = nullptr;    // [bound][way]: records of the run before it
  uint64_t* bounds = nullptr;  // a word that is not below those before the bound and not above those behind
  uint32_t* begins = nullptr;  // records of the group before it
  uint32_t* lists = nullptr;   // two counts, then the crowded tiles, then the rest
};

// A group of runs.
struct WideGroup {
  int64_t row_begin;  // of its row, in the arrays
  int64_t begin;      // of the group, in the row
  int64_t first_run;  // in the row
  uint32_t row;

  template <class U>
  __device__ __forceinline__ WideGroup(const WideMergeArguments<U>& m, uint32_t number) {
    row = number / m.groups;
    first_run = int64_t{number - row * m.groups} * m.ways;
    row_begin = row * m.row_length;
    begin = first_run * m.run_length;
  }
};

template <class U, bool kFirst>
__device__ __forceinline__ uint64_t wide_word(const WideMergeArguments<U>& m, int64_t place, uint32_t run_begin) {
  if constexpr (!kFirst) return m.words_in[place];
  return static_cast<uint64_t>(m.order.code(m.keys[place])) << 32 | (run_begin + m.positions[place]);
}

template <class U>
__device__ __forceinline__ void write_wide_word(const WideMergeArguments<U>& m, int64_t row_begin, int64_t place, uint64_t word) {
  if (m.words_out != nullptr) {
    m.words_out[place] = word;
    return;
  }
  const uint32_t index = static_cast<uint32_t>(word);
  if (m.indices_wide != nullptr) m.indices_wide[place] = index;
  if (m.indices_narrow != nullptr) m.indices_narrow[place] = static_cast<int32_t>(index);
  if (m.keys_out != nullptr) m.keys_out[place] = key_of_code(m.order, static_cast<U>(word >> 32), m.original + row_begin, int64_t{index});
}

// Which list of tiles, named by their first bound.
constexpr int kWideCrowds = 0, kWideRest = 1;

template <class U>
__device__ __forceinline__ uint32_t* wide_list(const WideMergeArguments<U>& m, int list) {
  return m.lists + 2 + list * (m.rows * m.groups * m.tiles_per_group);
}

template <class U>
__device__ __forceinline__ void note_wide_tile(const WideMergeArguments<U>& m, int list, uint32_t bound) {
  wide_list(m, list)[atomicAdd(m.lists + list, 1u)] = bound;
}

}  // namespace gpusort
