// Sample sort of long rows in one launch: all blocks are resident and meet at two grid barriers.
//
//   tiles      each tile of a row is sorted on chip and goes to the workspace as (code, index) words, with 32 samples
//   barrier
//   splitters  each tile's samples are ranked among all samples of the row; those of the right ranks are splitters
//   barrier
//   buckets    a bucket's part of every sorted tile is found by bisection, first among the samples, then between two of them; the parts
//              are pulled through L2, sorted on chip and written in place
//
// Words differ, so equal keys are divided like any others; plan/grid_sort_plan.h bounds every bucket. One that is longer than a block can
// sort is cut once more by samples of its own (sort_in_pieces). Sources: Shi, Schaeffer, "Parallel sorting by regular sampling" (1992);
// Leischner, Osipov, Sanders, "GPU sample sort" (2010). Cost: the keys are read once and the results written once; words go to L2 and back.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>
#include <type_traits>

#include "../primitives/dependent_launch.cuh"
#include "exact_words.cuh"
#include "grid_sort_arguments.cuh"
#include "packed_words.cuh"

namespace gpusort {

// The block's own variables.
template <class Word>
struct GridSortNotes {
  int low[kGridMaxTilesPerRow];  // the bucket's part of each tile: [low, high)
  int high[kGridMaxTilesPerRow];
  int run_start[kGridMaxTilesPerRow];  // of that part among what is pulled
  int count;                           // pulled in all
  int base;                            // words of the row before the bucket
  BlockSortNotes<typename WordTraits<Word>::Code> sort;
  int ranks[kGridSamples];  // of a tile's samples in the row
  Word piece_splitters[kGridMaxPieces];
};

template <class Word, int kThreads, int kItems, GridWords kWords>
struct GridSortBlock {
  using Traits = WordTraits<Word>;
  using Code = typename Traits::Code;
  using TileWords = std::conditional_t<kWords == GridWords::kPacked, PackedWords<Word>, ExactWords>;
  using BucketWords = std::conditional_t<kWords == GridWords::kExact, ExactWords, PackedWords<Word>>;
  static constexpr int kBucketItems = 2 * kItems;
  static constexpr int kMiddleItems = kItems + kItems / 2;  // enough for most buckets
  static_assert(kThreads >= 2 * kGridMaxTilesPerRow, "a thread for either end of a bucket in every tile");

  const GridSortArguments<Word>& arguments;
  GridSortNotes<Word>& notes;
  TileWords tile_sort;
  BucketWords bucket_sort;    // in the same memory
  SharedWords<Word> samples;  // [tile][kGridSamples] of one row
  int thread;

  __device__ __forceinline__ GridSortBlock(const GridSortArguments<Word>& all_arguments, GridSortNotes<Word>& all_notes, char* storage)
      : arguments(all_arguments),
        notes(all_notes),
        tile_sort(storage, kThreads * kBucketItems),
        bucket_sort(storage, kThreads * kBucketItems),
        samples(storage + grid_sort_bytes(Traits::kWide, kWords, kThreads * kBucketItems), all_arguments.tiles_per_row * kGridSamples),
        thread(static_cast<int>(threadIdx.x)) {}

  __device__ __forceinline__ int length_of_tile(int tile_of_row) const {
    return min(arguments.tile_length, arguments.length - tile_of_row * arguments.tile_length);
  }
  __device__ __forceinline__ const GlobalWord<Word>* tile_words(int row, int tile_of_row) const {
    return arguments.words + static_cast<int64_t>(row * arguments.tiles_per_row + tile_of_row) * arguments.tile_length;
  }

