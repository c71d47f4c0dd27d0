// csrc/plan/grid_sort_plan.h: every plan must cover its rows, fit its device, and no input may overfill a block.
#include <cstdint>
#include <cstdio>
#include <initializer_list>

#include "../../csrc/plan/grid_sort_plan.h"
#include "check.h"
#include "problems.h"

namespace {

using namespace gpusort;

// What the kernels assume of a plan.
bool sane(const SortProblem& problem, const DeviceTraits& traits) {
  const GridSortPlan plan = plan_grid_sort(problem, traits);
  const int64_t longest = grid_sort_max_length(problem.key.bytes, problem.rows, traits);
  if (problem.length <= 0 || problem.length > longest) return plan.threads == 0;
  if (plan.threads == 0) return false;
  const int64_t tiles = plan.tiles_per_row, length = problem.length;
  const int tile = plan.threads * plan.items;
  bool good = plan.tile_length <= tile && tiles * plan.tile_length >= length && (tiles - 1) * plan.tile_length < length;
  good = good && tiles <= kGridMaxTilesPerRow && tiles * problem.rows <= kGridMaxTiles && plan.threads >= 2 * kGridMaxTilesPerRow;
  good = good && plan.blocks >= 1 && plan.blocks <= tiles * problem.rows;
  good = good && plan.shared_bytes <= plan.shared_limit && plan.shared_limit < traits.shared_bytes_per_block;
  const int64_t resident = plan.blocks > traits.sm_count ? (plan.blocks + traits.sm_count - 1) / traits.sm_count : 1;
  good = good && resident * (plan.shared_bytes + 4096) <= traits.shared_bytes_per_sm;

  int samples = 0;
  for (int i = 0; i < plan.tiles_per_row; ++i) {
    const int tile_length = static_cast<int>(std::min<int64_t>(plan.tile_length, length - static_cast<int64_t>(i) * plan.tile_length));
    const int offset = grid_sample_offset(i, plan.gap), count = grid_sample_count(tile_length, offset, plan.gap);
    good = good && count <= kGridSamples && offset >= 0 && offset < plan.gap;
    // Fewer than gap words before the first sample, between two, and after the last.
    if (count > 0) {
      const int first = grid_sample_place(0, offset, plan.gap), last = grid_sample_place(count - 1, offset, plan.gap);
      good = good && first >= 0 && first < plan.gap && last < tile_length && tile_length - 1 - last < plan.gap;
    } else {
      good = good && tile_length < plan.gap;
    }
    samples += count;
  }
  good = good && samples == plan.samples_per_row && (plan.tiles_per_row == 1 || samples >= plan.tiles_per_row);

  const int bound = grid_bucket_bound(plan);
  good = good && plan.bucket_capacity <= 2 * tile;
  if (bound > plan.bucket_capacity) {
    good = good && plan.piece_samples >= 1 && bound / plan.piece_gap <= plan.bucket_capacity;
    good = good && (plan.piece_samples + plan.tiles_per_row) * plan.piece_gap <= plan.bucket_capacity;
    good = good && (bound / plan.piece_gap - 1) / plan.piece_samples + 1 <= kGridMaxPieces;
  }
  // Words, splitters and the word that tells of a long bucket in the workspace; the samples of all tiles behind them, or in a result that
  // has room for them and the table, and that nobody writes while they are read again.
  const int64_t word = problem.key.bytes == 8 ? 16 : 8;
  good = good && plan.splitters_offset >= tiles * problem.rows * plan.tile_length * word && plan.splitters_offset % word == 0 &&
         plan.samples_offset % word == 0;
  good = good && plan.overflow_offset - plan.splitters_offset >= tiles * problem.rows * word && plan.overflow_offset % 4 == 0;
  const int64_t samples_end = plan.samples_offset + tiles * problem.rows * kGridSamples * word;
  const int64_t lent_end = plan.by_partition ? plan.table_offset + plan.blocks * tiles * 4 : samples_end;
  if (plan.in_results) {
    const int64_t room = problem.numel() * (problem.indices_out != nullptr ? problem.index_bytes : problem.key.bytes);
    good = good && lent_end + kGridLentAlignment <= room && plan.workspace_bytes >= plan.overflow_offset + 4;
    good = good && (problem.rows == 1 || tiles * problem.rows <= plan.blocks);
  } else {
    good = good && plan.samples_offset >= plan.overflow_offset + 4 && plan.workspace_bytes >= lent_end;
  }
  if (plan.by_partition) {
    good = good && problem.key.bytes == 4 && tiles > 1 && plan.blocks == tiles * problem.rows && plan.blocks <= traits.sm_count;
    good = good && tile < 1 << 16 && plan.words == GridWords::kPackedBuckets && plan.bucket_capacity == 2 * tile;
    good = good && plan.shared_bytes >= grid_spread_bytes(plan.threads, plan.items);
    good = good && plan.shared_bytes >= grid_shared_word_bytes(false, plan.threads * grid_partition_most_items(plan.threads, plan.items));
    good = good && plan.table_offset >= samples_end && plan.table_offset % 4 == 0;
    // Every sample is another key of the row.
    const int64_t count = tiles * kGridPartitionSamples;
    int64_t before = -1;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = grid_partition_sample_place(static_cast<uint32_t>(i), plan.sample_step);
      good = good && place > before && place < length;
      before = place;
    }
    good =
        good && count <= int64_t{plan.threads} * grid_partition_sample_items(plan.threads) && length - before <= 2 * (length / count + 1);
  }
  if (!good) std::printf("length %lld rows %lld bytes %d\n", (long long)length, (long long)problem.rows, problem.key.bytes);
  return good;
}

