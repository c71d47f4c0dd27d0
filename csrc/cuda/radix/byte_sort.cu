// See byte_sort.h.
//
//   count    a block counts the bytes of a group of tiles, every lane in a bank of its own, and writes before each tile and at the end what
//            it has counted by then
//   scan     for each code: the counts of the groups become where in its bin each group's keys begin (table_scan.cu)
//   scatter  a block ranks a tile (byte_digits.cuh), orders it by bin (byte_tile.cuh) and writes the indices; it also writes a tile of the
//            output's keys, which are runs whose lengths are the bins' sizes
//
// Tiles are counted from the 16-byte boundary at or before the first key. Neighbouring ones are counted by one block, but scattered by
// different blocks at a time: what is written at a time lies close together in each bin then (H200, 2^26 random keys, stores alone: 235 us
// against 294). While a block writes a tile the keys of its next one are loaded, and each warp that is done counts them.
//
// Traffic: 1 (count) + 1 + 9 bytes a key; with a halo 1/15 of the keys are read once more.
#include "byte_sort.h"

#include <cuda_runtime.h>

#include <atomic>

#include "../primitives/kernel_setup.h"
#include "ambiguous_keys.h"
#include "byte_scatter.cuh"
#include "equal_codes.h"
#include "pass_arguments.h"
#include "radix_control.cuh"
#include "staged_record.cuh"
#include "table_scan.h"

