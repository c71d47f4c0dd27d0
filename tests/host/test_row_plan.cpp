// csrc/plan/row_plan.h: every plan must hold its row, fit its device and cover all rows.
#include <cstdint>
#include <cstdio>
#include <initializer_list>

#include "../../csrc/plan/row_plan.h"
#include "../../csrc/plan/sort_plan.h"
#include "check.h"
#include "problems.h"

namespace {

using gpusort::DeviceTraits;
using gpusort::plan_row_sort;
using gpusort::row_sort_max_length;
using gpusort::RowKernel;
using gpusort::RowPlan;
using gpusort::SortProblem;

bool sane(const SortProblem& problem, const DeviceTraits& traits) {
  const RowPlan plan = plan_row_sort(problem, traits);
  if (plan.workspace_bytes != 0) return false;
  if (problem.rows <= 0 || problem.length <= 0 || problem.length > row_sort_max_length(problem.key.bytes, traits)) {
    return plan.kernel == RowKernel::kNone && plan.blocks == 0;
  }
  if (problem.length == 1) return plan.kernel == RowKernel::kCopy;
  const int64_t threads_of_row = plan.kernel == RowKernel::kBlock ? plan.threads : plan.lanes;
  const bool holds = threads_of_row * plan.items >= problem.length;
  const bool launches = plan.threads >= 32 && plan.threads <= 1024 && plan.threads % 32 == 0;
  const bool registers = plan.threads * (plan.items > 16 ? 80 : 64) <= 65536 || plan.kernel != RowKernel::kBlock;
  const bool fits = plan.shared_bytes >= 0 && plan.shared_bytes <= traits.shared_bytes_per_block;
  const bool covers =
      plan.blocks >= 1 && plan.blocks * plan.rows_per_block >= problem.rows && (plan.blocks - 1) * plan.rows_per_block < problem.rows;
  const bool kernel = plan.kernel == RowKernel::kRegisters ? plan.rows_per_block == plan.threads / plan.lanes
                                                           : plan.kernel == RowKernel::kBlock && plan.rows_per_block == 1;
  // No shape may be more than half too large for rows that fill the device.
  const bool close = problem.rows < 100000 || problem.length < 33 || threads_of_row * plan.items <= problem.length * 3 / 2;
  return holds && launches && registers && fits && covers && kernel && close;
}

// Blocks of a float32 row shape that the shared memory of one SM holds: what the speed of these lengths rests on.
int64_t resident_blocks(int64_t length) {
  const DeviceTraits traits;
  const RowPlan plan = plan_row_sort(make_problem(4, 100000, length), traits);
  constexpr int kStatic = 33 * 4, kDriver = 1024;
  return traits.shared_bytes_per_sm / (gpusort::round_up(plan.shared_bytes + kStatic, 128) + kDriver);
}

void check_residency() {
  CHECK(resident_blocks(1024) >= 21);
  CHECK(resident_blocks(2048) >= 10);
  CHECK(resident_blocks(4096) >= 5);
  CHECK(resident_blocks(8192) == 3);
  CHECK(resident_blocks(16384) == 2);
}

// Positions that travel in fewer bytes must still hold every place of a row, and only the row kernels write two bytes.
void check_packed_positions() {
  const DeviceTraits traits;
  for (int64_t length : {2, 1000, 8192, 16384, 16385, 65536, 65537, 1 << 20}) {
    for (int64_t rows : {1, 8192}) {
      const SortProblem problem = make_problem(4, rows, length);
      const int bytes = gpusort::packed_index_bytes(problem, gpusort::SortAlgorithm::kAuto, traits);
      const bool by_rows = choose_sort_algorithm(problem, gpusort::SortAlgorithm::kAuto, traits) == gpusort::SortAlgorithm::kRows;
      CHECK(bytes == (by_rows ? 2 : 4));
      CHECK(gpusort::packed_index_bytes(problem, gpusort::SortAlgorithm::kRadix, traits) == 4);
    }
  }
  CHECK(gpusort::packed_index_bytes(make_problem(1, 1, (int64_t{1} << 31) + 1), gpusort::SortAlgorithm::kAuto, traits) == 8);
}

// A few rows get clusters, on devices that have them; every block has keys, and fits without asking for more shared memory.
void check_clusters() {
  const DeviceTraits h200;
  DeviceTraits old;
  old.compute_major = 8;
  bool all = true;
  for (int key_bytes : {1, 2, 4, 8}) {
    for (int64_t rows : {1, 2, 16, 17, 1000}) {
      for (int64_t length = 1; length <= 16384; ++length) {
        const RowPlan plan = plan_row_sort(make_problem(key_bytes, rows, length), h200);
        const bool clusters = rows <= 16 && length >= (key_bytes == 8 ? 1025 : 513) && length <= 4096;
        all = all && (plan.cluster_threads > 0) == clusters;
        all = all && plan_row_sort(make_problem(key_bytes, rows, length), old).cluster_threads == 0;
        if (!clusters) continue;
        const int part = gpusort::row_part_length(static_cast<int>(length));
        all = all && plan.kernel == RowKernel::kBlock && part <= plan.cluster_threads && 2 * part > plan.cluster_threads;
        all = all && (gpusort::kRowClusterBlocks - 1) * part < length && gpusort::kRowClusterBlocks * part >= length;
        all = all && plan.cluster_shared_bytes > 0 && plan.cluster_shared_bytes + 1024 <= 48 * 1024;
      }
    }
  }
  CHECK(all);
  CHECK(plan_row_sort(make_problem(4, 1, 1024), h200).cluster_threads == 128);
  CHECK(plan_row_sort(make_problem(4, 1, 1025), h200).cluster_threads == 256);
  CHECK(plan_row_sort(make_problem(8, 16, 1024), h200).cluster_threads == 0);
  CHECK(plan_row_sort(make_problem(8, 16, 1025), h200).cluster_threads == 256);
  CHECK(plan_row_sort(make_problem(8, 16, 4096), h200).cluster_threads == 512);
}

void check_all_lengths(const DeviceTraits& traits) {
  for (int key_bytes : {1, 2, 4, 8}) {
    bool all = true;
    for (int64_t length = 0; length <= 17000; ++length) {
      for (int64_t rows : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{7}, int64_t{133}, int64_t{400}, int64_t{70000}, int64_t{1} << 24}) {
        if (!sane(make_problem(key_bytes, rows, length), traits)) {
          std::printf("key bytes %d, rows %lld, length %lld\n", key_bytes, static_cast<long long>(rows), static_cast<long long>(length));
          all = false;
        }
      }
    }
    CHECK(all);
  }
}