void test_plans() {
  DeviceTraits small;
  small.sm_count = 16;
  small.shared_bytes_per_block = 99 << 10;
  small.shared_bytes_per_sm = 100 << 10;
  small.compute_major = 8;
  for (const DeviceTraits& traits : {DeviceTraits{}, small}) {
    for (int key_bytes : {1, 2, 4, 8}) {
      for (int64_t rows : {1, 2, 3, 8, 32, 64, 500, 8192, 100000}) {
        for (int64_t length = 0; length < 300000; length += 1 + length / 37) CHECK(sane(make_problem(key_bytes, rows, length), traits));
        for (int64_t power = 1; power <= int64_t{1} << 40; power *= 2) {
          for (int64_t delta : {-1, 0, 1}) CHECK(sane(make_problem(key_bytes, rows, power + delta), traits));
        }
      }
    }
  }
  for (int64_t length = 1; length <= 262145; ++length) {
    if (!sane(make_problem(4, 1, length), DeviceTraits{})) CHECK(false);
  }
}

void test_reach() {
  CHECK(grid_sort_max_length(4, 1, DeviceTraits{}) == 262144);
  CHECK(grid_sort_max_length(8, 1, DeviceTraits{}) == 262144);
  CHECK(grid_sort_max_length(4, 64, DeviceTraits{}) == 262144);
  DeviceTraits old;
  old.compute_major = 7;
  CHECK(grid_sort_max_length(4, 1, old) == 0);
  CHECK(grid_sort_max_length(4, 0, DeviceTraits{}) == 0);
}

// Beyond the results: the words, 8 bytes or 16 for 64-bit keys, and a splitter to each tile.
void test_budget() {
  for (int key_bytes : {1, 2, 4, 8}) {
    for (int index_bytes : {4, 8}) {
      for (const bool keys : {true, false}) {
        for (int64_t length = 6144; length <= 262144; length += 1 + length / 50) {
          const GridSortPlan plan = plan_grid_sort(make_problem(key_bytes, 1, length, keys, index_bytes), DeviceTraits{});
          CHECK(plan.in_results && plan.workspace_bytes <= (key_bytes == 8 ? 16 : 8) * (length + 256) + 16);
        }
      }
    }
  }
  CHECK(plan_grid_sort(make_problem(4, 1, 65536, true, 0), DeviceTraits{}).in_results);  // keys alone
  CHECK(plan_grid_sort(make_problem(4, 4, 65536), DeviceTraits{}).in_results);
  CHECK(!plan_grid_sort(make_problem(8, 100, 65536), DeviceTraits{}).in_results);  // blocks have tiles of several rows
}

// Every plan's shape and words are among those that the launcher has.
void test_shapes_are_compiled() {
  for (int key_bytes : {1, 2, 4, 8}) {
    for (int64_t length = 1; length <= 262144; length += 1 + length / 50) {
      for (int64_t rows : {1, 8, 132}) {
        const GridSortPlan plan = plan_grid_sort(make_problem(key_bytes, rows, length), DeviceTraits{});
        if (plan.threads == 0) continue;
        if (plan.by_partition) {
          CHECK(plan.threads == 512 && (plan.items == 1 || plan.items == 2 || plan.items == 4));
          continue;
        }
        const bool longest = plan.threads == 512 && plan.items == 4, long_one = plan.threads == 512 && plan.items == 2;
        CHECK(longest || long_one || (plan.threads == 256 && plan.items <= 2));
        const GridWords short_words = longest ? GridWords::kPacked : long_one ? GridWords::kPackedBuckets : GridWords::kExact;
        CHECK(plan.words == (key_bytes == 8 ? GridWords::kPacked : key_bytes == 4 ? short_words : GridWords::kExact));
      }
    }
  }
}

// Whole rows of 32-bit keys, as long as each SM needs one tile at most.
void test_partition() {
  const auto by_partition = [](int key_bytes, int64_t rows, int64_t length) {
    return plan_grid_sort(make_problem(key_bytes, rows, length), DeviceTraits{}).by_partition;
  };
  CHECK(by_partition(4, 1, 1 << 16) && by_partition(4, 1, 1 << 18) && by_partition(4, 4, 1 << 16));
  CHECK(!by_partition(8, 1, 1 << 16) && !by_partition(2, 1, 1 << 16) && !by_partition(4, 8, 1 << 16) && !by_partition(4, 1, 500));
  DeviceTraits small;
  small.shared_bytes_per_block = 64 << 10;
  CHECK(!plan_grid_sort(make_problem(4, 1, 1 << 18), small).by_partition);
}

// Tests of the kernel force its rare path by a smaller capacity.
void test_smaller_capacity() {
  GridSortPlan plan = plan_grid_sort(make_problem(4, 1, 262144), DeviceTraits{});
  CHECK(set_grid_bucket_capacity(plan, 2048));
  CHECK((plan.piece_samples + plan.tiles_per_row) * plan.piece_gap <= 2048);
  CHECK(grid_bucket_bound(plan) / plan.piece_gap <= 2048);
  CHECK(!set_grid_bucket_capacity(plan, 64));
}

}  // namespace

int main() {
  test_plans();
  test_reach();
  test_budget();
  test_shapes_are_compiled();
  test_partition();
  test_smaller_capacity();
  return report();
}