namespace gpusort {
namespace {

// ---- count --------------------------------------------------------------------------------------------------------------------------

constexpr int kCountThreads = 512;
constexpr int kVectors = 6;  // of each thread in a tile
static_assert(kVectors * kCountThreads * 16 >= kMostByteSortRounds * kByteSortThreads, "");

__global__ void __launch_bounds__(kCountThreads, 2) count_bytes_kernel(const __grid_constant__ ByteSortArguments arguments) {
  __shared__ __align__(16) uint32_t counters[kByteBins * 32];
  __shared__ uint32_t by_code[kByteBins];
  const LaneCounters block{counters};
  const uint32_t thread = threadIdx.x;
  const uint32_t items = arguments.tile_items;
  const uint32_t begin = blockIdx.x * arguments.tiles_per_group, end = min(begin + arguments.tiles_per_group, arguments.tiles);
  auto range_at = [&](uint32_t tile) { return range_of(arguments.keys_in, arguments.length, static_cast<int64_t>(tile) * items, items); };
  uint4 next[kVectors];
  auto load = [&](const KeyRange& range, int k) {
    const uint32_t vector = k * kCountThreads + thread;
    if (range.inside(vector * 16)) next[k] = __ldg(reinterpret_cast<const uint4*>(range.keys) + vector);
  };
  const KeyRange first = range_at(begin);
#pragma unroll
  for (int k = 0; k < kVectors; ++k) load(first, k);
  block.clear<kCountThreads>();
  // All that has been counted until now, by code. Returns whether this thread's byte is not the pattern that comes back for its code.
  auto write_counts = [&](uint32_t* table) {
    if (thread < kByteBins) by_code[thread] = 0;
    __syncthreads();
    const uint32_t sum = block.sum();
    bool other = false;
    if (thread % 2 == 0 && sum != 0) {
      const uint8_t bits = static_cast<uint8_t>(thread / 2);
      const uint8_t code = arguments.order.code(bits);
      atomicAdd(&by_code[code], sum);
      other = bits_of_code(arguments.order, code) != bits;
    }
    __syncthreads();
    if (thread < kByteBins) table[thread] = by_code[thread];
    return other;
  };
#pragma unroll 1
  for (uint32_t tile = begin; tile < end; ++tile) {
    write_counts(arguments.tile_tables + static_cast<uint64_t>(tile) * kByteBins);
    const KeyRange range = range_at(tile), following = range_at(tile + 1);
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      const uint4 vector = next[k];
      if (tile + 1 < end) load(following, k);
      const uint32_t at = (k * kCountThreads + thread) * 16;
      if (range.inside(at)) {
#pragma unroll
        for (uint32_t four : {vector.x, vector.y, vector.z, vector.w}) block.add_four(four);
      } else {
#pragma unroll 1
        for (uint32_t i = max(at, range.begin); i < min(at + 16, range.end); ++i) block.add(range.keys[i]);
      }
    }
  }
  __syncthreads();
  const bool other = write_counts(arguments.group_tables + static_cast<uint64_t>(blockIdx.x) * kByteBins);
  if (!arguments.codes_meet) return;
  const bool any = __syncthreads_or(other) != 0;
  if (thread == 0) arguments.group_patterns[blockIdx.x] = any;
}

// ---- scatter ------------------------------------------------------------------------------------------------------------------------

template <class Index, int kWords, int kPermutePeriod>
__global__ void __launch_bounds__(kByteSortThreads, kByteSortBlocksPerSm)
    scatter_bytes_kernel(const __grid_constant__ ByteSortArguments arguments) {
  extern __shared__ __align__(16) uint8_t memory[];
  ScatterBlock<Index, kWords, kPermutePeriod>(arguments, shared_address(memory)).run();
}

template <class Index, int kWords>
cudaError_t launch_scatter_of(const ByteSortArguments& arguments, cudaStream_t stream) {
  constexpr auto kKernel = scatter_bytes_kernel<Index, kWords, 0>;
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(kKernel, byte_sort_shared_bytes(kWords * 4), prepared);
  if (error != cudaSuccess) return error;
  const int shared_bytes = byte_sort_shared_bytes(static_cast<int>(arguments.rounds));
  kKernel<<<arguments.groups, kByteSortThreads, shared_bytes, stream>>>(arguments);
  return cudaGetLastError();
}

template <class Index>
cudaError_t launch_scatter(const ByteSortArguments& arguments, cudaStream_t stream) {
  if (arguments.rounds <= kShortByteSortRounds) return launch_scatter_of<Index, kShortByteSortRounds / 4>(arguments, stream);
  return launch_scatter_of<Index, kMostByteSortRounds / 4>(arguments, stream);
}

ByteSortArguments byte_sort_arguments(const SortProblem& problem, const RadixPlan& plan, char* workspace) {
  auto words = [&](int64_t offset) { return reinterpret_cast<uint32_t*>(workspace + offset); };
  ByteSortArguments arguments;
  arguments.order = problem.key.order<uint8_t>(problem.descending);
  arguments.codes_meet = problem.key.kind != KeyKind::kUnsigned && problem.key.kind != KeyKind::kSigned;
  arguments.magnitude = arguments.order.zero != 0 ? 0x7f7f7f7fu : ~0u;
  arguments.last_pattern = arguments.order.from_ordered(arguments.order.clamp) * 0x01010101u;
  arguments.keys_in = static_cast<const uint8_t*>(problem.keys_in);
  arguments.keys_out = static_cast<uint8_t*>(problem.keys_out);
  arguments.indices_out = problem.indices_out;
  arguments.index_bytes = problem.index_bytes;
  arguments.length = static_cast<uint32_t>(problem.length);
  arguments.rounds = static_cast<uint32_t>(plan.byte_sort.rounds);
  arguments.halo_warps = static_cast<uint32_t>(plan.byte_sort.halo_warps);
  arguments.tile_items = static_cast<uint32_t>(plan.byte_sort.tile_items);
  arguments.tiles = static_cast<uint32_t>(plan.byte_sort.tiles);
  arguments.tiles_per_group = static_cast<uint32_t>(plan.byte_sort.tiles_per_group);
  arguments.groups = static_cast<uint32_t>(plan.byte_sort.groups);
  arguments.tile_tables = words(plan.byte_sort.tile_tables_offset);
  arguments.group_tables = words(plan.byte_sort.group_tables_offset);
  arguments.bins = words(plan.byte_sort.bins_offset);
  arguments.group_patterns = words(plan.byte_sort.group_patterns_offset);
  return arguments;
}

// From here on the keys to be mended are found in the input, in its order: one read of it instead of the indices of all keys. It takes one
// launch more. H200, random bytes: as bools 2^26 484 us against 715, 2^22 50 against 52; as float8_e5m2 457 against 497, 46 against 41.
constexpr uint32_t kMinPartitionedLength = 1u << 23;

// The scatter has written one pattern for all keys of a code. The tiles' tables are of no use any more.
cudaError_t mend_keys(const SortProblem& problem, const ByteSortArguments& sorted, int blocks, cudaStream_t stream) {
  PassArguments<uint8_t> arguments;
  arguments.order = sorted.order;
  arguments.codec = make_key_codec(sorted.order);
  arguments.codes_meet = true;
  arguments.keys_in = sorted.keys_in;
  arguments.keys_out = sorted.keys_out;
  arguments.indices_out = problem.indices_out;
  arguments.index_bytes = problem.index_bytes;
  arguments.control = sorted.control;
  arguments.length = sorted.length;
  if (sorted.length < kMinPartitionedLength) return launch_ambiguous_keys(arguments, blocks, stream);
  return launch_equal_codes(arguments, sorted.tile_tables, size_t{sorted.tiles} * kByteBins * 4, blocks, stream);
}

}  // namespace

cudaError_t launch_byte_sort(const SortProblem& problem, const RadixPlan& plan, void* workspace, cudaStream_t stream) {
  ByteSortArguments arguments = byte_sort_arguments(problem, plan, static_cast<char*>(workspace));
  arguments.control = reinterpret_cast<RadixControl*>(static_cast<char*>(workspace) + plan.control_offset);
  count_bytes_kernel<<<arguments.groups, kCountThreads, 0, stream>>>(arguments);
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) error = launch_table_scan(arguments.group_tables, arguments.groups, arguments.bins, stream);
  if (error != cudaSuccess) return error;
  error = arguments.index_bytes == 8 ? launch_scatter<int64_t>(arguments, stream) : launch_scatter<uint32_t>(arguments, stream);
  constexpr int kMendingBlocksPerSm = 4;
  if (error != cudaSuccess || !arguments.codes_meet || arguments.keys_out == nullptr) return error;
  return mend_keys(problem, arguments, plan.grid[0] * kMendingBlocksPerSm, stream);
}

}  // namespace gpusort
