// The map of a row's codes to 2^16 bins of about equal mass, and the decision whether the row is sorted by it.
//
//   cells    samples of the row are counted by their leading 12 bits
//   map      a cell's share of the bins is its share of the samples, smoothed with its neighbours as far as chance may have moved it;
//            within a cell the map is linear. It rises with the code, whatever the samples are, so only the sizes of buckets depend on them
//   judge    the same samples are counted by bin. Where density changes little within a cell they meet about as often as if thrown at
//            random; values that are found often, or crowds within a cell, make them meet more often
//
// A code's bin is one load from shared memory and one multiplication, where a tree of splitters takes a load for each level, and no sample
// is sorted. Sources: Kraska and others, "The case for learned index structures" (2018), and their sorts, here with a table for a model.
#pragma once

#include <cstdint>

#include "../bucket_sort/sample_places.cuh"
#include "../primitives/block_scan.cuh"
#include "../primitives/dependent_launch.cuh"
#include "../primitives/shared_memory.cuh"
#include "../radix/radix_control.cuh"
#include "mapped_arguments.h"

namespace gpusort {

constexpr int kMapCells = 1 << mapped_shapes::kCellBits;
constexpr int kSampleThreads = 256, kOwnSamples = 4;  // of a thread
constexpr int kBlockSamples = kSampleThreads * kOwnSamples;
constexpr int kMapThreads = 512;
constexpr int kJudgedBins = 4 * kMapThreads;  // of a block
constexpr uint32_t kSampleWeight = 8;         // of a sample in its cell, next to 1 for every cell
constexpr float kMostSmoothed = 1.5f;         // standard deviations by which a cell's count may move
constexpr float kMostMeetings = 1.12f;        // of pairs of samples in one bin, to what chance gives
constexpr uint32_t kAlikeShare = 64;          // at most one sample in this many equals the next key; as many are above and below it
constexpr uint32_t kMostPerCode = 6;          // keys to a code, on average over a cell's part of the bins
constexpr uint32_t kCountedSamples = 256;     // more of a bin need not be counted

struct SampledMap {
  uint32_t cells;  // shared address: first bin << 16 | bins

  // In two steps, so that the loads for many codes can be on their way together.
  __device__ __forceinline__ uint32_t load_cell(uint32_t code) const {
    return load_shared(cells + (code >> (30 - mapped_shapes::kCellBits) & ~3u));
  }
  __device__ __forceinline__ static uint32_t bin(uint32_t code, uint32_t cell) {
    return __umulhi(code << mapped_shapes::kCellBits, cell & 0xffff) + (cell >> 16);
  }

