// See byte_sort.h.
//
//   count    a block counts the bytes of a group of tiles, every lane in a bank of its own, and writes before each tile and at the end what
//            it has counted by then
//   scan     for each code: the counts of the groups become where in its bin each group's keys begin (table_scan.cu)
//   scatter  a block ranks a tile (byte_tile.cuh) and writes the indices; it also writes a tile of the output's keys, which are runs whose
//            lengths are the bins' sizes
//
// Tiles are counted from the 16-byte boundary at or before the first key. Neighbouring ones are counted by one block, but scattered by
// different blocks at a time: what is written at a time lies close together in each bin then (H200, 2^26 random keys: 276 us against 333).
//
// Traffic: 1 (count) + 1 + 9 bytes a key.
#include "byte_sort.h"

#include <cuda_runtime.h>

#include <atomic>

#include "../primitives/kernel_setup.h"
#include "ambiguous_keys.h"
#include "byte_tile.cuh"
#include "equal_codes.h"
#include "pass_arguments.h"
#include "radix_control.cuh"
#include "staged_record.cuh"
#include "table_scan.h"

namespace gpusort {
namespace {

constexpr int kBins = 256;

struct ByteSortArguments {
  KeyOrder<uint8_t> order;
  bool codes_meet = false;  // different keys may have one code: floats and bool
  const uint8_t* keys_in = nullptr;
  uint8_t* keys_out = nullptr;  // null: not wanted
  void* indices_out = nullptr;  // aligned to 16 bytes
  int index_bytes = 8;
  uint32_t length = 0;
  uint32_t rounds = 0;           // a tile has 512 times as many keys
  uint32_t tiles = 0;            // counted from the 16-byte boundary at or before the first key
  uint32_t tiles_per_group = 0;  // neighbouring tiles that one block counts
  uint32_t groups = 0;
  uint32_t* tile_tables = nullptr;   // [tiles][256]: how many of each code the tiles before it in its group have
  uint32_t* group_tables = nullptr;  // [groups][256]
  uint32_t* bins = nullptr;          // [256]
  // See ambiguous_keys.h. Only where codes meet: what each group has, and for the last kernel what any has.
  uint32_t* group_patterns = nullptr;
  uint32_t* other_patterns = nullptr;
};

// ---- count --------------------------------------------------------------------------------------------------------------------------

constexpr int kCountThreads = 512;
constexpr int kVectors = 4;  // of each thread in a tile
static_assert(kVectors * kCountThreads * 16 >= kMostByteSortRounds * kByteSortThreads, "");

__global__ void __launch_bounds__(kCountThreads, 2) count_bytes_kernel(const __grid_constant__ ByteSortArguments arguments) {
  __shared__ __align__(16) uint32_t counters[kBins * 32];
  __shared__ uint32_t by_code[kBins];
  const LaneCounters block{counters};
  const uint32_t thread = threadIdx.x;
  const uint32_t items = arguments.rounds * kByteSortThreads;
  const uint32_t begin = blockIdx.x * arguments.tiles_per_group, end = min(begin + arguments.tiles_per_group, arguments.tiles);
  auto range_at = [&](uint32_t tile) { return range_of(arguments.keys_in, arguments.length, static_cast<uint64_t>(tile) * items, items); };
  uint4 next[kVectors];
  auto load = [&](const KeyRange& range) {
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      const uint32_t vector = k * kCountThreads + thread;
      if (range.inside(vector * 16)) next[k] = __ldg(reinterpret_cast<const uint4*>(range.keys) + vector);
    }
  };
  load(range_at(begin));
  block.clear<kCountThreads>();
  // All that has been counted until now, by code. Returns whether this thread's byte is not the pattern that comes back for its code.
  auto write_counts = [&](uint32_t* table) {
    if (thread < kBins) by_code[thread] = 0;
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
    if (thread < kBins) table[thread] = by_code[thread];
    return other;
  };
#pragma unroll 1
  for (uint32_t tile = begin; tile < end; ++tile) {
    write_counts(arguments.tile_tables + static_cast<uint64_t>(tile) * kBins);
    const KeyRange range = range_at(tile);
    uint4 vectors[kVectors];
#pragma unroll
    for (int k = 0; k < kVectors; ++k) vectors[k] = next[k];
    if (tile + 1 < end) load(range_at(tile + 1));
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      const uint32_t at = (k * kCountThreads + thread) * 16;
      if (range.inside(at)) {
#pragma unroll
        for (uint32_t four : {vectors[k].x, vectors[k].y, vectors[k].z, vectors[k].w}) block.add_four(four);
      } else {
#pragma unroll 1
        for (uint32_t i = max(at, range.begin); i < min(at + 16, range.end); ++i) block.add(range.keys[i]);
      }
    }
  }
  __syncthreads();
  const bool other = write_counts(arguments.group_tables + static_cast<uint64_t>(blockIdx.x) * kBins);
  if (!arguments.codes_meet) return;
  const bool any = __syncthreads_or(other) != 0;
  if (thread == 0) arguments.group_patterns[blockIdx.x] = any;
}

