// Sample sort of long rows of 32-bit keys in one launch, without sorting anything that will be sorted again.
//
//   samples    every block takes the same keys of its row, kGridPartitionSamples to a bucket, and sorts them: the splitters, without asking
//              another block
//   partition  a block finds the bucket of each key of its tile, leaves the tile in the workspace in order of buckets, as (code, index)
//              words, and writes into a table where each bucket's words are
//   barrier
//   buckets    a block pulls the words of its bucket from all tiles through L2, sorts them on chip and writes them in place
//
// Samples lie at places that a hash shifts, so that no common input makes buckets long. One that is longer than a block's shared memory
// holds is possible all the same; whoever sees it says so, all blocks meet again before they write, and if anything was said they sort by
// sorted tiles, where no input can make a bucket too long (grid_sort_kernel.cuh). Words differ, so equal keys are divided like any others.
// Until all have met, the results' memory may hold the table.
// Sources: Frazer, McKellar, "Samplesort" (1970); Leischner, Osipov, Sanders, "GPU sample sort" (2010). Cost: the keys are read once, the
// samples once by each block, and the results written once; words go to L2 and back.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>
#include <utility>

#include "../primitives/block_scan.cuh"
#include "../primitives/dependent_launch.cuh"
#include "grid_sort_kernel.cuh"
#include "grid_spread.cuh"

namespace gpusort {

struct GridPartitionArguments : GridSortArguments<uint64_t> {
  uint32_t* table = nullptr;     // [row][bucket][tile]: where the bucket begins in the tile, and above 16 bits, how many words it has there
  uint32_t* overflow = nullptr;  // not 0: a bucket was too long
  uint64_t sample_step = 0;      // between samples, times 2^32
};

struct GridPartitionNotes {
  GridSortNotes<uint64_t> grid;
  GridSpreadNotes spread;
  uint64_t tree[kGridMaxTilesPerRow];    // the splitters as a search tree, level by level: node k has the children 2k and 2k + 1
  uint32_t counts[kGridMaxTilesPerRow];  // of a tile's words in the buckets
  uint32_t starts[kGridMaxTilesPerRow];
};

template <int kThreads, int kItems>
__device__ __noinline__ void sort_crowded_samples(const GridPartitionArguments* arguments, GridPartitionNotes* notes, char* storage,
                                                  int row);

template <int kThreads, int kItems>
struct GridPartitionBlock : GridSortBlock<uint64_t, kThreads, kItems, GridWords::kPackedBuckets> {
  using Word = uint64_t;
  using Traits = WordTraits<Word>;
  using Base = GridSortBlock<Word, kThreads, kItems, GridWords::kPackedBuckets>;
  using Base::key_of;
  using Base::length_of_tile;
  using Base::thread;
  static constexpr int kLevels = 7;
  static constexpr int kSampleItems = grid_partition_sample_items(kThreads);
  static constexpr int kMostItems = grid_partition_most_items(kThreads, kItems);
  static_assert(1 << kLevels == kGridMaxTilesPerRow, "");

  const GridPartitionArguments& arguments;
  GridPartitionNotes& notes;
  char* storage;
  GridSpread<kThreads, kMostItems, grid_partition_bin_items(kItems)> spread;

  __device__ __forceinline__ GridPartitionBlock(const GridPartitionArguments& all_arguments, GridPartitionNotes& all_notes,
                                                char* shared_storage)
      : Base(all_arguments, all_notes.grid, shared_storage),
        arguments(all_arguments),
        notes(all_notes),
        storage(shared_storage),
        spread(all_arguments.order, all_notes.spread, shared_storage) {}

  __device__ __forceinline__ const uint32_t* row_keys(int row) const {
    return static_cast<const uint32_t*>(arguments.keys_in) + static_cast<int64_t>(row) * arguments.length;
  }

  static __device__ __forceinline__ int tree_node(int splitter) {
    const int height = __ffs(splitter) - 1;  // above the lowest inner level
    return (1 << (kLevels - 1 - height)) + (splitter >> (height + 1));
  }

  __device__ __forceinline__ void load_samples(int row, Word (&samples)[kSampleItems]) const {
    const uint32_t* from = row_keys(row);
    uint32_t keys[kSampleItems], places[kSampleItems];
#pragma unroll
    for (int e = 0; e < kSampleItems; ++e) {
      const uint32_t sample = min(e * kThreads + thread, sample_count() - 1);
      places[e] = grid_partition_sample_place(sample, arguments.sample_step);
      keys[e] = from[places[e]];
    }
#pragma unroll
    for (int e = 0; e < kSampleItems; ++e) samples[e] = Traits::make(arguments.order.code(keys[e]), places[e]);
  }

