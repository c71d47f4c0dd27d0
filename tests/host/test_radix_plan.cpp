// The radix plan: passes, tiles, slices of the workspace, memory budgets. Pure arithmetic, checked against what the contract promises.
#include "../../csrc/plan/radix_plan.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "check.h"
#include "problems.h"

using namespace gpusort;

namespace {

constexpr PassKind kKinds[] = {PassKind::kFirst, PassKind::kMiddle, PassKind::kLast};

using Slices = std::vector<std::pair<int64_t, int64_t>>;  // offset, bytes

// They are aligned, inside `bytes`, in order and apart.
int64_t check_slices(const Slices& slices) {
  int64_t end = 0;
  for (auto [offset, bytes] : slices) {
    if (offset < 0) continue;
    CHECK(offset % 256 == 0);
    CHECK(offset >= end);
    end = offset + bytes;
  }
  return end;
}

// The tables lie in the workspace, or in the outputs where no records are and later in the upper halves of the last indices. The records
// lie in the workspace. Nothing overlaps.
void check_layout(const SortProblem& problem, RadixPlan plan) {
  if (plan.scratch_keys_offset >= 0) {  // behind the workspace of a sort with its keys, whose results lend nothing
    CHECK(problem.key.bytes == 8 && problem.keys_out == nullptr && plan.high_word_samples > 0 && plan.borrowed_begin < 0);
    CHECK(plan.scratch_keys_offset % 256 == 0 && plan.workspace_bytes == plan.scratch_keys_offset + problem.numel() * 8);
    const SortProblem sort = with_keys(problem, &wanted_keys);
    plan.workspace_bytes = plan_radix_outputs(sort, DeviceTraits{}, kMaxNarrowLength, false).workspace_bytes;
    CHECK(plan.workspace_bytes <= plan.scratch_keys_offset);
    plan.scratch_keys_offset = -1;
    return check_layout(sort, plan);
  }
  const int64_t word = plan.wide ? 8 : 4;
  const int64_t numel = problem.numel();
  const bool apart = problem.key.bytes == 8 || plan.wide;
  const int64_t record = plan.indexed && !apart ? 8 : problem.key.bytes;
  const Slices tables = {{plan.control_offset, 256},
                         {plan.bins_offset, problem.rows * plan.passes * 256 * word},
                         {plan.look_back_offset[0], plan.look_back_words * word},
                         {plan.look_back_offset[1], plan.look_back_words * word}};
  CHECK(plan.in_pieces == (problem.key.bytes == 4 && plan.indexed && problem.index_bytes == 4 && plan.passes >= 3 && !plan.wide));
  const int64_t second = plan.in_pieces ? most_records_left(numel, problem.keys_out != nullptr) : numel;
  const Slices records = {
      {plan.records_offset, numel * record}, {plan.record_indices_offset, numel * word}, {plan.second_records_offset, second * record}};
  const int64_t table_bytes = check_slices(tables);
  if (plan.borrowed_begin < 0) {
    Slices all = tables;
    all.insert(all.end(), records.begin(), records.end());
    CHECK(check_slices(all) == plan.workspace_bytes);
  } else {
    CHECK(check_slices(records) == plan.workspace_bytes);
    const int64_t borrowed = numel - plan.borrowed_begin;
    const int64_t last_tiles = problem.rows * plan.tiles_per_row[static_cast<int>(PassKind::kLast)];
    CHECK(problem.key.bytes >= 4 && problem.index_bytes == 8 && plan.indexed && problem.keys_out != nullptr && !plan.wide);
    CHECK(plan.passes >= 2);  // else one slot would need them in both places
    CHECK(plan.lent_offset % 256 == 0);
    if (problem.key.bytes == 4) CHECK(plan.lent_offset + table_bytes <= numel * 4);  // of the key output
    if (problem.key.bytes == 8) {                                                    // of the index output, behind the indices of records
      CHECK(plan.lent_offset >= numel * 4);
      CHECK(plan.lent_offset + table_bytes <= numel * 8);
      CHECK(plan.lent_offset + plan.bins_offset + problem.rows * plan.passes * 256 * word <= plan.borrowed_begin * 8);
    }
    CHECK(borrowed >= 64 + problem.rows * plan.passes * 256 + last_tiles * 256);
    CHECK(borrowed <= numel);
  }
  CHECK(plan.cleared_bytes <= (plan.look_back_offset[0] >= 0 ? plan.look_back_offset[0] : 256));
  if (plan.bins_offset >= 0) CHECK(plan.cleared_bytes >= plan.bins_offset + problem.rows * plan.passes * 256 * word);
}

void check_tiles(const SortProblem& problem, const DeviceTraits& device, const RadixPlan& plan) {
  int64_t most = 0;
  for (PassKind kind : kKinds) {
    const int slot = static_cast<int>(kind);
    const TileShape shape = radix_tile_shape(problem.key.bytes, plan.indexed, plan.tile_class, kind);
    const int64_t tile = plan.wide ? 4096 : shape.tile_items();
    CHECK(plan.tiles_per_row[slot] * tile >= problem.length);
    CHECK((plan.tiles_per_row[slot] - 1) * tile < problem.length);
    CHECK(plan.grid[slot] >= 1);
    CHECK(plan.grid[slot] <= device.sm_count * (plan.wide ? 2 : 1));
    CHECK(plan.grid[slot] <= plan.tiles(kind, problem.rows));
    if (plan.tiles(kind, problem.rows) > most) most = plan.tiles(kind, problem.rows);
    if (!plan.wide) CHECK(radix_shared_bytes(problem.key.bytes, plan.indexed, plan.tile_class, kind) <= device.shared_bytes_per_block);
  }
  CHECK(plan.look_back_words == most * 256);
  if (problem.key.bytes == 8 && !plan.wide) {  // the same tables serve a sort by the low words, whose tiles are those of 32-bit keys
    for (PassKind kind : kKinds) {
      const int64_t tile = radix_tile_shape(4, plan.indexed, plan.tile_class, kind).tile_items();
      CHECK(problem.rows * ((problem.length + tile - 1) / tile) <= most);
    }
  }
  CHECK(plan.histogram_grid >= 1 && plan.histogram_grid <= device.sm_count);
  CHECK(plan.histogram_chunk >= 4096 && plan.histogram_chunk * problem.key.bytes <= 65536);
}

// 65536 counters, the ends of as many runs, their patterns, and for floats what is known of zeros and NaNs. Every vector has its block.
void check_counting(const SortProblem& problem, const DeviceTraits& device, const RadixPlan& plan) {
  const CountingPlan& counting = plan.counting;
  const Slices slices = {{0, 1024},
                         {counting.counts_offset, 65536 * 4},
                         {counting.runs_offset, 65536 * 4},
                         {counting.patterns_offset, 65536 * 2},
                         {counting.findings_offset, int64_t{counting.blocks} * 12},
                         {counting.lists_offset, counting.blocks * counting.list_capacity * 4}};
  CHECK(check_slices(slices) <= counting.workspace_bytes && counting.workspace_bytes == plan.workspace_bytes);
  CHECK(counting.cleared_bytes == counting.counts_offset + 65536 * 4);
  CHECK(counting.blocks >= 1 && counting.blocks <= device.sm_count && plan.grid[0] == device.sm_count);
  CHECK(counting.vectors_per_block % 32 == 0);
  CHECK(counting.blocks * counting.vectors_per_block >= problem.length / 8);
  CHECK((counting.blocks - 1) * counting.vectors_per_block < problem.length / 8);
  CHECK((counting.list_capacity != 0) == (problem.key.kind == KeyKind::kFloat));
  CHECK(plan.workspace_bytes < (1 << 20) + problem.length * 2 / 32);  // lists: at most a 32nd of the keys
}

// Every vector has its block, wherever the first key lies.
void check_bool_keys() {
  const DeviceTraits device;
  SortProblem problem = make_problem(1, 1, 1, true, 0);
  problem.key.kind = KeyKind::kBool;
  for (int64_t length : {int64_t{1} << 17, int64_t{1} << 20, (int64_t{1} << 20) + 15, int64_t{1} << 26, kMaxNarrowLength}) {
    problem.length = length;
    const RadixPlan plan = plan_radix_sort(problem, device);
    CHECK(plan.bool_keys.used && plan.without_slots() && !plan.indexed);
    CHECK(plan.bool_keys.vectors_per_block % 32 == 0);
    CHECK(plan.bool_keys.blocks * plan.bool_keys.vectors_per_block >= (length + 15 + 15) / 16);
    CHECK(plan.bool_keys.blocks >= 1 && plan.bool_keys.blocks <= 2 * device.sm_count);
    CHECK(plan.workspace_bytes == plan.bool_keys.blocks * 4);
  }
  for (int64_t length : {(int64_t{1} << 17) - 1, kMaxNarrowLength + 1}) {
    problem.length = length;
    CHECK(!plan_radix_sort(problem, device).bool_keys.used);
  }
  problem.length = 1 << 20;
  problem.rows = 2;
  CHECK(!plan_radix_sort(problem, device).bool_keys.used);
  problem.rows = 1;
  problem.end_bit = 7;
  CHECK(!plan_radix_sort(problem, device).bool_keys.used);
  problem = make_problem(1, 1, 1 << 20, true, 8);
  problem.key.kind = KeyKind::kBool;
  CHECK(!plan_radix_sort(problem, device).bool_keys.used);
  problem = make_problem(2, 1, (1 << 26) + 3, true, 0);
  problem.key.kind = KeyKind::kFloat;
  check_counting(problem, device, plan_radix_sort(problem, device));
  problem.length = 1 << 20;
  check_counting(problem, device, plan_radix_sort(problem, device));
}

// One partition: its tables, and the tiles in groups.
void check_byte_sort(const SortProblem& problem, const DeviceTraits& device, const RadixPlan& plan) {
  const ByteSortPlan& sort = plan.byte_sort;
  const int64_t tile = sort.tile_items, slots = int64_t{device.sm_count} * kByteSortBlocksPerSm;
  // A halo only where blocks take several tiles.
  CHECK(sort.halo_warps == (problem.length + 15 > slots * kMostByteSortRounds * kByteSortThreads ? 1 : 0));
  CHECK(tile == (int64_t{sort.rounds} * kByteSortThreads / 16) * (16 - sort.halo_warps));
  CHECK(plan.control_offset == 0 && plan.workspace_bytes == sort.workspace_bytes);
  CHECK(sort.rounds >= 4 && sort.rounds % 4 == 0 && sort.rounds <= kMostByteSortRounds);
  CHECK(sort.tiles * tile >= problem.length + 15 && (sort.tiles - 1) * tile < problem.length + 15);  // wherever the first key lies
  CHECK(sort.groups * sort.tiles_per_group >= sort.tiles && (sort.groups - 1) * sort.tiles_per_group < sort.tiles);
  CHECK(sort.groups <= slots);
  CHECK(byte_sort_shared_bytes(sort.rounds) <= device.shared_bytes_per_block);
  const Slices slices = {{0, 256},
                         {sort.bins_offset, 1024},
                         {sort.group_tables_offset, sort.groups * 1024},
                         {sort.tile_tables_offset, sort.tiles * 1024},
                         {sort.group_patterns_offset, sort.groups * 4}};
  CHECK(check_slices(slices) == plan.workspace_bytes);
}

// Two partitions: their tables, and 6 bytes an element between them.
void check_half_sort(const SortProblem& problem, const DeviceTraits& device, const RadixPlan& plan) {
  const HalfSortPlan& sort = plan.half_sort;
  const int64_t length = problem.length;
  CHECK(plan.control_offset == 0 && plan.workspace_bytes == sort.workspace_bytes);
  Slices slices = {{0, 256}};
  if (sort.grid.threads != 0) {
    const HalfShape shape = sort.grid;
    CHECK(sort.first_grid <= device.sm_count && sort.first_grid * shape.tile_items() >= length);
    CHECK((sort.first_grid - 1) * shape.tile_items() < length);
    CHECK(half_shared_bytes(HalfStep::kHigh, shape) <= device.shared_bytes_per_block);
    slices.insert(slices.end(), {{sort.grid_counts_offset, sort.first_grid * 1024}, {sort.grid_unsorted_offset, sort.first_grid * 4}});
  } else {
    for (HalfStep step : {HalfStep::kLow, HalfStep::kHigh, HalfStep::kPatterns}) {
      const int64_t tile = half_shape(step).tile_items(), tiles = sort.tiles[static_cast<int>(step)];
      CHECK(tiles * tile >= length && (tiles - 1) * tile < length);
      const int grid = step == HalfStep::kHigh ? sort.last_grid : sort.first_grid;
      CHECK(grid == std::min<int64_t>(device.sm_count, std::max(tiles, int64_t{grid})));
      CHECK(half_shared_bytes(step, half_shape(step)) <= device.shared_bytes_per_block);
      CHECK(half_shared_bytes(HalfStep::kHigh, half_last_shape(sort.last_threads)) <= device.shared_bytes_per_block);
      const int64_t table = sort.look_back_offset[step == HalfStep::kHigh];
      CHECK(table + tiles * 1024 <= (step == HalfStep::kHigh ? sort.indices_offset : sort.look_back_offset[1]));
    }
    CHECK(sort.histogram_grid >= 1 && sort.histogram_grid <= device.sm_count);
    CHECK(sort.cleared_bytes >= sort.bins_offset + 3 * 1024 && sort.cleared_bytes <= sort.patterns_offset);
    slices.insert(
        slices.end(),
        {{sort.bins_offset, 3 * 1024}, {sort.patterns_offset, 8192}, {sort.look_back_offset[0], 1024}, {sort.look_back_offset[1], 1024}});
  }
  slices.insert(slices.end(), {{sort.indices_offset, length * 4}, {sort.keys_offset, length * 2}});
  CHECK(check_slices(slices) == plan.workspace_bytes);
  if (length >= 1 << 20) CHECK(plan.workspace_bytes * 10 <= length * 65);
}

void check_all_shapes() {
  const DeviceTraits device;
  for (int key_bytes : {1, 2, 4, 8}) {
    for (auto [rows, length] : std::vector<std::pair<int64_t, int64_t>>{{1, 1},
                                                                        {1, 2},
                                                                        {1, 20000},
                                                                        {3, 5},
                                                                        {1, 1 << 20},
                                                                        {1, 1 << 26},
                                                                        {1, (1 << 26) + 1},
                                                                        {256, 262144},
                                                                        {64, 1 << 20},
                                                                        {4, 1 << 24},
                                                                        {8192, 20000},
                                                                        {70000, 32768},
                                                                        {1, (int64_t{1} << 31) + 5},
                                                                        {1, kMaxNarrowLength},
                                                                        {1, kMaxNarrowLength + 1}}) {
      for (bool keys : {true, false}) {
        for (int index_bytes : {0, 4, 8}) {
          if (!keys && index_bytes == 0) continue;
          const SortProblem problem = make_problem(key_bytes, rows, length, keys, index_bytes);
          const RadixPlan plan = plan_radix_sort(problem, device);
          const int64_t shortest_counted = int64_t{1} << (rows == 1 ? 20 : 22);
          CHECK(plan.counting.used == (key_bytes == 2 && index_bytes == 0 && length >= shortest_counted && length <= kMaxNarrowLength));
          if (plan.counting.used) {
            check_counting(problem, device, plan);
            continue;
          }
          CHECK(plan.byte_sort.used ==
                (key_bytes == 1 && index_bytes != 0 && rows == 1 && length >= kMinByteSortLength && length <= kMaxNarrowLength));
          if (plan.byte_sort.used) {
            check_byte_sort(problem, device, plan);
            continue;
          }
          CHECK(plan.half_sort.used == (key_bytes == 2 && index_bytes != 0 && rows == 1 && length <= kMaxNarrowLength));
          if (plan.half_sort.used) {
            check_half_sort(problem, device, plan);
            continue;
          }
          CHECK(plan.passes == key_bytes);
          CHECK(plan.wide == (length > kMaxNarrowLength));
          CHECK(plan.indexed == (index_bytes != 0));
          check_layout(problem, plan);
          check_tiles(problem, device, plan);
        }
      }
    }
  }
}

// The contract: at most 8 bytes per element beyond the outputs for 32-bit keys, 12 for 64-bit, with int64 indices. Where the tables do
// not lie in the outputs they take up to a fifth of a byte.
void check_budget() {
  const DeviceTraits device;
  auto workspace = [&](int key_bytes, int64_t rows, int64_t length, bool keys, int index_bytes) {
    return plan_radix_sort(make_problem(key_bytes, rows, length, keys, index_bytes), device).workspace_bytes;
  };
  auto extra = [&](int key_bytes, bool keys, int index_bytes) {
    return static_cast<double>(workspace(key_bytes, 1, 1 << 26, keys, index_bytes)) / (1 << 26);
  };
  for (int64_t length = 1 << 18; length <= int64_t{1} << 31; length += length / 5 + 1) {
    CHECK(workspace(4, 1, length, true, 8) == 8 * length);
    CHECK(workspace(8, 1, length, true, 8) <= 12 * length + 256);  // two arrays, each from a multiple of 256 on
    CHECK(workspace(8, 1, length / 32 * 32, true, 8) == 12 * (length / 32 * 32));
  }
  CHECK(workspace(4, 64, 1 << 20, true, 8) == 8 << 26);
  CHECK(workspace(4, 1024, 1 << 16, true, 8) == 8 << 26);
  CHECK(workspace(4, 2000, 20000, true, 8) == 8 * 2000 * 20000);
  constexpr double kTables = 0.2;
  CHECK(workspace(8, 64, 1 << 20, true, 8) == 12 << 26);
  CHECK(extra(8, true, 8) == 12);
  CHECK(extra(4, false, 8) <= 8 + kTables);
  CHECK(extra(8, true, 4) <= 12 + kTables);
  CHECK(extra(8, false, 8) <= 20 + kTables);
  CHECK(extra(2, true, 8) <= 8 + kTables);
  CHECK(extra(1, true, 8) <= kTables);
  CHECK(extra(1, true, 0) <= kTables);
  CHECK(extra(2, true, 0) <= 2 + kTables);
  CHECK(extra(4, true, 0) <= 4 + kTables);
  CHECK(extra(8, true, 0) <= 8 + kTables);
  CHECK(extra(4, true, 4) <= 8 + kTables);
  CHECK(extra(4, false, 4) <= 12 + kTables);
}

void check_windows() {
  const DeviceTraits device;
  SortProblem problem = make_problem(4, 1, 100000, true, 8);
  for (auto [begin, end, passes] : std::vector<std::tuple<int, int, int>>{
           {0, 0, 0}, {17, 17, 0}, {0, 1, 1}, {3, 11, 1}, {3, 12, 2}, {0, 20, 3}, {8, 32, 3}, {0, 32, 4}}) {
    problem.begin_bit = begin;
    problem.end_bit = end;
    const RadixPlan plan = plan_radix_sort(problem, device);
    CHECK(plan.passes == passes);
    check_layout(problem, plan);
  }
}

// The question of the high words is asked for whole 64-bit keys in one row, and only where a second sort finds room for its tables beside
// what they have been moved to.
void check_high_word_samples() {
  const DeviceTraits device;
  auto samples = [&](const SortProblem& problem) { return plan_radix_sort(problem, device).high_word_samples; };
  CHECK(samples(make_problem(8, 1, 4095, true, 8)) == 0);
  CHECK(samples(make_problem(8, 1, 4096, true, 8)) == 1024);
  CHECK(samples(make_problem(8, 1, 1 << 22, true, 0)) == 4096);
  CHECK(samples(make_problem(8, 1, 1 << 28, true, 4)) == kMostHighWordSamples);
  CHECK(samples(make_problem(8, 2, 1 << 22, true, 8)) == 0);
  CHECK(samples(make_problem(8, 1, 1 << 22, false, 8)) == 4096);  // of keys that the workspace holds
  for (const bool keys : {true, false}) {
    for (const int64_t rows : {1, 2}) {
      const RadixPlan plan = plan_radix_sort(make_problem(8, rows, 1 << 22, keys, 8), device);
      CHECK((plan.scratch_keys_offset >= 0) == (!keys && rows == 1));
    }
  }
  CHECK(samples(make_problem(4, 1, 1 << 22, true, 8)) == 0);
  SortProblem window = make_problem(8, 1, 1 << 22, true, 8);
  window.begin_bit = 1;
  CHECK(samples(window) == 0);
  for (int64_t length = 4096; length < int64_t{1} << 30; length += length / 3) {
    for (int index_bytes : {0, 4, 8}) {
      const RadixPlan plan = plan_radix_sort(make_problem(8, 1, length, true, index_bytes), device);
      if (plan.borrowed_begin < 0 || plan.high_word_samples == 0) continue;
      CHECK(plan.lent_offset + plan.look_back_offset[1] + plan.look_back_words * 4 <= plan.borrowed_begin * 8);
    }
  }
  for (int64_t length = 1 << 17; length < int64_t{1} << 31; length += length / 7) {
    for (int index_bytes : {0, 4, 8}) {
      CHECK(samples(make_problem(8, 1, length, true, index_bytes)) > 0);
    }
  }
}

// A first look before the count: of one long row of 32- or 64-bit keys.
void check_preview() {
  const DeviceTraits device;
  auto previewed = [&](const SortProblem& problem) { return plan_radix_sort(problem, device).previewed; };
  CHECK(previewed(make_problem(4, 1, kMinPreviewedLength, true, 8)));
  CHECK(previewed(make_problem(4, 1, kMinPreviewedLength, true, 0)));
  CHECK(previewed(make_problem(8, 1, kMinPreviewedLength, true, 8)));
  CHECK(!previewed(make_problem(4, 1, kMinPreviewedLength - 1, true, 8)));
  CHECK(!previewed(make_problem(4, 2, kMinPreviewedLength, true, 8)));
  CHECK(!previewed(make_problem(2, 1, kMinPreviewedLength, true, 8)));
  SortProblem window = make_problem(4, 1, kMinPreviewedLength, true, 8);
  window.end_bit = 31;
  CHECK(!previewed(window));
}

// Long rows of integers with int64 indices may turn out to differ in a byte alone. The bytes and their tables fit where records lie.
void check_low_bytes() {
  DeviceTraits device;
  auto plan_of = [&](int key_bytes, int64_t length, int index_bytes) {
    return plan_radix_sort(make_problem(key_bytes, 1, length, true, index_bytes), device);
  };
  for (int key_bytes : {4, 8}) {
    CHECK(!plan_of(key_bytes, kMinPreviewedLength - 1, 8).low_bytes.used);
    CHECK(!plan_of(key_bytes, kMinPreviewedLength, 4).low_bytes.used);
    CHECK(!plan_of(key_bytes, kMinPreviewedLength, 0).low_bytes.used);
    for (int index_bytes : {4, 8}) {  // indices alone
      CHECK(!plan_radix_sort(make_problem(key_bytes, 1, kMinPreviewedLength, false, index_bytes), device).low_bytes.used);
    }
    for (int64_t length = kMinPreviewedLength; length < kMaxNarrowLength; length += length / 5) {
      const RadixPlan plan = plan_of(key_bytes, length, 8);
      const ByteSortPlan& bytes = plan.low_bytes;
      CHECK(bytes.used && plan.borrowed_begin >= 0 && bytes.rounds > kShortByteSortRounds);
      CHECK(bytes.tiles * bytes.tile_items >= length && bytes.groups * bytes.tiles_per_group >= bytes.tiles);
      // Behind what mapped buckets ask of the records (sample_map.cuh): they may hold any bits.
      CHECK(low_bytes_offset(length) >= length * 4 && low_bytes_offset(length) % 256 == 0);
      const Slices slices = {{plan.records_offset + low_bytes_offset(length), length},
                             {plan.records_offset + bytes.bins_offset, 256 * 4},
                             {plan.records_offset + bytes.group_tables_offset, bytes.groups * 256 * 4},
                             {plan.records_offset + bytes.tile_tables_offset, bytes.tiles * 256 * 4}};
      CHECK(check_slices(slices) <= plan.records_offset + length * 8);
    }
    SortProblem floats = make_problem(key_bytes, 1, kMinPreviewedLength, true, 8);
    floats.key.kind = KeyKind::kFloat;
    CHECK(!plan_radix_sort(floats, device).low_bytes.used);
  }
  DeviceTraits part;  // of a GPU: its histogram has too few blocks to scan the tables
  part.sm_count = kTableScanBlocks - 1;
  CHECK(!plan_radix_sort(make_problem(4, 1, kMinPreviewedLength, true, 8), part).low_bytes.used);
  part.sm_count = kTableScanBlocks;
  CHECK(plan_radix_sort(make_problem(4, 1, kMinPreviewedLength, true, 8), part).low_bytes.used);
  device.shared_bytes_per_sm = 100 << 10;
  CHECK(!plan_of(8, kMinPreviewedLength, 8).low_bytes.used);
}

// For whole keys, and for GPUs whose SMs hold two blocks of it.
void check_byte_sort_choice() {
  DeviceTraits device;
  SortProblem window = make_problem(1, 1, 1 << 22, true, 8);
  CHECK(plan_radix_sort(window, device).byte_sort.used);
  window.end_bit = 7;
  CHECK(!plan_radix_sort(window, device).byte_sort.used);
  device.shared_bytes_per_sm = 167936;
  CHECK(!plan_radix_sort(make_problem(1, 1, 1 << 22, true, 8), device).byte_sort.used);
}

// For whole keys; in one launch while there is a tile for each SM.
void check_half_sort_choice() {
  DeviceTraits device;
  auto plan_of = [&](int64_t length) { return plan_radix_sort(make_problem(2, 1, length, true, 8), device).half_sort; };
  CHECK(plan_of(1 << 26).keeps_ranks && !plan_of((1 << 26) - 1).keeps_ranks);
  CHECK(plan_of(1 << 25).last_threads == 512 && plan_of((1 << 25) - 1).last_threads == 1024);
  CHECK(half_last_shape(512).tile_items() == half_last_shape(1024).tile_items());
  constexpr HalfShape kShort = {512, 16}, kLong = {1024, 16};
  CHECK(plan_of(1 << 20).grid == kShort && plan_of(132 * 8192).grid == kShort && plan_of(132 * 8192 + 1).grid == kLong);
  CHECK(plan_of(132 * 16384).grid == kLong && plan_of(132 * 16384 + 1).grid.threads == 0);
  SortProblem problem = make_problem(2, 1, 1 << 22, true, 8);
  device.shared_bytes_per_block = 166912;
  const RadixPlan plan = plan_radix_sort(problem, device);
  CHECK(plan.half_sort.used && plan.half_sort.grid.threads == 0);
  check_half_sort(problem, device, plan);
  device.shared_bytes_per_block = 101376;
  CHECK(!plan_radix_sort(problem, device).half_sort.used);
  problem.end_bit = 15;
  CHECK(!plan_radix_sort(problem, DeviceTraits{}).half_sort.used);
}

void check_tile_choice() {
  DeviceTraits device;
  auto tile_class = [&](int64_t rows, int64_t length) {
    return plan_radix_sort(make_problem(4, rows, length, true, 8), device).tile_class;
  };
  CHECK(tile_class(1, 1 << 26) == TileClass::kLarge);
  CHECK(tile_class(1, 1 << 24) == TileClass::kLarge);
  CHECK(tile_class(64, 1 << 20) == TileClass::kLarge);
  CHECK(tile_class(1, 1 << 20) == TileClass::kMedium);   // one tile per SM
  CHECK(tile_class(8192, 20000) == TileClass::kMedium);  // two large tiles would be 61 % full
  device.shared_bytes_per_block = 101376;                // consumer GPUs
  CHECK(tile_class(1, 1 << 26) == TileClass::kMedium);
}

}  // namespace

int main() {
  check_all_shapes();
  check_budget();
  check_windows();
  check_high_word_samples();
  check_preview();
  check_low_bytes();
  check_byte_sort_choice();
  check_half_sort_choice();
  check_bool_keys();
  check_tile_choice();
  return report();
}
