// Plans a large sort: which radix passes, which tiles, and how the workspace is cut. Pure: shapes in, numbers out, no data, no CUDA.
//
// A sort of b code bits takes ceil(b / 8) digits. The launch has one slot per digit: the first slot reads the caller's keys, the last one
// writes the outputs, those between move records. How many slots do work is decided on the device (constant digits are skipped); the plan
// only knows the most that can be needed.
//
// Memory, per element (the budget beyond the outputs: 8 bytes for 32-bit keys, 12 for 64-bit keys, with int64 indices):
//   a record is key and 32-bit index; two record buffers are needed as soon as there are three digits. One of them lies in the workspace.
//   The other is made of the outputs, which nobody reads before the last slot writes them: 8-byte records fit the int64 indices, 64-bit
//   keys and their indices fit both. The last slot always reads the workspace buffer, so it never overwrites what it reads. Where
//   no values are wanted for 64-bit keys these lie in the workspace too, where the sort may as well leave them sorted. 32-bit keys with
//   int32 indices: their records take the memory of both outputs, in pieces (record_pieces.h); half of them lies in the workspace where no
//   values are wanted. Control words, bins and look-back tables (a few bytes for a hundred elements) borrow memory of the int64 indices,
//   whose upper halves are zero and so of no use before the end (cuda/radix/borrowed_indices.cuh). Where they can not, they lie before the
//   records in the workspace.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "bool_keys_plan.h"
#include "byte_sort_plan.h"
#include "counting_plan.h"
#include "half_sort_plan.h"
#include "record_pieces.h"
#include "sort_problem.h"

namespace gpusort {

constexpr int kRadixBits = 8;
constexpr int kRadixBins = 1 << kRadixBits;
constexpr int kMaxRadixPasses = 8;
constexpr int kControlWords = 64;

// Which part of the sort a kernel serves: reads keys, moves records, writes outputs.
enum class PassKind : int { kFirst, kMiddle, kLast };

enum class TileClass : int { kLarge, kMedium };

struct TileShape {
  int threads;
  int items;       // per thread
  int group;       // items loaded, ranked and stored together: bounds the registers in flight
  bool prefetch;   // ask for the next tile in L2 as soon as its number is known
  int lanes = 32;  // of a warp that share a histogram: fewer where few digits are frequent, so that fewer atomics meet