  __device__ __forceinline__ uint32_t bin(uint32_t code) const { return bin(code, load_cell(code)); }
};

// Loads the map of a row; a barrier must follow.
__device__ __forceinline__ void load_map(const MappedArguments& arguments, uint32_t row, uint32_t* map) {
  const uint4* const from = reinterpret_cast<const uint4*>(arguments.map + row * kMapCells);
  for (uint32_t i = threadIdx.x; i < kMapCells / 4; i += blockDim.x) reinterpret_cast<uint4*>(map)[i] = from[i];
}

// Where the word kAccepted lies in the upper bits of the workspace's indices.
__device__ __forceinline__ uint32_t* acceptance(const MappedArguments& arguments) {
  return &arguments.ordered[mapped_shapes::kTableBits * (arguments.regions() + 1) + threadIdx.x % 32].x;
}

// Are the rows sorted by the map? The radix sort that has run otherwise leaves no such word there: its indices are smaller.
__device__ __forceinline__ bool accepted(const MappedArguments& arguments) {
  const uint32_t word = __ldcg(acceptance(arguments));
  return __ballot_sync(~0u, word >> mapped_shapes::kIndexBits & 1) == kAccepted;
}

// Clears what later kernels count in, those of the radix sort too. Launched as any kernel, after all that came before has ended.
__global__ __launch_bounds__(kSampleThreads) void clear_tables_kernel(const __grid_constant__ MappedArguments arguments) {
  start_after_predecessor();
  const uint32_t stride = gridDim.x * kSampleThreads, own = blockIdx.x * kSampleThreads + threadIdx.x;
  for (uint32_t i = own; i < arguments.zeroed_words; i += stride) arguments.cells[i] = 0;
  for (uint32_t i = own; i < arguments.rows << arguments.tested_bits; i += stride) arguments.bins[i] = 0;
  for (uint32_t i = own; i < arguments.regions() * arguments.chunks_per_region; i += stride) arguments.chunk_of[i] = 0;
  for (uint32_t i = own; i < arguments.radix_words; i += stride) arguments.radix_tables[i] = 0;
  if (own < 32) *acceptance(arguments) = 0;
}

// Do the samples' neighbours differ from them, and lie on either side? Else nothing more is asked: the rows are sorted, or full of runs or
// of a few values.
__device__ __forceinline__ bool neighbours_differ(const MappedArguments& arguments) {
  const MappedControl& control = *arguments.control;
  const uint32_t few = (arguments.rows << arguments.sample_bits) / kAlikeShare;
  return __ldcg(&control.alike) <= few && __ldcg(&control.falls) > few && __ldcg(&control.rises) > few;
}

// One block to kBlockSamples of a row. The keys are read while the tables are cleared: they were there before that kernel began.
__global__ __launch_bounds__(kSampleThreads) void sample_cells_kernel(const __grid_constant__ MappedArguments arguments) {
  __shared__ uint32_t counts[kMapCells], ways[3];
  const uint32_t thread = threadIdx.x, blocks_per_row = (1u << arguments.sample_bits) / kBlockSamples;
  const uint32_t row = blockIdx.x / blocks_per_row, first = (blockIdx.x - row * blocks_per_row) * kBlockSamples;
  const uint32_t* const keys = arguments.keys_in + static_cast<uint64_t>(row) * arguments.length;
  const uint32_t width = arguments.length >> arguments.sample_bits;
  uint32_t key[kOwnSamples], next[kOwnSamples];
#pragma unroll
  for (int k = 0; k < kOwnSamples; ++k) {
    const uint32_t sample = first + k * kSampleThreads + thread;
    const uint32_t begin = static_cast<uint32_t>(static_cast<uint64_t>(arguments.length) * sample >> arguments.sample_bits);
    const uint32_t place = min(begin + __umulhi(scramble(sample + arguments.seed), width), arguments.length - 2);
    key[k] = __ldcg(keys + place);
    next[k] = __ldcg(keys + place + 1);
  }
  for (int cell = thread; cell < kMapCells; cell += kSampleThreads) counts[cell] = 0;
  if (thread < 3) ways[thread] = 0;
  start_after_predecessor();
  __syncthreads();
  uint32_t alike = 0, falls = 0, rises = 0;
#pragma unroll
  for (int k = 0; k < kOwnSamples; ++k) {
    const uint32_t code = arguments.codec.code(key[k]);
    const uint32_t next_code = arguments.codec.code(next[k]);
    alike += code == next_code;
    falls += code > next_code;
    rises += code < next_code;
    arguments.samples[(row << arguments.sample_bits) + first + k * kSampleThreads + thread] = code;
    atomicAdd(counts + (code >> (32 - mapped_shapes::kCellBits)), 1u);
  }
  alike = __reduce_add_sync(~0u, alike);
  falls = __reduce_add_sync(~0u, falls);
  rises = __reduce_add_sync(~0u, rises);
  if (thread % 32 == 0) {
    atomicAdd(ways, alike);
    atomicAdd(ways + 1, falls);
    atomicAdd(ways + 2, rises);
  }
  __syncthreads();
  if (thread < 3 && ways[thread] != 0) atomicAdd(&arguments.control->alike + thread, ways[thread]);
  for (int cell = thread; cell < kMapCells; cell += kSampleThreads) {
    if (counts[cell] != 0) atomicAdd(arguments.cells + row * kMapCells + cell, counts[cell]);
  }
}

// Some blocks to a row: each makes the map, the first writes it, and each counts a part of the samples by bin.
__global__ __launch_bounds__(kMapThreads) void make_map_kernel(const __grid_constant__ MappedArguments arguments) {
  start_after_predecessor();
  __shared__ uint32_t map[kMapCells + 1];
  __shared__ BlockScanStorage<uint32_t> scan;
  constexpr int kOwn = kMapCells / kMapThreads;
  constexpr uint32_t kBins = 1u << mapped_shapes::kBinBits;
  if (!neighbours_differ(arguments)) return;
  const uint32_t thread = threadIdx.x, blocks_per_row = gridDim.x / arguments.rows;
  const uint32_t row = blockIdx.x / blocks_per_row, part = blockIdx.x - row * blocks_per_row;
  const uint32_t* const cells = arguments.cells + row * kMapCells + thread * kOwn;
  uint32_t count[kOwn + 2], weight[kOwn], sum = 0, total;  // counts: of a neighbour on either side, too
  count[0] = thread == 0 ? 0 : cells[-1];
#pragma unroll
  for (int k = 0; k < kOwn; ++k) count[k + 1] = cells[k];
  count[kOwn + 1] = thread == kMapThreads - 1 ? 0 : cells[kOwn];
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    const float own = static_cast<float>(count[k + 1]), by_chance = kMostSmoothed * sqrtf(own) + 1;
    const float smooth = 0.25f * static_cast<float>(count[k] + 2 * count[k + 1] + count[k + 2]);
    sum += weight[k] = static_cast<uint32_t>(kSampleWeight * min(max(smooth, own - by_chance), own + by_chance)) + 1;
  }
  uint32_t before = block_exclusive_scan(sum, total, scan);
  const double bins_per_weight = static_cast<double>(kBins) / total;  // rises with `before`, and is below kBins, as total is below 2^24
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    map[thread * kOwn + k] = static_cast<uint32_t>(before * bins_per_weight);
    before += weight[k];
  }
  if (thread == 0) map[kMapCells] = kBins;
  __syncthreads();
  uint32_t entry[kOwn];
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    const uint32_t begin = map[thread * kOwn + k], end = map[thread * kOwn + k + 1];
    entry[k] = begin << 16 | min(end - begin, 0xffffu);
    // Keys of the cell: (end - begin) / 2^16 of the row's; codes: 2^(32 - kCellBits).
    const uint64_t most = (uint64_t{kMostPerCode} << (32 - mapped_shapes::kCellBits + mapped_shapes::kBinBits)) / arguments.length;
    if (part == 0 && end - begin > most) atomicAdd(&arguments.control->dense, 1u);
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    map[thread * kOwn + k] = entry[k];
    if (part == 0) arguments.map[row * kMapCells + thread * kOwn + k] = entry[k];
  }
  __syncthreads();
  const SampledMap code_map{shared_address(map)};
  const uint32_t* const samples = arguments.samples + (row << arguments.sample_bits);
  uint32_t* const bins = arguments.bins + (row << arguments.tested_bits);
  for (uint32_t i = part * kMapThreads + thread; i < 1u << arguments.sample_bits; i += blocks_per_row * kMapThreads) {
    uint32_t* const bin = bins + (code_map.bin(samples[i]) >> (mapped_shapes::kBinBits - arguments.tested_bits));
    // A value that is found often would make all threads meet at one counter.
    const uint32_t same = __match_any_sync(~0u, static_cast<uint32_t>(bin - bins));
    if (thread % 32 == static_cast<uint32_t>(__ffs(static_cast<int>(same)) - 1) && __ldcg(bin) < kCountedSamples)
      atomicAdd(bin, __popc(same));
  }
}