  __device__ __forceinline__ void sort_tile(int tile) const {
    const int row = tile / arguments.tiles_per_row, tile_of_row = tile - row * arguments.tiles_per_row;
    const int first = tile_of_row * arguments.tile_length, length = length_of_tile(tile_of_row);
    const int64_t offset = static_cast<int64_t>(row) * arguments.length + first;
    Code keys[kItems];
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      const int place = min(e * kThreads + thread, length - 1);
      keys[e] = load_key<Code>(arguments.keys_in, arguments.key_bytes, offset + place);
    }
    const int shift = key_shift<Code>(arguments.key_bytes);
    Word own[kItems];
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      own[e] = Traits::make(arguments.order.code(keys[e] << shift), static_cast<uint32_t>(first + e * kThreads + thread));
    }
    tile_sort.template sort<kThreads>(notes.sort, own, length);
    constexpr int kPlaces = kThreads * kItems;
    GlobalWord<Word>* to = arguments.words + static_cast<int64_t>(tile) * arguments.tile_length;
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      const int rank = e * kThreads + thread;
      if (rank < length) to[rank].store(tile_sort.template word_of_rank<kPlaces>(rank));
    }
    if (thread < kGridSamples) {
      const int sample_offset = grid_sample_offset(tile_of_row, arguments.gap);
      const bool real = thread < grid_sample_count(length, sample_offset, arguments.gap);
      const int rank = grid_sample_place(thread, sample_offset, arguments.gap);
      arguments.samples[tile * kGridSamples + thread].store(real ? tile_sort.template word_of_rank<kPlaces>(rank) : last_word<Word>());
    }
  }

  __device__ __forceinline__ void load_samples(int row) const {
    constexpr int kBatch = 8;
    __syncthreads();
    const int count = arguments.tiles_per_row * kGridSamples;
    const GlobalWord<Word>* from = arguments.samples + row * count;
#pragma unroll 1
    for (int first = thread; first < count; first += kBatch * kThreads) {  // loads beyond the end read the last sample again
      Word batch[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) batch[i] = from[min(first + i * kThreads, count - 1)].load();
#pragma unroll
      for (int i = 0; i < kBatch; ++i) samples.set(min(first + i * kThreads, count - 1), batch[i]);
    }
    __syncthreads();
  }

  // How many samples of a tile come before a word.
  __device__ __forceinline__ int samples_before(int tile_of_row, const Word& word) const {
    const int first = tile_of_row * kGridSamples;
    int before = 0;
#pragma unroll
    for (int step = kGridSamples / 2; step > 0; step /= 2) before += samples.get(first + before + step - 1) < word ? step : 0;
    return before + (samples.get(first + before) < word ? 1 : 0);
  }

  // The same of a sample of tile `own`, whose place there is `place`. Of wide words the codes are enough: where they are equal, the earlier
  // tile's go first.
  __device__ __forceinline__ int samples_before_sample(int tile_of_row, const Word& sample, int own, int place) const {
    if constexpr (Traits::kWide) {
      const bool earlier = tile_of_row < own;
      const Code limit = Traits::code(sample) + (earlier ? 1 : 0);  // the codes below it come before
      const int first = tile_of_row * kGridSamples;
      int before = 0;
#pragma unroll
      for (int step = kGridSamples / 2; step > 0; step /= 2) before += samples.code(first + before + step - 1) < limit ? step : 0;
      before += samples.code(first + before) < limit ? 1 : 0;
      if (tile_of_row == own) before = place;
      if (earlier && limit == 0) {  // all there are, without the padding
        before = grid_sample_count(length_of_tile(tile_of_row), grid_sample_offset(tile_of_row, arguments.gap), arguments.gap);
      }
      return before;
    } else {
      return samples_before(tile_of_row, sample);
    }
  }

  // Bucket b begins with the sample of rank floor(b * samples / tiles). Each lane ranks one sample of the tile; a warp looks into one tile
  // at a time, whose samples lie in different banks.
  __device__ __forceinline__ void choose_splitters(int row, int tile_of_row) const {
    const int lane = thread % 32, tiles = arguments.tiles_per_row;
    if (thread < kGridSamples) notes.ranks[thread] = 0;
    __syncthreads();
    const Word sample = samples.get(tile_of_row * kGridSamples + lane);
    int rank_in_some = 0;
    constexpr int kBatch = 4, kWarps = kThreads / 32;
#pragma unroll 1
    for (int first = thread / 32; first < tiles; first += kBatch * kWarps) {
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int other = first + i * kWarps, before = samples_before_sample(min(other, tiles - 1), sample, tile_of_row, lane);
        rank_in_some += other < tiles ? before : 0;
      }
    }
    atomicAdd(&notes.ranks[lane], rank_in_some);
    __syncthreads();
    if (thread < kGridSamples && Traits::index(sample) != kNoIndex) {
      const int rank = notes.ranks[thread];
      const int bucket = (rank * tiles + arguments.samples_per_row - 1) / arguments.samples_per_row;
      const bool begins = bucket > 0 && bucket < tiles && bucket * arguments.samples_per_row / tiles == rank;
      if (begins) arguments.splitters[row * tiles + bucket].store(sample);
    }
    static_assert(kGridSamples == 32, "a lane to each sample of a tile");
  }

  // The first place of [low, high) whose word does not come before `word`: eight probes at a time, since a load takes long and eight take
  // hardly longer.
  __device__ __forceinline__ int first_not_before(const GlobalWord<Word>* from, int low, int high, const Word& word) const {
    constexpr int kProbes = 8;
    while (low < high) {
      const int stride = (high - low + kProbes - 1) / kProbes;
      Word probes[kProbes];
#pragma unroll
      for (int i = 0; i < kProbes; ++i) probes[i] = from[min(low + (i + 1) * stride, high) - 1].load();
      int before = 0;
#pragma unroll
      for (int i = 0; i < kProbes; ++i) before += probes[i] < word ? 1 : 0;
      low = min(low + before * stride, high);  // probes rise: the first `before` of them come before the word
      high = min(high, low + stride - 1);
    }
    return low;
  }

  // The bucket's part of every tile: one half of the threads finds where the parts begin, the other where they end.
  __device__ __forceinline__ void find_bucket(int row, int bucket) const {
    const bool upper = thread >= kThreads / 2;
    const int tile_of_row = thread - (upper ? kThreads / 2 : 0), border = bucket + (upper ? 1 : 0);
    if (tile_of_row < arguments.tiles_per_row) {
      const int length = length_of_tile(tile_of_row);
      int place = 0;
      if (border == arguments.tiles_per_row) {
        place = length;
      } else if (border > 0) {
        const Word splitter = arguments.splitters[row * arguments.tiles_per_row + border].load();
        const int before = samples_before(tile_of_row, splitter);
        const int offset = grid_sample_offset(tile_of_row, arguments.gap);
        const int begin = before > 0 ? grid_sample_place(before - 1, offset, arguments.gap) + 1 : 0;
        const int end = min(length, grid_sample_place(before, offset, arguments.gap));
        place = first_not_before(tile_words(row, tile_of_row), begin, end, splitter);
      }
      (upper ? notes.high : notes.low)[tile_of_row] = place;
    }
  }

  // Lays the parts [low, high) of all tiles one after the other, or (kSampled) every piece_gap-th word of each. Returns how many they are.
  template <bool kSampled>
  __device__ __forceinline__ int lay_out_runs() const {
    constexpr int kPerLane = kGridMaxTilesPerRow / 32;
    __syncthreads();
    if (thread < 32) {
      int counts[kPerLane], before = 0, sum = 0;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) {
        const int tile_of_row = thread * kPerLane + i;
        counts[i] = 0;
        if (tile_of_row < arguments.tiles_per_row) {
          counts[i] = notes.high[tile_of_row] - notes.low[tile_of_row];
          before += notes.low[tile_of_row];
        }
        if constexpr (kSampled) counts[i] /= arguments.piece_gap;
        sum += counts[i];
      }
      int through = sum;
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const int other = __shfl_up_sync(kWholeWarp, through, distance);
        if (thread >= distance) through += other;
      }
      before = __reduce_add_sync(kWholeWarp, before);
      if (thread == 31) {
        notes.count = through;
        notes.base = before;
      }
      int start = through - sum;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) {
        notes.run_start[thread * kPerLane + i] = start;
        start += counts[i];
      }
    }
    __syncthreads();
    return notes.count;
  }

  // Pulls what is laid out: pulled[e] is the word of place e * kThreads + thread, from `count` places on the last one.
  template <int kPulled, bool kSampled>
  __device__ __forceinline__ void pull_runs(int row, int count, Word (&pulled)[kPulled]) const {
#pragma unroll
    for (int e = 0; e < kPulled; ++e) {
      const int position = min(e * kThreads + thread, count - 1);
      int tile_of_row = 0;  // the last one that starts at or before the position; empty ones start where the next does
#pragma unroll
      for (int step = kGridMaxTilesPerRow / 2; step > 0; step /= 2) {
        tile_of_row += notes.run_start[tile_of_row + step] <= position ? step : 0;
      }
      const int in_run = position - notes.run_start[tile_of_row];
      const int place = notes.low[tile_of_row] + (kSampled ? (in_run + 1) * arguments.piece_gap - 1 : in_run);
      pulled[e] = tile_words(row, tile_of_row)[place].load();
    }
  }

  // Pulls what is laid out and sorts it into `words`.
  template <int kPulled, bool kSampled>
  __device__ __forceinline__ void sort_runs(int row, int count) const {
    if (count == 0) return;
    Word pulled[kPulled];
    pull_runs<kPulled, kSampled>(row, count, pulled);
    bucket_sort.template sort<kThreads>(notes.sort, pulled, count);
  }

  // A key from its word: the code alone tells it, unless it is a zero or a NaN (or may be one).
  __device__ __forceinline__ Code key_of(const Word& word, int64_t row_offset) const {
    const Code code = Traits::code(word) ^ arguments.order.complement;
    if (code == arguments.order.zero || code >= arguments.order.clamp) {
      const Code key = load_key<Code>(arguments.keys_in, arguments.key_bytes, row_offset + Traits::index(word));
      return key << key_shift<Code>(arguments.key_bytes);
    }
    return arguments.order.from_ordered(code - (code < arguments.order.zero ? 1 : 0));
  }

  // Writes `count` words, sorted by sort_runs<kPulled>, as places [base, base + count) of the row.
  template <int kPulled>
  __device__ __forceinline__ void write(int row, int base, int count) const {
    const int64_t row_offset = static_cast<int64_t>(row) * arguments.length, to = row_offset + base;
#pragma unroll 2
    for (int place = thread; place < count; place += kThreads) {
      const Word word = bucket_sort.template word_of_rank<kThreads * kPulled>(place);
      if (arguments.indices_wide) arguments.indices_wide[to + place] = Traits::index(word);
      if (arguments.indices_narrow) arguments.indices_narrow[to + place] = static_cast<int32_t>(Traits::index(word));
      if (arguments.keys_out) store_key<Code>(arguments.keys_out, arguments.key_bytes, to + place, key_of(word, row_offset));
    }
  }

  // A bucket above the capacity: the splitters of its pieces are every piece_samples-th of its samples.
  __device__ __forceinline__ void sort_in_pieces(int row) const {
    int base = notes.base;
    const int sample_count = lay_out_runs<true>();
    sort_runs<kBucketItems, true>(row, sample_count);
    const int splitters = (sample_count - 1) / arguments.piece_samples;
    if (thread < splitters) {
      notes.piece_splitters[thread] = bucket_sort.template word_of_rank<kThreads * kBucketItems>((thread + 1) * arguments.piece_samples);
    }
    const bool has_tile = thread < arguments.tiles_per_row;
    const int end = has_tile ? notes.high[thread] : 0;
    for (int piece = 0; piece <= splitters; ++piece) {
      __syncthreads();
      if (has_tile) {
        if (piece > 0) notes.low[thread] = notes.high[thread];
        notes.high[thread] =
            piece < splitters ? first_not_before(tile_words(row, thread), notes.low[thread], end, notes.piece_splitters[piece]) : end;
      }
      const int count = lay_out_runs<false>();
      sort_runs<kBucketItems, false>(row, count);
      write<kBucketItems>(row, base, count);
      base += count;
    }
  }
};