  constexpr int tile_items() const { return threads * items; }
};

// Whether the last slot does all there is to do where less than two digits are live; else the first does. Only the last slot writes outputs
// then, so that they may be used for other things before.
constexpr bool last_slot_takes_all(int key_bytes, bool indexed) {
  return key_bytes >= 4 && indexed;
}

// The longest row whose positions and look-back words fit 32 bits (see primitives/look_back.cuh).
constexpr int64_t kMaxNarrowLength = (int64_t{1} << 32) - (1 << 17);

// The tiles. One block per SM with the largest tile that registers and shared memory hold: a store that fills a part of a 32-byte sector is
// what a scatter costs, so runs must be long. H200, 2^26 float32 with indices: 512x32 first 305 us (1024x16 347), 1024x16 middle 341
// (512x32 371, 512x40 365), 512x32 last 438 (512x40 523, 1024x16 722: spills). 64-bit keys take 512x24 and 512x28 in groups of 4 (512x32
// spills). Keys of 8 and 16 bits are staged as one word with their place in the tile. Keys alone of 32 bits: passes of 1024x32 210 us, of
// 512x64 220, of two blocks of 256x64 225; medium tiles of 512x16 make 2^20 keys 64 us, 512x24 72. Medium tiles are for arrays that would
// not give every SM a large one. Keys alone of 64 bits: middle 1024x16 370 us and 512x32 366, but 105 and 106 at 2^24, and all of 2^22 203
// and 209; the first one spills in 1024 threads.
constexpr TileShape radix_tile_shape(int key_bytes, bool indexed, TileClass tile_class, PassKind kind) {
  if (tile_class == TileClass::kMedium) {
    if (key_bytes == 8) return {512, 12, 4, false};
    if (indexed && (key_bytes == 4 || kind != PassKind::kFirst)) return {512, 16, 8, false};
    return {512, key_bytes == 4 ? 16 : 24, 8, false};
  }
  if (key_bytes == 8) {
    if (!indexed) return kind == PassKind::kFirst ? TileShape{512, 32, 4, true} : TileShape{1024, 16, 4, true};
    return kind == PassKind::kFirst ? TileShape{512, 28, 4, true} : TileShape{512, 24, 4, false};
  }
  if (!indexed && key_bytes == 4) return {1024, 32, 8, true};
  if (!indexed) return {512, 64, 4, true, kind == PassKind::kLast ? 16 : 32};
  if (key_bytes < 4 && kind == PassKind::kFirst) return {512, 32, 8, true};
  if (kind == PassKind::kFirst) return {512, 32, 8, true};
  if (kind == PassKind::kMiddle) return {1024, 16, 8, true};
  return {512, 32, 8, false};
}

// Bytes of shared memory for one staged record.
constexpr int radix_staged_bytes(int key_bytes, bool indexed, PassKind kind) {
  if (key_bytes == 8) return indexed ? 12 : 8;
  return indexed && (key_bytes == 4 || kind != PassKind::kFirst) ? 8 : 4;
}

// Whether slots count and place records by two atomics (cuda/radix/placed_tile.cuh), instead of keeping a rank. H200, 2^26 float32 with
// indices: middle slots 372 us by ranks and 341 placed, the last one 473 and 438, but the first one 305 and 332.
constexpr bool placed_by_counters(int key_bytes, bool indexed, PassKind kind) {
  return key_bytes == 8 || (key_bytes == 4 && !(indexed && kind == PassKind::kFirst));
}

// Those stage records with a pad after every 2^shift of them, not more than a bin has on average.
constexpr int radix_pad_shift(int tile_items) {
  int shift = 5;
  while (tile_items >> (shift + 1) >= kRadixBins) ++shift;
  return shift;
}
constexpr int radix_pads(int tile_items) {
  return tile_items >> radix_pad_shift(tile_items);
}

// One histogram of 256 counters per warp or part of it, 256 offsets, a few words, and the records.
constexpr int kPassScratchBytes = 1024 + 64;
constexpr int radix_shared_bytes(int key_bytes, bool indexed, TileClass tile_class, PassKind kind, bool placed) {
  const TileShape shape = radix_tile_shape(key_bytes, indexed, tile_class, kind);
  const int pads = placed ? radix_pads(shape.tile_items()) : 0;
  return shape.threads / shape.lanes * kRadixBins * 4 + kPassScratchBytes +
         (shape.tile_items() + pads) * radix_staged_bytes(key_bytes, indexed, kind);
}
constexpr int radix_shared_bytes(int key_bytes, bool indexed, TileClass tile_class, PassKind kind) {
  return radix_shared_bytes(key_bytes, indexed, tile_class, kind, placed_by_counters(key_bytes, indexed, kind));
}

struct RadixPlan {
  int passes = 0;  // slots; 0 when no bit is to be sorted by (the outputs are then a copy of the keys and 0, 1, 2, ...)
  bool indexed = true;
  bool wide = false;               // 64-bit positions: rows beyond kMaxNarrowLength
  bool may_use_low_words = false;  // 64-bit integers: sorted as 32-bit keys if the histogram finds one high word in each row
  ByteSortPlan low_bytes;          // where used: integers may be sorted by their low bytes (cuda/radix/low_bytes.h)
  CountingPlan counting;           // where used: 16-bit keys alone, by counting: no slots
  ByteSortPlan byte_sort;          // where used: 8-bit keys with indices, in one row: no slots
  HalfSortPlan half_sort;          // where used: 16-bit keys with indices, in one row: no slots
  BoolKeysPlan bool_keys;          // where used: bools alone, in one row: no slots
  TileClass tile_class = TileClass::kLarge;
  int64_t tiles_per_row[3] = {0, 0, 0};  // by PassKind
  int grid[3] = {0, 0, 0};               // persistent blocks
  int histogram_grid = 0;
  bool previewed = false;       // some keys are looked at before all are counted (cuda/radix/digit_preview.h)
  int64_t histogram_chunk = 0;  // keys of one row that a histogram block takes at a time
  // 64-bit keys: how many are looked at to find out whether two to four leading digits tell nearly all different keys apart, so that
  // these are enough (cuda/radix/leading_digits.h). 0: not asked.
  int high_word_samples = 0;
  int64_t look_back_words = 0;  // per table
  int64_t cleared_bytes = 0;    // at the start of the tables: zeroed before the first kernel
  bool cleared_before = false;  // by the caller, who has also said in the control words whether the sort is called off