// A block to kJudgedBins bins of a row; the last one to report decides.
__global__ __launch_bounds__(kMapThreads) void judge_map_kernel(const __grid_constant__ MappedArguments arguments) {
  start_after_predecessor();
  __shared__ uint32_t reported;
  if (!neighbours_differ(arguments)) return;
  const uint32_t thread = threadIdx.x, row = (blockIdx.x * kJudgedBins) >> arguments.tested_bits;
  const auto pairs_of = [](uint32_t samples) { return samples * static_cast<unsigned long long>(samples - (samples != 0 ? 1 : 0)); };
  const uint4 bins = reinterpret_cast<const uint4*>(arguments.bins)[blockIdx.x * kMapThreads + thread];
  unsigned long long pairs = pairs_of(bins.x) + pairs_of(bins.y) + pairs_of(bins.z) + pairs_of(bins.w);
  const uint32_t most = __reduce_max_sync(~0u, max(max(bins.x, bins.y), max(bins.z, bins.w)));
  const int bucket_bits = arguments.tested_bits - arguments.region_bits - arguments.part_bits;                  // 0 to 2: bins of a bucket
  const uint32_t bucket_samples = 1u << (arguments.sample_bits - arguments.region_bits - arguments.part_bits);  // on average
  const auto too_large = [&](uint32_t samples) { return samples > 2 * bucket_samples ? 1u : 0u; };
  uint32_t large = bucket_bits == 2   ? too_large(bins.x + bins.y + bins.z + bins.w)
                   : bucket_bits == 1 ? too_large(bins.x + bins.y) + too_large(bins.z + bins.w)
                                      : too_large(bins.x) + too_large(bins.y) + too_large(bins.z) + too_large(bins.w);
  large = __reduce_add_sync(~0u, large);
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) pairs += __shfl_down_sync(~0u, pairs, distance);
  if (thread % 32 == 0) {
    atomicAdd(arguments.pairs + row, pairs);
    atomicMax(&arguments.control->most, most);
    if (large != 0) atomicAdd(&arguments.control->too_large, large);
    __threadfence();
  }
  __syncthreads();
  if (thread == 0) reported = atomicAdd(&arguments.control->judges, 1u);
  __syncthreads();
  if (reported + 1 != gridDim.x) return;
  const uint32_t samples = 1u << arguments.sample_bits, mean = samples >> arguments.tested_bits;
  const float by_chance = static_cast<float>(samples) * mean;
  bool good = thread >= arguments.rows || static_cast<float>(__ldcg(arguments.pairs + thread)) <= kMostMeetings * by_chance;
  const uint32_t buckets = arguments.regions() << arguments.part_bits;
  const MappedControl& control = *arguments.control;
  good = good && __ldcg(&control.most) <= 20 + 2 * mean && __ldcg(&control.dense) == 0 && __ldcg(&control.too_large) <= 4 + buckets / 1024;
  const bool all_good = __syncthreads_and(good);
  if (thread == 0) reinterpret_cast<RadixControl*>(arguments.radix_tables)->called_off = all_good;
  if (thread < 32 && all_good) *acceptance(arguments) = (kAccepted >> thread & 1) << mapped_shapes::kIndexBits;
}

}  // namespace gpusort