  __device__ __forceinline__ int sample_count() const {
    return arguments.tiles_per_row * kGridPartitionSamples;
  }

  // Bucket b begins with the sample of rank b * kGridPartitionSamples.
  __device__ __forceinline__ void take_sample(int rank, const Word& word) const {
    if (rank % kGridPartitionSamples == 0 && rank > 0) notes.tree[tree_node(rank / kGridPartitionSamples)] = word;
  }

  // Where distribution fails at first: calls take(rank, word) for each word. All threads call.
  template <int kSorted, class Take>
  __device__ __forceinline__ void sort_crowded(Word (&words)[kSorted], int count, Take take) const {
    __syncthreads();
    if (spread.sort_with_equals(words, count, take)) return;
    __syncthreads();
    const ExactWords sorter(storage, kThreads * kSorted);
    sorter.template sort<kThreads>(notes.grid.sort, words, count);
    for (int rank = thread; rank < count; rank += kThreads) take(rank, sorter.template word_of_rank<kThreads * kSorted>(rank));
  }

  __device__ __forceinline__ void scan_counts() const {
    constexpr int kPerLane = kGridMaxTilesPerRow / 32;
    if (thread < 32) {
      uint32_t counts[kPerLane], sum = 0;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) {
        counts[i] = notes.counts[thread * kPerLane + i];
        sum += counts[i];
      }
      uint32_t start = warp_inclusive_scan(sum) - sum;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) {
        notes.starts[thread * kPerLane + i] = start;
        start += counts[i];
      }
    }
    __syncthreads();
  }

  __device__ __forceinline__ void partition_tile(int tile) const {
    const int buckets = arguments.tiles_per_row;
    const int row = tile / buckets, tile_of_row = tile - row * buckets;
    const int first = tile_of_row * arguments.tile_length, length = length_of_tile(tile_of_row);
    const uint32_t* from = row_keys(row);
    uint32_t keys[kItems];
    Word samples[kSampleItems];
    load_samples(row, samples);
#pragma unroll
    for (int e = 0; e < kItems; ++e) keys[e] = from[first + min(e * kThreads + thread, length - 1)];
    if (thread < kGridMaxTilesPerRow) notes.counts[thread] = 0;
    if (thread >= buckets && thread < kGridMaxTilesPerRow) notes.tree[tree_node(thread)] = last_word<Word>();
    if (!spread.sort(samples, sample_count(), [&](int rank, const Word& word) { take_sample(rank, word); })) {
      sort_crowded_samples<kThreads, kItems>(&arguments, &notes, storage, row);
    }
    __syncthreads();

    Word words[kItems];
    uint32_t bucket[kItems], number[kItems];
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      words[e] = Traits::make(arguments.order.code(keys[e]), static_cast<uint32_t>(first + e * kThreads + thread));
      bucket[e] = 1;
    }
#pragma unroll
    for (int level = 0; level < kLevels; ++level) {
#pragma unroll
      for (int e = 0; e < kItems; ++e) bucket[e] = 2 * bucket[e] + (words[e] >= notes.tree[bucket[e]] ? 1 : 0);
    }
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      bucket[e] -= kGridMaxTilesPerRow;
      number[e] = spread.count_word(notes.counts, bucket[e], e * kThreads + thread < length);
    }
    __syncthreads();
    scan_counts();
    if (thread < buckets) {
      __stcg(&arguments.table[(row * buckets + thread) * buckets + tile_of_row], notes.starts[thread] | notes.counts[thread] << 16);
    }
    uint64_t* staged = spread.slots;
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      if (e * kThreads + thread < length) staged[notes.starts[bucket[e]] + number[e]] = words[e];
    }
    __syncthreads();
    GlobalWord<Word>* to = arguments.words + static_cast<int64_t>(tile) * arguments.tile_length;
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      const int place = e * kThreads + thread;
      if (place < length) to[place].store(staged[place]);
    }
  }

  // Reads from the table where the bucket's words lie. Returns how many there are; notes.grid.base are those of the row before them.
  __device__ __forceinline__ int find_runs(int row, int bucket) const {
    const int buckets = arguments.tiles_per_row;
    __syncthreads();
    if (thread < buckets) {
      const uint32_t entry = __ldcg(&arguments.table[(row * buckets + bucket) * buckets + thread]);
      notes.grid.low[thread] = static_cast<int>(entry & 0xffff);
      notes.grid.high[thread] = static_cast<int>((entry & 0xffff) + (entry >> 16));
    }
    return Base::template lay_out_runs<false>();
  }

  __device__ __forceinline__ void write_word(int64_t row_offset, int64_t to, const Word& word) const {
    if (arguments.indices_wide) arguments.indices_wide[to] = Traits::index(word);
    if (arguments.indices_narrow) arguments.indices_narrow[to] = static_cast<int32_t>(Traits::index(word));
    if (arguments.keys_out) static_cast<uint32_t*>(arguments.keys_out)[to] = key_of(word, row_offset);
  }

  // False, for all threads and with nothing written, when the words do not spread. Calls meet() once before anything is written.
  template <int kPulled, class Meet>
  __device__ __forceinline__ bool spread_bucket(int row, int base, int count, Meet meet) const {
    const int64_t row_offset = static_cast<int64_t>(row) * arguments.length, to = row_offset + base;
    Word pulled[kPulled];
    Base::template pull_runs<kPulled, false>(row, count, pulled);
    meet();
    return spread.sort(pulled, count, [&](int rank, const Word& word) { write_word(row_offset, to + rank, word); });
  }

  template <int kPulled>
  __device__ __forceinline__ void sort_crowded_bucket(int row, int base, int count) const {
    const int64_t row_offset = static_cast<int64_t>(row) * arguments.length, to = row_offset + base;
    Word pulled[kPulled];
    Base::template pull_runs<kPulled, false>(row, count, pulled);
    sort_crowded(pulled, count, [&](int rank, const Word& word) { write_word(row_offset, to + rank, word); });
  }
};