// ---- scatter ------------------------------------------------------------------------------------------------------------------------

using Bins = StagedBins;
constexpr uint32_t kDigits = Bins::kFree;  // the tile's digits, and behind them the staged positions
// kPermutePeriod: for tests of the verification, see tile_ranks.cuh.
template <class Index, int kPermutePeriod>
struct ScatterBlock : Bins {
  const ByteSortArguments& arguments;
  const uint32_t items;
  const uint32_t digits, staged;
  uint32_t tile;
  KeyRange range;
  bool other_patterns = false;  // some key is not the pattern that comes back for its code

  __device__ ScatterBlock(const ByteSortArguments& a, uint32_t shared_base)
      : Bins{shared_base}, arguments(a), items(a.rounds * kByteSortThreads), digits(shared_base + kDigits), staged(digits + items) {}

  // A tile of the output's keys.
  __device__ __forceinline__ void write_keys() const {
    uint8_t* keys = arguments.keys_out;
    const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(keys) & 15);
    const int64_t share_first = static_cast<int64_t>(tile) * items - misaligned;
    const bool last = tile + 1 == arguments.tiles;
#pragma unroll 1
    for (uint32_t at = thread * 16; last || at < items; at += kByteSortThreads * 16) {
      const int64_t first = share_first + at;
      if (first >= arguments.length) return;
      const uint32_t begin = static_cast<uint32_t>(max(first, int64_t{0}));
      const uint32_t end = static_cast<uint32_t>(min(first + 16, static_cast<int64_t>(arguments.length)));
      uint32_t code = 0;  // the first whose bin ends after `begin`
#pragma unroll
      for (uint32_t step = kBins / 2; step > 0; step /= 2) {
        if (load_shared(shared + kEnds + (code + step - 1) * 4) <= begin) code += step;
      }
      uint32_t bin_end = load_shared(shared + kEnds + code * 4);
      uint32_t bits = bits_of_code(arguments.order, static_cast<uint8_t>(code));
      if (end - begin == 16 && bin_end >= end) {
        const uint32_t four = bits * 0x01010101u;
        *reinterpret_cast<uint4*>(keys + begin) = make_uint4(four, four, four, four);
        continue;
      }
#pragma unroll 1
      for (uint32_t i = begin; i < end; ++i) {
        while (bin_end <= i) bin_end = load_shared(shared + kEnds + ++code * 4);
        keys[i] = bits_of_code(arguments.order, static_cast<uint8_t>(code));
      }
    }
  }

  // Patterns become those that come back for their codes.
  __device__ __forceinline__ void unify_patterns() const {
    for (uint32_t at = thread * 4; at < items; at += kByteSortThreads * 4) {
      const uint32_t four = load_shared(digits + at);
      uint32_t unified = 0;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const uint8_t code = arguments.order.code(static_cast<uint8_t>(four >> 8 * k));
        unified |= static_cast<uint32_t>(bits_of_code(arguments.order, code)) << 8 * k;
      }
      store_shared(digits + at, unified);
    }
  }

  // Returns whether the order is wrong somewhere.
  __device__ __forceinline__ bool write_indices() const {
    const uint32_t pairs = load_shared(shared + kQuads) * 2;
    const uint32_t before_first = range.first - 1;  // staged positions are one more than those in the tile
    Index* indices = static_cast<Index*>(arguments.indices_out);
    bool wrong = false;
#pragma unroll 4
    for (uint32_t pair = thread; pair < pairs; pair += kByteSortThreads) {
      const uint32_t word = load_shared(staged + pair * 4);
      const uint32_t before = load_shared_16(staged + pair * 4 - 2);
      const uint32_t p0 = word & 0xffff, p1 = word >> 16;
      wrong |= (p0 != 0 && before > p0) || p0 > p1;
      const uint32_t one = p0 != 0 ? p0 : p1;
      if (one - 1 >= kEndPad - 1) continue;  // pads alone
      const uint32_t place = load_shared(shared + kOffsets + load_shared_8(digits + one - 1) * 4) + pair * 2;
      if (p0 != 0 && p1 != kEndPad) {
        if constexpr (sizeof(Index) == 8)
          *reinterpret_cast<uint4*>(indices + place) = make_uint4(before_first + p0, 0, before_first + p1, 0);
        else
          *reinterpret_cast<uint2*>(indices + place) = make_uint2(before_first + p0, before_first + p1);
      } else {
        const uint32_t at = p0 != 0 ? place : place + 1;
        indices[at] = static_cast<Index>(before_first + one);
      }
    }
    return wrong;
  }

  __device__ __forceinline__ void run_tile() {
    const uint32_t warp = thread / 32, lane = thread % 32;
    if (thread < kBins) {
      tile_begin = bin_begin + arguments.group_tables[static_cast<uint64_t>(tile / arguments.tiles_per_group) * kBins + thread] +
                   arguments.tile_tables[static_cast<uint64_t>(tile) * kBins + thread];
    }
    range = range_of(arguments.keys_in, arguments.length, static_cast<uint64_t>(tile) * items, items);
    if (!range.empty()) start_loads(range, digits);
    if (thread == 0) prefetch(range_of(arguments.keys_in, arguments.length, (tile + uint64_t{gridDim.x}) * items, items));
    const WarpDigits own = range.digits_of_warp(digits, shared, arguments.rounds);
    clear_shared_16_bytes(own.histogram + lane * 16);
    clear_shared_16_bytes(own.histogram + lane * 16 + 512);
    if (arguments.keys_out != nullptr) write_keys();
    if (range.empty()) return;
    wait_for_copies();
    __syncthreads();
    if (other_patterns) {
      unify_patterns();
      __syncthreads();
    }
    own.count();
    __syncwarp();
    const WarpDigits::Frequent frequent = own.frequent();
    __syncthreads();
    const uint8_t code = static_cast<uint8_t>(thread);
    place_bins(staged, bits_of_code(arguments.order, code));
    const uint32_t first = warp * 32 * arguments.rounds + 1;
    own.template rank<kUnit, kPermutePeriod>(frequent,
                                             [&](uint32_t place, uint32_t item) { store_shared_16(staged + place, first + item); });
    __syncthreads();
    if (!__syncthreads_or(write_indices())) return;
    mend(staged);
    write_indices();
    __syncthreads();
  }

  __device__ __forceinline__ void run() {
    find_bins(arguments.bins);
    if (arguments.codes_meet) {
      uint32_t any = 0;
      for (uint32_t group = thread; group < arguments.groups; group += kByteSortThreads) any |= arguments.group_patterns[group];
      other_patterns = __syncthreads_or(any != 0) != 0;
      if (blockIdx.x == 0 && thread == 0) *arguments.other_patterns = other_patterns;
    }
#pragma unroll 1
    for (tile = blockIdx.x; tile < arguments.tiles; tile += gridDim.x) run_tile();
  }
};

