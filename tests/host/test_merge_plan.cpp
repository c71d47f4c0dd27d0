// Every plan covers every output exactly once, in pieces its kernel can take,
// whatever the shape.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "../../csrc/plan/merge_plan.h"
#include "check.h"

using namespace gpusort;

static MergeProblem problem_of(int key_bytes, int64_t rows, int64_t a_length, int64_t b_length) {
  MergeProblem problem;
  problem.key.bytes = key_bytes;
  problem.rows = rows;
  problem.a_length = a_length;
  problem.b_length = b_length;
  return problem;
}

static void check_plan(const MergeProblem& problem, MergeKernel kernel, const DeviceTraits& device) {
  const MergePlan plan = plan_merge(problem, kernel, device);
  const int64_t row_outputs = problem.a_length + problem.b_length;
  if (problem.rows == 0 || row_outputs == 0) {
    CHECK(plan.pieces_per_row == 0 && plan.workspace_bytes == 0);
    return;
  }
  CHECK(plan.kernel != MergeKernel::kAuto);
  if (kernel != MergeKernel::kAuto) CHECK(plan.kernel == kernel);
  CHECK(plan.piece > 0 && plan.pieces_per_row > 0);
  CHECK(plan.piece * plan.pieces_per_row >= row_outputs && plan.piece * (plan.pieces_per_row - 1) < row_outputs);
  CHECK(plan.threads % 32 == 0 && plan.threads > 0);
  const int64_t tile = int64_t{plan.threads} * plan.outputs_per_thread;
  if (plan.kernel == MergeKernel::kSequential) CHECK(plan.pieces_per_row == 1);
  if (plan.kernel == MergeKernel::kTiled) CHECK(plan.piece == tile && tile < 0x8000);
  if (plan.kernel == MergeKernel::kCircular) CHECK(plan.piece % tile == 0 && plan.piece <= (int64_t{1} << 28) && tile < 0x8000);
  CHECK(plan.own_pieces >= 0 && plan.own_pieces <= plan.pieces_per_row / 2);
  if (plan.own_pieces > 0) {
    CHECK(plan.cuts_in_workspace && plan.dependent_launch && problem.rows == 1 && plan.pieces_per_row < int64_t{1} << 30);
    CHECK(plan.loose_cuts || (plan.reach > 0 && plan.own_pieces % own_window_group(problem.key.bytes) == 0));
    CHECK(finds_own_pieces(MergeTile{plan.threads, plan.outputs_per_thread, 0}, problem.key.bytes));
  }
  if (plan.cuts_in_workspace) {
    CHECK(plan.workspace_bytes == problem.rows * (plan.pieces_per_row - 1) * 8);
  } else {
    CHECK(plan.workspace_bytes == 0 && !plan.loose_cuts);
    const bool by_blocks = plan.kernel == MergeKernel::kTiled || plan.kernel == MergeKernel::kCircular;
    CHECK(plan.pieces_per_row <= (by_blocks ? kSearchInBlockPieces : 1));
  }
}

// Where the windows of a plan lie, by the arithmetic of the kernel (cut_windows.cuh): those of neighbouring cuts share no place, neither of
// a nor of b, so that no two cuts in their windows contradict each other. Of all cuts, or every so many; of the first pieces, whose blocks
// find them, every so many too.
static void check_windows(const MergeProblem& problem, const MergePlan& plan, int64_t every = 1) {
  const int64_t every_own = own_window_group(problem.key.bytes);
  const int64_t row_outputs = problem.a_length + problem.b_length;
  const float share = static_cast<float>(static_cast<double>(problem.a_length) / static_cast<double>(row_outputs));
  int64_t a_before = 0, b_before = 0;
  for (int64_t cut = plan.own_pieces > 0 ? every_own : every; cut < plan.pieces_per_row; cut += cut < plan.own_pieces ? every_own : every) {
    const int64_t rank = cut * plan.piece, expected = static_cast<int64_t>(std::floor(static_cast<float>(rank) * share));
    const int64_t least = std::max<int64_t>(0, rank - problem.b_length), most = std::min(rank, problem.a_length);
    const int64_t middle = std::max(least, std::min(most, expected));
    const int64_t low = std::max(least, middle - plan.reach), high = std::min(most, middle + plan.reach);
    CHECK(low >= a_before && rank - high >= b_before);
    a_before = high;
    b_before = rank - low;
  }
  CHECK(problem.a_length >= a_before && problem.b_length >= b_before);
}