  // The first index whose upper half the tables of the last slot borrow (cuda/radix/borrowed_indices.cuh). -1: all lie at the start of the
  // workspace.
  int64_t borrowed_begin = -1;
  // Where those of the other slots begin then, a multiple of 256 bytes: in the key output (32-bit keys) or the index output (64-bit keys).
  int64_t lent_offset = 0;
  // Byte offsets into the tables, each a multiple of 256. -1: not there.
  int64_t control_offset = 0;
  int64_t bins_offset = -1;
  int64_t look_back_offset[2] = {-1, -1};

  // Byte offsets into the workspace, each a multiple of 256.
  int64_t records_offset = -1;         // records of the workspace buffer (64-bit and wide keys: keys alone)
  int64_t record_indices_offset = -1;  // their indices where they are kept apart
  int64_t second_records_offset = -1;  // keys of the other buffer where the outputs can not hold them, or of its records the last piece
  bool in_pieces = false;              // the other buffer: record_pieces.h
  int64_t scratch_keys_offset = -1;    // sorted keys that nobody wants but the sort
  int64_t workspace_bytes = 0;

  // Is there a sort of its own for these keys?
  bool without_slots() const { return counting.used || byte_sort.used || half_sort.used || bool_keys.used; }

  int64_t tiles(PassKind kind, int64_t rows) const { return rows * tiles_per_row[static_cast<int>(kind)]; }

  // Control words, bins and the look-back table, without gaps.
  int64_t last_table_words(int64_t rows) const {
    return kControlWords + rows * passes * kRadixBins + tiles(PassKind::kLast, rows) * kRadixBins;
  }
};

namespace radix_plan_detail {

constexpr int64_t kAlignment = 256;
constexpr int64_t kControlBytes = kControlWords * 4;
constexpr int kWideTileItems = 4096;
constexpr int kWideThreads = 256;

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Cuts slices off a block of memory.
struct Slicer {
  int64_t used = 0;