template <class Index, int kPermutePeriod>
__global__ void __launch_bounds__(kByteSortThreads, kByteSortBlocksPerSm)
    scatter_bytes_kernel(const __grid_constant__ ByteSortArguments arguments) {
  extern __shared__ __align__(16) uint8_t memory[];
  ScatterBlock<Index, kPermutePeriod>(arguments, shared_address(memory)).run();
}

template <class Index>
cudaError_t launch_scatter(const ByteSortArguments& arguments, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(scatter_bytes_kernel<Index, 0>, byte_sort_shared_bytes(kMostByteSortRounds), prepared);
  if (error != cudaSuccess) return error;
  const int shared_bytes = byte_sort_shared_bytes(static_cast<int>(arguments.rounds));
  scatter_bytes_kernel<Index, 0><<<arguments.groups, kByteSortThreads, shared_bytes, stream>>>(arguments);
  return cudaGetLastError();
}

ByteSortArguments byte_sort_arguments(const SortProblem& problem, const RadixPlan& plan, char* workspace) {
  auto words = [&](int64_t offset) { return reinterpret_cast<uint32_t*>(workspace + offset); };
  ByteSortArguments arguments;
  arguments.order = problem.key.order<uint8_t>(problem.descending);
  arguments.codes_meet = problem.key.kind != KeyKind::kUnsigned && problem.key.kind != KeyKind::kSigned;
  arguments.keys_in = static_cast<const uint8_t*>(problem.keys_in);
  arguments.keys_out = static_cast<uint8_t*>(problem.keys_out);
  arguments.indices_out = problem.indices_out;
  arguments.index_bytes = problem.index_bytes;
  arguments.length = static_cast<uint32_t>(problem.length);
  arguments.rounds = static_cast<uint32_t>(plan.byte_sort.rounds);
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
cudaError_t mend_keys(const SortProblem& problem, const ByteSortArguments& sorted, RadixControl* control, int blocks, cudaStream_t stream) {
  PassArguments<uint8_t> arguments;
  arguments.order = sorted.order;
  arguments.codec = make_key_codec(sorted.order);
  arguments.codes_meet = true;
  arguments.keys_in = sorted.keys_in;
  arguments.keys_out = sorted.keys_out;
  arguments.indices_out = problem.indices_out;
  arguments.index_bytes = problem.index_bytes;
  arguments.control = control;
  arguments.length = sorted.length;
  if (sorted.length < kMinPartitionedLength) return launch_ambiguous_keys(arguments, blocks, stream);
  return launch_equal_codes(arguments, sorted.tile_tables, size_t{sorted.tiles} * kBins * 4, blocks, stream);
}

}  // namespace

cudaError_t launch_byte_sort(const SortProblem& problem, const RadixPlan& plan, void* workspace, cudaStream_t stream) {
  ByteSortArguments arguments = byte_sort_arguments(problem, plan, static_cast<char*>(workspace));
  RadixControl* control = reinterpret_cast<RadixControl*>(static_cast<char*>(workspace) + plan.control_offset);
  arguments.other_patterns = &control->other_patterns;
  count_bytes_kernel<<<arguments.groups, kCountThreads, 0, stream>>>(arguments);
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) error = launch_table_scan(arguments.group_tables, arguments.groups, arguments.bins, stream);
  if (error != cudaSuccess) return error;
  error = arguments.index_bytes == 8 ? launch_scatter<int64_t>(arguments, stream) : launch_scatter<uint32_t>(arguments, stream);
  constexpr int kMendingBlocksPerSm = 4;
  if (error != cudaSuccess || !arguments.codes_meet || arguments.keys_out == nullptr) return error;
  return mend_keys(problem, arguments, control, plan.grid[0] * kMendingBlocksPerSm, stream);
}

}  // namespace gpusort