// Out of line, so that the rare path takes no registers from the common one.
template <class Word, int kThreads, int kItems, GridWords kWords>
__device__ __noinline__ void sort_bucket_in_pieces(const GridSortArguments<Word>* arguments, GridSortNotes<Word>* notes, char* storage,
                                                   int row) {
  GridSortBlock<Word, kThreads, kItems, kWords>(*arguments, *notes, storage).sort_in_pieces(row);
}

// The whole sort. All blocks of the grid call.
template <class Word, int kThreads, int kItems, GridWords kWords>
__device__ __forceinline__ void sort_by_tiles(const GridSortArguments<Word>& arguments, GridSortNotes<Word>& notes, char* storage) {
  using Block = GridSortBlock<Word, kThreads, kItems, kWords>;
  const Block block(arguments, notes, storage);
  const int step = static_cast<int>(gridDim.x), first = static_cast<int>(blockIdx.x);
  const int tiles_per_row = arguments.tiles_per_row;

  for (int tile = first; tile < arguments.tiles; tile += step) {
    if (tile != first) __syncthreads();  // the words of the tile before are not read any more
    block.sort_tile(tile);
  }
  cooperative_groups::this_grid().sync();

  int loaded_row = -1;
  const auto visit = [&](int tile) {
    const int row = tile / tiles_per_row;
    if (row != loaded_row) block.load_samples(row);
    loaded_row = row;
    return row;
  };
  for (int tile = first; tile < arguments.tiles; tile += step) {
    const int row = visit(tile);
    block.choose_splitters(row, tile - row * tiles_per_row);
  }
  cooperative_groups::this_grid().sync();

  for (int tile = first; tile < arguments.tiles; tile += step) {
    const int row = visit(tile);
    __syncthreads();  // the notes of the bucket before are not read any more
    block.find_bucket(row, tile - row * tiles_per_row);
    const int count = block.template lay_out_runs<false>();
    if (count > arguments.bucket_capacity) {
      sort_bucket_in_pieces<Word, kThreads, kItems, kWords>(&arguments, &notes, storage, row);
      continue;
    }
    const int base = notes.base;
    if (Block::kMiddleItems < Block::kBucketItems && count <= Block::kMiddleItems * kThreads) {
      block.template sort_runs<Block::kMiddleItems, false>(row, count);
      block.template write<Block::kMiddleItems>(row, base, count);
    } else {
      block.template sort_runs<Block::kBucketItems, false>(row, count);
      block.template write<Block::kBucketItems>(row, base, count);
    }
  }
}

template <class Word, int kThreads, int kItems, GridWords kWords>
__global__ void __launch_bounds__(kThreads, grid_sort_shapes::blocks_per_sm(kThreads, kItems))
    grid_sort_kernel(const __grid_constant__ GridSortArguments<Word> arguments) {
  start_after_predecessor();
  extern __shared__ uint4 shared_memory[];
  __shared__ GridSortNotes<Word> notes;
  sort_by_tiles<Word, kThreads, kItems, kWords>(arguments, notes, reinterpret_cast<char*>(shared_memory));
}

}  // namespace gpusort