  int64_t take(int64_t bytes) {
    const int64_t offset = ceil_div(used, kAlignment) * kAlignment;
    used = offset + bytes;
    return offset;
  }
};

// Lets the tables, `tables` bytes of which the first `moved` are kept for the last slot, lie in the outputs if there is room. 32-bit keys:
// the key output has them until the last slot, then upper halves of the indices. 64-bit keys: the second half of the index output has them
// (record indices take the first), then upper halves behind what is moved.
inline void borrow_outputs(const SortProblem& problem, int64_t tables, int64_t moved, RadixPlan& plan) {
  const bool may_borrow = last_slot_takes_all(problem.key.bytes, plan.indexed) && !plan.wide && plan.passes > 1;
  if (!may_borrow || problem.index_bytes != 8 || problem.keys_out == nullptr) return;
  const int64_t numel = problem.numel();
  const int64_t offset = problem.key.bytes == 4 ? 0 : ceil_div(numel * 4, kAlignment) * kAlignment;
  if (offset + tables > numel * problem.key.bytes) return;
  constexpr int64_t kIndices = 32;
  const int64_t begin = numel - ceil_div(plan.last_table_words(problem.rows), kIndices) * kIndices;
  if (begin < 0 || (problem.key.bytes == 8 && offset + moved > begin * 8)) return;
  plan.borrowed_begin = begin;
  plan.lent_offset = offset;
}

// Work of the slowest SM, in items: tiles are dealt out whole and a ragged tile costs as much as a full one.
inline double slowest_items(const SortProblem& problem, const DeviceTraits& device, bool indexed, TileClass tile_class) {
  const TileShape shape = radix_tile_shape(problem.key.bytes, indexed, tile_class, PassKind::kFirst);
  const int64_t tiles = problem.rows * ceil_div(problem.length, shape.tile_items());
  return static_cast<double>(ceil_div(tiles, device.sm_count)) * shape.tile_items();
}

inline TileClass choose_tile_class(const SortProblem& problem, const DeviceTraits& device, bool indexed) {
  for (PassKind kind : {PassKind::kFirst, PassKind::kMiddle, PassKind::kLast}) {
    if (radix_shared_bytes(problem.key.bytes, indexed, TileClass::kLarge, kind) > device.shared_bytes_per_block) return TileClass::kMedium;
  }
  // Short runs cost a quarter (H200, 2^26 pairs, raw bits instead of codes: tiles of 512x40 1587 us, of 512x16 twice per SM 2015 us).
  constexpr double kMediumPenalty = 1.25;
  const double large = slowest_items(problem, device, indexed, TileClass::kLarge);
  const double medium = slowest_items(problem, device, indexed, TileClass::kMedium) * kMediumPenalty;
  return medium < large ? TileClass::kMedium : TileClass::kLarge;
}

}  // namespace radix_plan_detail

// A first look at a few keys takes 7 us, and spares sorted keys 40 of 433 (float32) and 87 of 731 (int64), ids below 64 18 of 819 (int64;
// H200, 2^26 with index).
constexpr int64_t kMinPreviewedLength = int64_t{1} << 25;

// The largest table of samples fits the shared memory of the histogram; fewer than 4096 keys are not worth the question.
constexpr int kMostHighWordSamples = 8192;

// Twice the square root of the length. Only sorts of whole keys in one row take this way, and their outputs must hold the keys.
inline int high_word_samples(const SortProblem& problem, bool wide) {
  if (problem.key.bytes != 8 || problem.rows != 1 || wide || problem.keys_out == nullptr) return 0;
  if (!problem.whole_key() || problem.length < 4096) return 0;
  int64_t samples = 1024;
  while (samples < kMostHighWordSamples && samples * samples < 4 * problem.length) samples *= 2;
  return static_cast<int>(samples);
}

inline bool previewed(const SortProblem& problem) {
  return problem.key.bytes >= 4 && problem.rows == 1 && problem.whole_key() && problem.length >= kMinPreviewedLength;
}

// For the outputs that there are. `lends`: tables may lie in them.
inline RadixPlan plan_radix_outputs(const SortProblem& problem, const DeviceTraits& device, int64_t max_narrow_length, bool lends) {
  using namespace radix_plan_detail;
  if (problem.length <= max_narrow_length) {
    RadixPlan plan;
    plan.grid[0] = device.sm_count;
    plan.counting = plan_counting_sort(problem, device);
    plan.byte_sort = plan_byte_sort(problem, device, kControlBytes);
    plan.half_sort = plan_half_sort(problem, device);
    plan.bool_keys = plan_bool_keys(problem, device);
    plan.indexed = problem.indices_out != nullptr;
    // At most one is used; the others need no memory.
    plan.workspace_bytes =
        plan.counting.workspace_bytes + plan.byte_sort.workspace_bytes + plan.half_sort.workspace_bytes + plan.bool_keys.workspace_bytes;
    if (plan.without_slots()) return plan;
  }
  RadixPlan plan;
  const int key_bytes = problem.key.bytes;
  const int64_t numel = problem.numel();
  plan.passes = static_cast<int>(ceil_div(problem.end_bit - problem.begin_bit, kRadixBits));
  plan.indexed = problem.indices_out != nullptr;
  plan.wide = problem.length > max_narrow_length;
  plan.tile_class = plan.wide ? TileClass::kLarge : choose_tile_class(problem, device, plan.indexed);

  plan.high_word_samples = high_word_samples(problem, plan.wide);
  plan.previewed = previewed(problem);
  const bool integers = problem.key.kind == KeyKind::kUnsigned || problem.key.kind == KeyKind::kSigned;
  plan.may_use_low_words = key_bytes == 8 && integers && problem.whole_key() && !plan.wide;

  int64_t most_tiles = 0;
  for (PassKind kind : {PassKind::kFirst, PassKind::kMiddle, PassKind::kLast}) {
    const int slot = static_cast<int>(kind);
    const int tile_items = plan.wide ? kWideTileItems : radix_tile_shape(key_bytes, plan.indexed, plan.tile_class, kind).tile_items();
    plan.tiles_per_row[slot] = ceil_div(problem.length, tile_items);
    const int64_t tiles = plan.tiles(kind, problem.rows);
    const int64_t blocks_per_sm = plan.wide ? 2 : 1;
    plan.grid[slot] = static_cast<int>(tiles < device.sm_count * blocks_per_sm ? tiles : device.sm_count * blocks_per_sm);
    if (tiles > most_tiles) most_tiles = tiles;
  }

  // Histogram blocks take whole chunks: small enough to fill the GPU, large enough (64 KB) to keep it busy.
  const int64_t largest_chunk = 65536 / key_bytes;
  const int64_t fair_share = ceil_div(numel, static_cast<int64_t>(device.sm_count) * 4);
  int64_t chunk = 4096;
  while (chunk < largest_chunk && chunk < fair_share) chunk *= 2;
  plan.histogram_chunk = chunk;
  const int64_t chunks = problem.rows * ceil_div(problem.length, chunk);
  plan.histogram_grid = static_cast<int>(chunks < device.sm_count ? chunks : device.sm_count);

  const int64_t word = plan.wide ? 8 : 4;
  Slicer tables;
  plan.control_offset = tables.take(kControlBytes);
  if (plan.passes > 0) plan.bins_offset = tables.take(problem.rows * plan.passes * kRadixBins * word);
  plan.cleared_bytes = tables.used;
  plan.look_back_words = most_tiles * kRadixBins;
  for (int table = 0; table < 2 && table < plan.passes; ++table) plan.look_back_offset[table] = tables.take(plan.look_back_words * word);
  if (lends) borrow_outputs(problem, tables.used, plan.cleared_bytes, plan);
  // The blocks of the histogram scan their tables.
  if (plan.previewed && integers && plan.borrowed_begin >= 0 && plan.histogram_grid >= kTableScanBlocks)
    plan.low_bytes = plan_low_bytes(problem, device);
  // A second sort (cuda/radix/high_word_ties.h) needs both the tables and what they were moved to.
  if (plan.borrowed_begin >= 0 && plan.lent_offset + tables.used > plan.borrowed_begin * 8) plan.high_word_samples = 0;

  Slicer slicer;
  if (plan.borrowed_begin < 0) slicer = tables;
  if (plan.passes >= 2) {
    const bool apart = key_bytes == 8 || plan.wide;  // key and index in two arrays
    const int record_bytes = plan.indexed && !apart ? 8 : key_bytes;
    plan.records_offset = slicer.take(numel * record_bytes);
    if (plan.indexed && apart) plan.record_indices_offset = slicer.take(numel * word);
    // Wide sorts bounce between the workspace and the outputs from the second digit on; the others from the third.
    if (plan.passes >= 3 || plan.wide) {
      if (plan.indexed && !apart) {
        plan.in_pieces = problem.index_bytes < 8;
        if (plan.in_pieces)
          plan.second_records_offset = slicer.take(most_records_left(numel, problem.keys_out != nullptr) * kPieceRecordBytes);
      } else if (problem.keys_out == nullptr) {
        plan.second_records_offset = slicer.take(numel * record_bytes);
      }
    }
  }
  plan.workspace_bytes = slicer.used;
  return plan;
}

inline SortProblem with_keys(const SortProblem& problem, void* keys_out) {
  SortProblem sort = problem;
  sort.keys_out = keys_out;
  return sort;
}

// Needs rows >= 1, length >= 1, 0 <= begin_bit <= end_bit <= key bits, and at least one output. `max_narrow_length` is for tests of the
// wide form.
//
// Indices alone of 64-bit keys: the records need the memory of the keys in the workspace anyway, and a sort that leaves its keys there may
// do with their leading digits. H200, 2^26: random int64 4479 us without and 2343 with, ids below 2^20 1206 and 1216, sorted 305 and 320.
inline RadixPlan plan_radix_sort(const SortProblem& problem, const DeviceTraits& device, int64_t max_narrow_length = kMaxNarrowLength) {
  char keys = 0;
  const SortProblem sort = with_keys(problem, &keys);
  if (problem.keys_out != nullptr || high_word_samples(sort, problem.length > max_narrow_length) == 0) {
    return plan_radix_outputs(problem, device, max_narrow_length, true);
  }
  RadixPlan plan = plan_radix_outputs(sort, device, max_narrow_length, false);
  radix_plan_detail::Slicer slicer{plan.workspace_bytes};
  plan.scratch_keys_offset = slicer.take(problem.numel() * problem.key.bytes);
  plan.workspace_bytes = slicer.used;
  return plan;
}

}  // namespace gpusort