// From nothing to 2^40 elements, rows and lengths around powers of two.
void check_sizes() {
  const DeviceTraits traits;
  for (int key_bytes : {1, 2, 4, 8}) {
    bool all = true;
    for (int row_bits = 0; row_bits <= 40; ++row_bits) {
      for (int length_bits = 0; row_bits + length_bits <= 40; ++length_bits) {
        for (int delta : {-1, 0, 1}) {
          all = all && sane(make_problem(key_bytes, (int64_t{1} << row_bits) + delta, (int64_t{1} << length_bits) + delta), traits);
        }
      }
    }
    CHECK(all);
  }
}

}  // namespace

int main() {
  const DeviceTraits h200;
  check_all_lengths(h200);
  check_sizes();
  check_residency();
  check_packed_positions();
  check_clusters();
  for (int key_bytes : {1, 2, 4, 8}) CHECK(row_sort_max_length(key_bytes, h200) == 16384);

  DeviceTraits small;  // a consumer card: 99 KB of shared memory to a block
  small.sm_count = 48;
  small.shared_bytes_per_block = 101376;
  small.shared_bytes_per_sm = 102400;
  small.compute_major = 8;
  small.compute_minor = 6;
  check_all_lengths(small);
  CHECK(row_sort_max_length(4, small) >= 8192 && row_sort_max_length(4, small) < 16384);
  CHECK(row_sort_max_length(8, small) < row_sort_max_length(4, small));

  DeviceTraits smallest = small;
  smallest.shared_bytes_per_block = 49152;
  check_all_lengths(smallest);
  CHECK(row_sort_max_length(4, smallest) >= 4096);

  DeviceTraits none = small;
  none.shared_bytes_per_block = 16384;
  CHECK(row_sort_max_length(4, none) == 0);
  CHECK(plan_row_sort(make_problem(4, 100, 100), none).kernel == RowKernel::kNone);

  CHECK(plan_row_sort(make_problem(4, 1 << 22, 16), h200).kernel == RowKernel::kRegisters);
  CHECK(plan_row_sort(make_problem(8, 1 << 22, 16), h200).kernel == RowKernel::kRegisters);
  CHECK(plan_row_sort(make_problem(4, 1 << 18, 129), h200).items == 18);
  CHECK(plan_row_sort(make_problem(4, 1, 8192), h200).threads == 512);  // few rows: more threads to a row
  CHECK(plan_row_sort(make_problem(4, 1 << 14, 8192), h200).threads == 256);
  return report();
}