static void check_windowed_plans(const DeviceTraits& device) {
  for (int key_bytes : {1, 2, 4, 8}) {
    int windowed = 0;
    for (int64_t total = 1; total < (int64_t{1} << 23); total += total / 3 + 1) {
      for (int64_t share = 0; share <= 16; ++share) {
        for (int64_t rows : {1, 2, 40, 300}) {
          const MergeProblem problem = problem_of(key_bytes, rows, total * share / 16, total - total * share / 16);
          const MergePlan plan = plan_merge(problem, MergeKernel::kTiled, device);
          const MergeTile tile{plan.threads, plan.outputs_per_thread, 0};
          if (plan.reach == 0 || plan.cuts_in_workspace) continue;
          ++windowed;
          CHECK(problem.rows * plan.pieces_per_row <= 2 * device.sm_count);
          CHECK(plan.reach <= most_reach(tile) && plan.threads % 32 == 0 && plan.threads <= 992);
          check_windows(problem, plan);
        }
      }
    }
    CHECK(windowed > 100);
    for (int size = 0; size < windowed_tiles(key_bytes); ++size) {
      const MergeTile tile = windowed_tile(key_bytes, size);
      CHECK(tile.outputs() * key_bytes % 16 == 0 && (size == 0 || tile.outputs() > windowed_tile(key_bytes, size - 1).outputs()));
    }
  }
  // Short merges of keys alone, evenly long; not those with positions, nor of one short and one long input, nor of other kernels or tiles.
  int64_t index = 0;
  for (int key_bytes : {1, 2, 4, 8}) {
    for (int64_t length : {int64_t{40}, int64_t{1000}, int64_t{1} << 16, int64_t{1} << 18}) {
      MergeProblem problem = problem_of(key_bytes, 1, length, length);
      CHECK(plan_merge(problem, MergeKernel::kAuto, device).reach > 0 && plan_merge(problem, MergeKernel::kTiled, device).reach > 0);
      CHECK(plan_merge(problem, MergeKernel::kCircular, device).reach == 0 &&
            plan_merge(problem, MergeKernel::kTiled, device, 8).reach == 0);
      problem.indices_out = &index;
      CHECK(plan_merge(problem, MergeKernel::kTiled, device).reach == 0);
    }
    CHECK(plan_merge(problem_of(key_bytes, 1, 1 << 18, 100), MergeKernel::kAuto, device).reach == 0);
    CHECK(plan_merge(problem_of(key_bytes, 1000, 1 << 10, 1 << 10), MergeKernel::kAuto, device).reach == 0);
    CHECK((plan_merge(problem_of(key_bytes, 1, 1 << 20, 1 << 20), MergeKernel::kAuto, device).reach > 0) == (key_bytes < 8));
    const MergePlan longer = plan_merge(problem_of(key_bytes, 1, 1 << 24, 1 << 24), MergeKernel::kAuto, device);
    CHECK(longer.reach == 0 || longer.cuts_in_workspace);
  }
}

static void check_window_cuts(const DeviceTraits& device) {
  for (int key_bytes : {1, 2, 4, 8}) {
    int in_windows = 0, with_own = 0;
    for (int64_t total = int64_t{1} << 22; total < int64_t{1} << 32; total += total / 5 + 1) {
      for (int64_t share = 0; share <= 16; ++share) {
        for (int64_t rows : {1, 2, 40}) {
          const MergeProblem problem = problem_of(key_bytes, rows, total * share / 16, total - total * share / 16);
          const MergePlan plan = plan_merge(problem, MergeKernel::kTiled, device);
          if (plan.reach == 0 || !plan.cuts_in_workspace) continue;
          ++in_windows;
          if (plan.own_pieces > 0) ++with_own;
          CHECK(key_bytes <= 2 && total < int64_t{1} << 30 && rows * plan.pieces_per_row <= kMostWindowCuts && !plan.loose_cuts);
          check_windows(problem, plan, kWindowCutGroup);
        }
      }
    }
    CHECK((in_windows > 20) == (key_bytes <= 2) && (with_own > 10) == (key_bytes <= 2));
    MergeProblem problem = problem_of(key_bytes, 1, 1 << 24, 1 << 24);
    CHECK((plan_merge(problem, MergeKernel::kAuto, device).reach > 0) == (key_bytes <= 2));
    CHECK(plan_merge(problem, MergeKernel::kCircular, device).reach == 0);
    int64_t index = 0;
    problem.indices_out = &index;
    CHECK(plan_merge(problem, MergeKernel::kTiled, device).reach == 0);
    CHECK(plan_merge(problem_of(key_bytes, 1, 1 << 24, 100), MergeKernel::kAuto, device).reach == 0);
    CHECK(plan_merge(problem_of(key_bytes, 1, 1 << 28, 1 << 28), MergeKernel::kAuto, device).reach == 0);
  }
}