// The rare rest, out of line so that it takes no registers from the common path.
template <int kThreads, int kItems>
__device__ void sort_crowded_samples(const GridPartitionArguments* arguments, GridPartitionNotes* notes, char* storage, int row) {
  using Block = GridPartitionBlock<kThreads, kItems>;
  const Block block(*arguments, *notes, storage);
  uint64_t samples[Block::kSampleItems];
  block.load_samples(row, samples);
  block.sort_crowded(samples, block.sample_count(), [&](int rank, const uint64_t& word) { block.take_sample(rank, word); });
}

template <int kThreads, int kItems>
__device__ __noinline__ void sort_crowded_bucket(const GridPartitionArguments* arguments, GridPartitionNotes* notes, char* storage, int row,
                                                 int base, int count) {
  const GridPartitionBlock<kThreads, kItems> block(*arguments, *notes, storage);
  if (count <= kThreads * 2 * kItems) {
    block.template sort_crowded_bucket<2 * kItems>(row, base, count);
  } else {
    block.template sort_crowded_bucket<kGridPartitionMost * kItems>(row, base, count);
  }
}

template <int kThreads, int kItems>
__device__ __noinline__ void sort_all_by_tiles(const GridPartitionArguments* arguments, GridPartitionNotes* notes, char* storage) {
  sort_by_tiles<uint64_t, kThreads, kItems, GridWords::kPackedBuckets>(*arguments, notes->grid, storage);
}

template <int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads, 1) grid_partition_kernel(const __grid_constant__ GridPartitionArguments arguments) {
  start_after_predecessor();
  using Block = GridPartitionBlock<kThreads, kItems>;
  extern __shared__ uint4 shared_memory[];
  __shared__ GridPartitionNotes notes;
  char* storage = reinterpret_cast<char*>(shared_memory);
  const Block block(arguments, notes, storage);
  const int tile = static_cast<int>(blockIdx.x), row = tile / arguments.tiles_per_row;
  const auto grid = cooperative_groups::this_grid();
  if (tile == 0 && threadIdx.x == 0) __stcg(arguments.overflow, 0u);
  block.partition_tile(tile);
  grid.sync();

  const int count = block.find_runs(row, tile - row * arguments.tiles_per_row), base = notes.grid.base;
  const bool too_long = count > kThreads * kGridPartitionMost * kItems;
  if (too_long && threadIdx.x == 0) __stcg(arguments.overflow, 1u);
  auto arrival = grid.barrier_arrive();
  uint32_t overflow = 0;
  // All have read the table, which may lie where results will: asked while the words are on their way, when hardly anybody has to wait.
  const auto meet = [&] {
    grid.barrier_wait(std::move(arrival));
    overflow = __ldcg(arguments.overflow);
  };
  if (count == 0 || too_long) {
    meet();
  } else {
    bool sorted;
    if (kItems > 1 && count <= kThreads * kItems) {
      sorted = block.template spread_bucket<kItems>(row, base, count, meet);
    } else if (count <= kThreads * 2 * kItems) {
      sorted = block.template spread_bucket<2 * kItems>(row, base, count, meet);
    } else {
      sorted = block.template spread_bucket<kGridPartitionMost * kItems>(row, base, count, meet);
    }
    if (!sorted) sort_crowded_bucket<kThreads, kItems>(&arguments, &notes, storage, row, base, count);
  }
  if (overflow == 0) return;
  grid.sync();  // nobody writes results any more
  sort_all_by_tiles<kThreads, kItems>(&arguments, &notes, storage);
}

}  // namespace gpusort
