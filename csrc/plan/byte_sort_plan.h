// Plans the sort of one long row of 8-bit keys with their indices: one partition into 256 bins (cuda/radix/byte_sort.cu). Pure: shapes in,
// numbers out.
//
// Tiles are counted in groups of neighbours, the groups' counts are scanned, and the tiles scattered. Two blocks share an SM, and there are
// as many groups as there is room for blocks: so tiles are as large as shared memory allows, but not larger than it takes to share them out
// evenly. GPUs with less shared memory than an H100 sort by the slots of radix_plan.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sort_problem.h"
#include "word_layout.h"

namespace gpusort {

constexpr int kByteSortThreads = 512;
constexpr int kByteSortBlocksPerSm = 2;
constexpr int kByteSortPads = 256 * 7;  // of a staged tile, at most: see cuda/radix/byte_tile.cuh
// Histograms of 16 warps, 257 regions of 16 bytes, ends of the bins, a few words.
constexpr int kByteSortScratchBytes = 16 * 1024 + 257 * 16 + 1024 + 48;

// A block takes rounds * kByteSortThreads keys at a time, rounds being a multiple of 4. Keys are in registers, 16-bit positions are staged.
constexpr int kMostByteSortRounds = 84;
constexpr int byte_sort_shared_bytes(int rounds) {
  return kByteSortScratchBytes + (rounds * kByteSortThreads + kByteSortPads) * 2;
}
// Up to here tiles are short, and so are their parts of each bin: a kernel with fewer registers and instructions sorts them.
constexpr int kShortByteSortRounds = 32;

constexpr int64_t kMinByteSortLength = int64_t{1} << 18;

struct ByteSortPlan {
  bool used = false;
  int rounds = 0;
  int halo_warps = 0;      // of a block's 16: those that take the last keys of the tile before once more
  int64_t tile_items = 0;  // keys of the others
  int64_t tiles = 0;       // counted from the 16-byte boundary at or before the first key, wherever that lies
  int64_t tiles_per_group = 0;
  int64_t groups = 0;

  // Byte offsets into the workspace, each a multiple of 256; control words come first.
  int64_t bins_offset = 0;
  int64_t group_tables_offset = 0;
  int64_t tile_tables_offset = 0;
  int64_t group_patterns_offset = 0;
  int64_t workspace_bytes = 0;
};

// `control_bytes`: what lies before all else in the workspace.
inline ByteSortPlan plan_byte_sort(const SortProblem& problem, const DeviceTraits& device, int64_t control_bytes) {
  auto ceil_div = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  ByteSortPlan plan;
  if (problem.key.bytes != 1 || problem.rows != 1 || problem.indices_out == nullptr || !problem.whole_key()) return plan;
  constexpr int64_t kReservedBytes = 1024;  // of each block
  const int64_t room = std::min(device.shared_bytes_per_block, device.shared_bytes_per_sm / kByteSortBlocksPerSm - kReservedBytes);
  if (problem.length < kMinByteSortLength || byte_sort_shared_bytes(kMostByteSortRounds) > room) return plan;

  const int64_t slots = static_cast<int64_t>(device.sm_count) * kByteSortBlocksPerSm;
  const int64_t items = problem.length + 15;
  plan.used = true;
  constexpr int kWarps = kByteSortThreads / 32;
  // Where blocks take several tiles the outputs are larger than the L2, and a store that fills a part of a 32-byte sector is expensive.
  // With its halo a tile knows what its predecessor would write of the sectors that both share.
  plan.halo_warps = items > slots * kMostByteSortRounds * kByteSortThreads ? 1 : 0;
  const int64_t items_of_round = (kWarps - plan.halo_warps) * 32;
  plan.tiles_per_group = ceil_div(items, slots * kMostByteSortRounds * items_of_round);
  plan.rounds = static_cast<int>(ceil_div(ceil_div(items, slots * plan.tiles_per_group * items_of_round), 4) * 4);
  plan.tile_items = plan.rounds * items_of_round;
  plan.tiles = ceil_div(items, plan.tile_items);
  plan.groups = ceil_div(plan.tiles, plan.tiles_per_group);

  int64_t used = control_bytes;
  auto take = [&](int64_t bytes) {
    const int64_t offset = ceil_div(used, 256) * 256;
    used = offset + bytes;
    return offset;
  };
  constexpr int64_t kTableBytes = 256 * 4;
  plan.bins_offset = take(kTableBytes);
  plan.group_tables_offset = take(plan.groups * kTableBytes);
  plan.tile_tables_offset = take(plan.tiles * kTableBytes);
  plan.group_patterns_offset = take(plan.groups * 4);
  plan.workspace_bytes = used;
  return plan;
}

// Blocks that scan the tables, each eight codes of them (cuda/radix/table_scan.cuh).
constexpr int kTableScanBlocks = 32;

// Where the low bytes of wider keys lie among the records of the radix sort: in the second half. Mapped buckets, which come after it, look
// into the first one for words that no record may hold (cuda/mapped_buckets/sample_map.cuh), and bytes of keys may hold anything.
inline int64_t low_bytes_offset(int64_t length) {
  return round_up(length * 4, 256);
}

// The same for the low bytes of wider keys: bytes, then tables.
inline ByteSortPlan plan_low_bytes(const SortProblem& problem, const DeviceTraits& device) {
  SortProblem bytes = problem;
  bytes.key = KeyType{1, KeyKind::kUnsigned, 0};
  bytes.end_bit = 8;
  ByteSortPlan plan = plan_byte_sort(bytes, device, low_bytes_offset(problem.length) + problem.length);
  plan.used = plan.used && plan.rounds > kShortByteSortRounds && plan.workspace_bytes <= problem.length * 8;
  return plan;
}

}  // namespace gpusort