int main() {
  DeviceTraits h200, small_gpu;
  check_windowed_plans(h200);
  check_window_cuts(h200);
  small_gpu.sm_count = 10;
  small_gpu.shared_bytes_per_sm = 100 << 10;
  for (const DeviceTraits& device : {h200, small_gpu}) {
    for (MergeKernel kernel :
         {MergeKernel::kAuto, MergeKernel::kSequential, MergeKernel::kBasic, MergeKernel::kTiled, MergeKernel::kCircular}) {
      for (int key_bytes : {1, 2, 4, 8}) {
        for (int64_t rows : {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{1000}, int64_t{1} << 33}) {
          for (int64_t a_length : {int64_t{0}, int64_t{1}, int64_t{4095}, int64_t{1} << 16, int64_t{1} << 26, int64_t{5} << 30}) {
            for (int64_t b_length : {int64_t{0}, int64_t{1}, int64_t{33}, int64_t{1} << 20, (int64_t{1} << 31) + 7}) {
              if (rows > 1000 && a_length + b_length > 10) continue;
              check_plan(problem_of(key_bytes, rows, a_length, b_length), kernel, device);
            }
          }
        }
      }
    }
  }

  // Rings hold the tile being merged and the next one.
  for (int key_bytes : {1, 2, 4, 8}) {
    const MergeTile tile = ring_tile(key_bytes);
    CHECK((tile.ring & (tile.ring - 1)) == 0 && 2 * tile.outputs() + 1 + 2 * (16 / key_bytes) <= tile.ring);
  }
  // Keys alone are merged in tiles of their own, of whole 16-byte words a
  // block.
  for (int key_bytes : {1, 2, 4, 8}) {
    for (const MergeTile& tile : {large_keys_tile(key_bytes), middle_keys_tile(key_bytes), small_keys_tile(key_bytes)})
      CHECK(tile.outputs() * key_bytes % 16 == 0);
    MergeProblem with_indices = problem_of(key_bytes, 1, 1 << 26, 1 << 26);
    int64_t index = 0;
    with_indices.indices_out = &index;
    const MergePlan indexed = plan_merge(with_indices, MergeKernel::kTiled, h200);
    CHECK(indexed.threads == large_tile(key_bytes).threads && indexed.outputs_per_thread == large_tile(key_bytes).outputs_per_thread);
    CHECK(plan_merge(problem_of(key_bytes, 1, 1 << 26, 1 << 26), MergeKernel::kTiled, h200).piece == large_keys_tile(key_bytes).outputs());
  }
  // Only devices that can start kernels early are asked to.
  CHECK(plan_merge(problem_of(4, 1, 9, 9), MergeKernel::kAuto, h200).dependent_launch);
  small_gpu.compute_major = 8;
  CHECK(!plan_merge(problem_of(4, 1, 9, 9), MergeKernel::kAuto, small_gpu).dependent_launch);
  // A large merge has its cuts found ahead, a small one is spread over the
  // multiprocessors.
  const MergePlan large = plan_merge(problem_of(4, 1, 1 << 26, 1 << 26), MergeKernel::kAuto, h200);
  CHECK(large.kernel == MergeKernel::kTiled && large.piece == large_keys_tile(4).outputs() && large.cuts_in_workspace);
  // Its tiles settle loose cuts if they hold wide keys alone; every other kernel and tile has exact ones.
  for (int key_bytes : {1, 2, 4, 8}) {
    MergeProblem problem = problem_of(key_bytes, 1, 1 << 26, 1 << 26);
    CHECK(plan_merge(problem, MergeKernel::kTiled, h200).loose_cuts == (key_bytes >= 4));
    for (MergeKernel other : {MergeKernel::kSequential, MergeKernel::kBasic, MergeKernel::kCircular})
      CHECK(!plan_merge(problem, other, h200).loose_cuts);
    CHECK(!plan_merge(problem, MergeKernel::kTiled, h200, 32).loose_cuts);
    CHECK(!takes_loose_cuts(middle_keys_tile(key_bytes), key_bytes) && !takes_loose_cuts(small_keys_tile(key_bytes), key_bytes));
    CHECK(!plan_merge(problem_of(key_bytes, 1, 1 << 20, 1 << 20), MergeKernel::kTiled, h200).loose_cuts);  // blocks find their own
    // The first tiles of a single row find their own pieces, fewer than a wave of them, where kernels can start early. Those of narrow
    // keys do where windows lie apart.
    const MergePlan plan = plan_merge(problem, MergeKernel::kTiled, h200);
    const MergePlan shorter = plan_merge(problem_of(key_bytes, 1, 1 << 24, 1 << 24), MergeKernel::kTiled, h200);
    const int blocks = keys_blocks_per_multiprocessor(large_keys_tile(key_bytes), key_bytes);
    CHECK(shorter.own_pieces == (key_bytes >= 4 ? blocks - 1 : 4) * h200.sm_count && shorter.own_pieces < shorter.pieces_per_row / 2);
    CHECK(plan.own_pieces == (key_bytes == 1 ? 0 : shorter.own_pieces));
    CHECK(plan_merge(problem_of(key_bytes, 1, 1 << 28, 1 << 28), MergeKernel::kTiled, h200).own_pieces ==
          (key_bytes >= 4 ? shorter.own_pieces : 0));
    CHECK(plan_merge(problem_of(key_bytes, 2, 1 << 26, 1 << 26), MergeKernel::kTiled, h200).own_pieces == 0);
    DeviceTraits older = h200;
    older.compute_major = 8;
    CHECK(plan_merge(problem, MergeKernel::kTiled, older).own_pieces == 0);
    int64_t payload = 0;
    problem.a_payload = problem.b_payload = problem.payload_out = &payload;
    problem.payload_bytes = 8;
    CHECK(!plan_merge(problem, MergeKernel::kTiled, h200).loose_cuts && plan_merge(problem, MergeKernel::kTiled, h200).own_pieces == 0);
  }
  // From 2 x 2^16 to 2 x 2^26 keys of any width there are enough tiles for every multiprocessor, or they are the smallest.
  for (int key_bytes : {1, 2, 4, 8}) {
    for (int log_length = 16; log_length <= 26; ++log_length) {
      const int64_t length = int64_t{1} << log_length;
      const MergePlan plan = plan_merge(problem_of(key_bytes, 1, length, length), MergeKernel::kAuto, h200);
      CHECK(plan.reach > 0 || plan.pieces_per_row >= h200.sm_count || plan.piece == small_keys_tile(key_bytes).outputs());
      CHECK((log_length >= 24) <= (plan.piece == large_keys_tile(key_bytes).outputs()));
    }
    // Where they are too many or too unevenly long for windows, blocks find their own cuts.
    CHECK(plan_merge(problem_of(key_bytes, 1, 1 << 21, 1 << 10), MergeKernel::kAuto, h200).piece == middle_keys_tile(key_bytes).outputs());
    // Rows that fit into a small tile get one, however many there are.
    CHECK(plan_merge(problem_of(key_bytes, 1 << 20, 60, 70), MergeKernel::kAuto, h200).piece == small_keys_tile(key_bytes).outputs());
  }
  const MergePlan small = plan_merge(problem_of(4, 1, 1 << 16, 1 << 16), MergeKernel::kAuto, h200);
  CHECK(small.kernel == MergeKernel::kTiled && small.pieces_per_row >= 60 && small.workspace_bytes == 0);

  MergeKernel kernel = MergeKernel::kAuto;
  CHECK(parse_merge_kernel("tiled", kernel) && kernel == MergeKernel::kTiled);
  CHECK(parse_merge_kernel("circular", kernel) && kernel == MergeKernel::kCircular);
  CHECK(parse_merge_kernel("basic", kernel) && kernel == MergeKernel::kBasic);
  CHECK(parse_merge_kernel("sequential", kernel) && kernel == MergeKernel::kSequential);
  CHECK(parse_merge_kernel("auto", kernel) && kernel == MergeKernel::kAuto);
  CHECK(!parse_merge_kernel("Tiled", kernel) && !parse_merge_kernel("", kernel));
  return report();
}
