// See high_word_ties.h.
//
// The keys rise by the digits that were sorted by, say their high words. So a key with a larger code than the one after it, a drop, has the
// same high word, and a run of equal high words without a drop is sorted: that is so for keys that are equal, however many. Three kernels,
// since no run may be changed while others look for drops:
//
//   find   reads all keys and notes the start of each run that has a drop, once (H200, 2^26 random keys: 2^19 runs, 177 us; without drops
//          157)
//   mend   one thread for each noted run sorts it by insertion, which keeps equal keys in the order of their indices (57 us). Runs that
//          turn out to be long are noted again, with both ends
//   rest   one block for each of these sorts (rest of the key, place) in shared memory by a bitonic network (Batcher, 1968). Or, if they
//          are too long or too many, everything is prepared for the sort by all digits
//
// In `mend` others may read keys that move, but only to compare high words, and those are equal all over the run.
//
// Where the runs are small groups (RadixControl::small_groups) the first kernel, or one before it, orders them while it writes the outputs
// (close_groups.cuh, close_windows.cu), and notes long ones that have a drop, for which the second one finds both ends.
#include "high_word_ties.h"

#include <cuda_runtime.h>

#include <algorithm>

#include "../primitives/dependent_launch.cuh"
#include "borrowed_indices.cuh"
#include "close_groups.cuh"
#include "close_windows.h"
#include "group_notes.cuh"
#include "radix_control.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kRows = 8;  // of 32 keys that a warp looks at together
constexpr uint32_t kChunk = kRows * 32;
constexpr uint32_t kMostNotes = kChunk / 2;  // of a chunk: two drops of different runs are not neighbours
constexpr int kBlocksPerSm = 4;              // all resident at once
constexpr int kRestThreads = 1024;

// Lists in the memory of the records.
struct TieLists {
  uint32_t most_long_runs;
  uint2* long_runs;  // begin and end
  uint32_t* counts;  // by block: of its notes
  uint32_t* notes;

  GPUSORT_HD TieLists(void* records, uint32_t blocks, uint32_t length)
      : most_long_runs(length / 16 < kMostLongRuns ? length / 16 : kMostLongRuns),
        long_runs(static_cast<uint2*>(records)),
        counts(reinterpret_cast<uint32_t*>(long_runs + most_long_runs)),
        notes(counts + blocks) {}

  // The notes of this block.
  __device__ __forceinline__ uint32_t* own_notes(uint32_t length) const {
    const uint32_t chunks = (length - 1) / kChunk + 1;
    const uint32_t rounds = (chunks - 1) / (gridDim.x * kWarps) + 1;
    return notes + static_cast<uint64_t>(blockIdx.x) * rounds * (kWarps * kMostNotes);
  }
};

struct TieArguments {
  PassArguments<uint64_t> pass;
  HighWordTables tables;
  TieLists lists;
};

// The items of the outputs. Of int64 indices the lower halves alone: the upper ones are zero, or the tables' (borrowed_indices.cuh).
template <class Index>
struct TiedItems {
  static constexpr bool kIndexed = !std::is_same_v<Index, NoIndex>;
  const KeyCodec<uint64_t>& codec;
  const uint32_t shift;  // of the digits that are sorted by
  uint64_t* keys;
  uint32_t* indices;
  uint32_t length;

  __device__ __forceinline__ TiedItems(const PassArguments<uint64_t>& arguments, uint32_t lowest)
      : codec(arguments.codec),
        shift(lowest),
        keys(arguments.keys_out),
        indices(static_cast<uint32_t*>(arguments.indices_out)),
        length(arguments.length) {}

  __device__ __forceinline__ uint32_t& index(uint32_t i) const { return indices[i * uint64_t{sizeof(Index) / 4}]; }
  __device__ __forceinline__ uint64_t code(uint32_t i) const { return codec.code(keys[i]); }
  __device__ __forceinline__ uint64_t leading(uint32_t i) const { return code(i) >> shift; }

  // Sorts [begin, end) by insertion.
  __device__ __forceinline__ void insert(uint32_t begin, uint32_t end) const {
    uint64_t before = code(begin);
    for (uint32_t next = begin + 1; next < end; ++next) {
      const uint64_t key = keys[next];
      const uint64_t key_code = codec.code(key);
      if (before <= key_code) {
        before = key_code;
        continue;
      }
      uint32_t own_index = 0;
      if constexpr (kIndexed) own_index = index(next);
      uint32_t hole = next;
      do {
        keys[hole] = keys[hole - 1];
        if constexpr (kIndexed) index(hole) = index(hole - 1);
        --hole;
      } while (hole > begin && code(hole - 1) > key_code);
      keys[hole] = key;
      if constexpr (kIndexed) index(hole) = own_index;
    }
  }

  // The first position in [low, up) whose leading digits are not below those wanted, or not below or equal.
  __device__ __forceinline__ uint32_t bisect(uint32_t low, uint32_t up, uint64_t wanted, bool beyond_equal) const {
    while (low < up) {
      const uint32_t middle = low + (up - low) / 2;
      const uint64_t there = leading(middle);
      if (there < wanted || (beyond_equal && there == wanted))
        low = middle + 1;
      else
        up = middle;
    }
    return low;
  }
};

// The key before position i, in front of which there is a drop, begins a run whose first drop this is, as far as can be seen: the run's
// start is noted, or, if that is more than kMostShortTies before, some place inside the run.
__device__ __forceinline__ void note_drop(const PassArguments<uint64_t>& arguments, uint32_t i, uint32_t* count, uint32_t* notes) {
  uint32_t start = i - 1;
  uint64_t code = arguments.codec.code(arguments.keys_out[start]);
  while (start > 0 && i - start <= kMostShortTies) {
    const uint64_t before = arguments.codec.code(arguments.keys_out[start - 1]);
    if (before >> 32 != code >> 32) break;
    if (before > code) return;  // not the first
    code = before;
    --start;
  }
  notes[atomicAdd(count, 1u)] = start;
}

template <class Index>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm) find_ties_kernel(const __grid_constant__ TieArguments all) {
  start_after_predecessor();
  const PassArguments<uint64_t>& arguments = all.pass;
  const TieLists& lists = all.lists;
  __shared__ uint32_t count;
  __shared__ typename GroupCloser<Index, kThreads, kRows>::Shared words;
  const uint32_t lowest = lowest_sorted_bit(arguments);
  if (lowest == 0) return;
  const SmallGroups small_groups = static_cast<SmallGroups>(word_of(arguments, offsetof(RadixControl, small_groups)));
  if (small_groups == SmallGroups::kByWindows) return;
  if (small_groups == SmallGroups::kByRecords) {
    const GroupCloser<Index, kThreads, kRows> closer{arguments, words, lowest, most_group_notes(arguments)};
    const uint32_t tiles = (arguments.length - 1) / closer.kTile + 1;
#pragma unroll 1
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) closer.close_tile(tile * closer.kTile);
    return;
  }
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  uint32_t* notes = lists.own_notes(arguments.length);
  const uint32_t lane = threadIdx.x & 31;
  const uint32_t chunks = (arguments.length - 1) / kChunk + 1;
#pragma unroll 1
  for (uint32_t chunk = blockIdx.x * kWarps + threadIdx.x / 32; chunk < chunks; chunk += gridDim.x * kWarps) {
    const uint32_t first = chunk * kChunk + lane;
    uint64_t key[kRows], before = 0;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      if (first + row * 32 < arguments.length) key[row] = arguments.keys_out[first + row * 32];
    }
    if (lane == 0 && chunk > 0) before = arguments.codec.code(arguments.keys_out[first - 1]);
    uint32_t drops = 0;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const uint64_t code = first + row * 32 < arguments.length ? arguments.codec.code(key[row]) : ~uint64_t{0};
      const uint64_t neighbour = __shfl_sync(~0u, static_cast<unsigned long long>(code), (lane + 31) & 31);
      if ((lane == 0 ? before : neighbour) > code) drops |= 1u << row;
      before = neighbour;  // lane 0 has the row's last one
    }
    for (; drops != 0; drops &= drops - 1) note_drop(arguments, first + (__ffs(static_cast<int>(drops)) - 1) * 32, &count, notes);
    __syncwarp();
  }
  __syncthreads();
  if (threadIdx.x == 0) lists.counts[blockIdx.x] = count;
}

// The run around position `inside` is longer than one thread should sort: noted with its ends, or too much.
template <class Index>
__device__ __noinline__ void note_long_run(const PassArguments<uint64_t>& arguments, uint32_t lowest, uint32_t inside,
                                           const TieLists& lists) {
  const TiedItems<Index> items(arguments, lowest);
  const uint64_t leading = items.leading(inside);
  const uint32_t begin = items.bisect(0, inside, leading, false);
  const uint32_t end = items.bisect(inside, items.length, leading, true);
  const uint32_t place = atomicAdd(control_word(arguments.control, offsetof(RadixControl, long_runs), arguments.spacing), 1u);
  if (place < lists.most_long_runs) lists.long_runs[place] = make_uint2(begin, end);
  if (place >= lists.most_long_runs || end - begin > kMostLongTies) {
    *control_word(arguments.control, offsetof(RadixControl, again), arguments.spacing) = 1;
  }
}

// With the grid of the kernel before.
template <class Index>
__global__ void __launch_bounds__(kThreads) mend_ties_kernel(const __grid_constant__ TieArguments all) {
  start_after_predecessor();
  const PassArguments<uint64_t>& arguments = all.pass;
  const TieLists& lists = all.lists;
  const uint32_t lowest = lowest_sorted_bit(arguments);
  if (lowest == 0) return;
  if (word_of(arguments, offsetof(RadixControl, small_groups)) != 0) {
    const uint32_t made = word_of(arguments, offsetof(RadixControl, group_notes)), most = most_group_notes(arguments);
    uint32_t note = blockIdx.x * kThreads + threadIdx.x;
    if (note == 0 && made > most) *control_word(arguments.control, offsetof(RadixControl, again), arguments.spacing) = 1;
    for (; note < min(made, most); note += gridDim.x * kThreads) {
      note_long_run<Index>(arguments, lowest, arguments.look_back[0][static_cast<uint64_t>(note) * arguments.spacing], lists);
    }
    return;
  }
  const TiedItems<Index> items(arguments, lowest);
  const uint32_t* notes = lists.own_notes(items.length);
  const uint32_t count = lists.counts[blockIdx.x];
  for (uint32_t note = threadIdx.x; note < count; note += kThreads) {
    const uint32_t begin = notes[note];
    const uint64_t leading = items.leading(begin);
    uint32_t end = begin + 2;
    while (end < items.length && end - begin <= kMostShortTies && items.leading(end) == leading) ++end;
    if (end - begin > kMostShortTies || (begin > 0 && items.leading(begin - 1) == leading))
      note_long_run<Index>(arguments, lowest, begin, lists);
    else
      items.insert(begin, end);
  }
}

// Bitonic network (Batcher, 1968). All threads call; `padded`: a power of two.
__device__ __forceinline__ void sort_words(uint64_t* words, uint32_t padded) {
  for (uint32_t size = 2; size <= padded; size *= 2) {
    for (uint32_t distance = size / 2; distance > 0; distance /= 2) {
      __syncthreads();
      for (uint32_t pair = threadIdx.x; pair < padded / 2; pair += kRestThreads) {
        const uint32_t a = pair / distance * (2 * distance) + pair % distance, b = a + distance;
        const uint64_t first = words[a], second = words[b];
        if ((first > second) == ((a & size) == 0)) {
          words[a] = second;
          words[b] = first;
        }
      }
    }
  }
  __syncthreads();
}

// One run, which fits shared memory. All threads call. Of equal keys the one that stands first comes first, if they are `in_order`;
// else records are numbered in the order of their indices before.
template <class Index>
__device__ __forceinline__ void sort_run(const PassArguments<uint64_t>& arguments, uint32_t lowest, uint32_t begin, uint32_t end,
                                         bool in_order, uint64_t* words, uint16_t* places) {
  constexpr uint32_t kPlaceBits = 12, kPlaceMask = kMostLongTies - 1;
  static_assert(kMostLongTies == 1 << kPlaceBits, "a word is a place and, above it, the rest of the code");
  constexpr int kPerThread = kMostLongTies / kRestThreads;
  const TiedItems<Index> items(arguments, lowest);
  const uint32_t count = end - begin;
  const uint64_t rest = (uint64_t{1} << lowest) - 1;
  const uint64_t leading = items.code(begin) & ~rest;
  uint32_t padded = 2;
  while (padded < count) padded *= 2;
  for (uint32_t i = threadIdx.x; i < padded; i += kRestThreads) {
    words[i] = ~uint64_t{0};
    if (i >= count) continue;
    words[i] = i;
    if (TiedItems<Index>::kIndexed && !in_order) words[i] |= static_cast<uint64_t>(items.index(begin + i)) << kPlaceBits;
  }
  if (TiedItems<Index>::kIndexed && !in_order) sort_words(words, padded);
  for (uint32_t i = threadIdx.x; i < count; i += kRestThreads) {
    const uint32_t place = static_cast<uint32_t>(words[i]) & kPlaceMask;
    places[i] = static_cast<uint16_t>(place);
    words[i] = (items.code(begin + place) & rest) << kPlaceBits | i;
  }
  sort_words(words, padded);
  uint32_t index[kPerThread];
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    const uint32_t i = threadIdx.x + k * kRestThreads;
    if (TiedItems<Index>::kIndexed && i < count) index[k] = items.index(begin + places[static_cast<uint32_t>(words[i]) & kPlaceMask]);
  }
  __syncthreads();  // all indices are read
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    const uint32_t i = threadIdx.x + k * kRestThreads;
    if (i >= count) continue;
    items.keys[begin + i] = arguments.codec.bits(leading | words[i] >> kPlaceBits);
    if constexpr (TiedItems<Index>::kIndexed) items.index(begin + i) = index[k];
  }
  __syncthreads();
}

// Counts the digits that the histogram has left out. The last block to end copies all bins, if they lie elsewhere.
__device__ __forceinline__ void count_other_digits(const PassArguments<uint64_t>& arguments, const HighWordTables& tables,
                                                   uint32_t* counters) {
  constexpr uint32_t kDigits = 4, kCounters = kDigits * kRadixBins;
  __shared__ bool last;
  for (uint32_t i = threadIdx.x; i < kCounters; i += kRestThreads) counters[i] = 0;
  __syncthreads();
  for (uint64_t i = blockIdx.x * kRestThreads + threadIdx.x; i < arguments.length; i += gridDim.x * kRestThreads) {
    const uint64_t code = arguments.codec.code(arguments.keys_in[i]);
#pragma unroll
    for (uint32_t digit = 0; digit < kDigits; ++digit)
      atomicAdd(counters + digit * kRadixBins + (code >> digit * kRadixBits & (kRadixBins - 1)), 1u);
  }
  __syncthreads();
  uint32_t* bins = const_cast<uint32_t*>(arguments.bins);
  for (uint32_t i = threadIdx.x; i < kCounters; i += kRestThreads) {
    if (counters[i] != 0) atomicAdd(bins + i * arguments.spacing, counters[i]);
  }
  __threadfence();
  __syncthreads();
  uint32_t* finished = control_word(arguments.control, offsetof(RadixControl, counting_blocks), arguments.spacing);
  if (threadIdx.x == 0) last = atomicAdd(finished, 1u) + 1 == gridDim.x;
  __syncthreads();
  if (!last || arguments.spacing == 1) return;
  __threadfence();
  for (uint32_t i = threadIdx.x; i < tables.bin_words; i += kRestThreads)
    const_cast<uint32_t*>(tables.middle.bins)[i] = __ldcg(bins + i * arguments.spacing);
}

// Everything as the middle slots need it: records in the order of the input, tables where they were, the first look-back table cleared.
__device__ __forceinline__ void prepare_again(const PassArguments<uint64_t>& arguments, const HighWordTables& tables, uint32_t* counters) {
  const PassArguments<uint64_t>& middle = tables.middle;
  const uint32_t first = blockIdx.x * kRestThreads + threadIdx.x, step = gridDim.x * kRestThreads;
  if (first < kControlWords) {
    uint32_t* words = reinterpret_cast<uint32_t*>(middle.control);
    auto within = [&](size_t offset, size_t bytes) { return first * 4 >= offset && first * 4 < offset + bytes; };
    if (within(offsetof(RadixControl, tickets), sizeof(RadixControl::tickets)) ||
        within(offsetof(RadixControl, written_tiles), sizeof(RadixControl::written_tiles)))
      words[first] = 0;
    else if (arguments.spacing > 1)
      words[first] = *control_word(arguments.control, first * 4, arguments.spacing);
  }
  // A first look may have counted the low words already, and this choice have seen a high word that the look had not.
  const bool low_words_counted = static_cast<Preview>(word_of(arguments, offsetof(RadixControl, preview))) == Preview::kLowWords;
  if (!low_words_counted && high_word_counted_alone(word_of(arguments, offsetof(RadixControl, sorted_from)))) {
    count_other_digits(arguments, tables, counters);
  } else if (arguments.spacing > 1) {
    uint32_t* bins = const_cast<uint32_t*>(middle.bins);
    for (uint32_t i = first; i < tables.bin_words; i += step) bins[i] = arguments.bins[i * arguments.spacing];
  }
  const uint64_t look_back_words = static_cast<uint64_t>(middle.look_back_rows) * kRadixBins;
  for (uint64_t i = first; i < look_back_words; i += step) middle.look_back[1][i] = 0;
  const PassRole role = pass_role(arguments.control, PassKind::kMiddle, 1, kMaxRadixPasses + kSortAgain, false, arguments.spacing);
  uint64_t* records = static_cast<uint64_t*>(middle.records[role.source]);
  uint32_t* indices = middle.record_indices[role.source];
  for (uint64_t i = first; i < arguments.length; i += step) {
    records[i] = arguments.codec.code(arguments.keys_in[i]);
    if (arguments.indices_out != nullptr) indices[i] = static_cast<uint32_t>(i);
  }
}

template <class Index>
__global__ void __launch_bounds__(kRestThreads) rest_of_ties_kernel(const __grid_constant__ TieArguments all) {
  start_after_predecessor();
  const PassArguments<uint64_t>& arguments = all.pass;
  const TieLists& lists = all.lists;
  __shared__ uint64_t words[kMostLongTies];
  __shared__ uint16_t places[kMostLongTies];
  const uint32_t lowest = lowest_sorted_bit(arguments);
  if (lowest == 0) return;
  const uint32_t runs = word_of(arguments, offsetof(RadixControl, long_runs));
  if (runs == 0) return;
  if (word_of(arguments, offsetof(RadixControl, again)) != 0) {
    prepare_again(arguments, all.tables, reinterpret_cast<uint32_t*>(words));
    return;
  }
  const bool in_order = static_cast<SmallGroups>(word_of(arguments, offsetof(RadixControl, small_groups))) != SmallGroups::kByWindows;
  for (uint32_t run = blockIdx.x; run < runs; run += gridDim.x) {
    const uint2 place = lists.long_runs[run];
    bool noted_before = false;  // a run may have more than one drop that looks like the first
    for (uint32_t i = threadIdx.x; i < run; i += kRestThreads) noted_before |= lists.long_runs[i].x == place.x;
    if (__syncthreads_or(noted_before)) continue;
    sort_run<Index>(arguments, lowest, place.x, place.y, in_order, words, places);
  }
}

__global__ void __launch_bounds__(kThreads) sorted_again_kernel(const __grid_constant__ PassArguments<uint64_t> arguments) {
  start_after_predecessor();
  if (word_of(arguments, offsetof(RadixControl, again)) == 0) return;
  const uint64_t* records = static_cast<const uint64_t*>(arguments.records[0]);
  const uint32_t* indices = arguments.record_indices[0];
  for (uint64_t i = blockIdx.x * kThreads + threadIdx.x; i < arguments.length; i += gridDim.x * kThreads) {
    arguments.keys_out[i] = arguments.codec.bits(records[i]);
    if (arguments.indices_out == nullptr) continue;
    if (arguments.index_bytes == 8)
      store_wide_index(static_cast<int64_t*>(arguments.indices_out), static_cast<uint32_t>(i), borrowed_begin_in_row(arguments, 0),
                       indices[i]);
    else
      static_cast<uint32_t*>(arguments.indices_out)[i] = indices[i];
  }
}

template <class Index>
cudaError_t launch(const PassArguments<uint64_t>& arguments, const HighWordTables& tables, int sm_blocks, cudaStream_t stream) {
  const uint32_t fair = ((arguments.length - 1) / kChunk) / kWarps + 1;
  const uint32_t blocks = std::min(fair, static_cast<uint32_t>(sm_blocks * kBlocksPerSm));
  const TieArguments all = {arguments, tables, TieLists(arguments.records[0], blocks, arguments.length)};
  const bool dependent = arguments.dependent_launch();
  cudaError_t error = launch_after_predecessor<find_ties_kernel<Index>>(all, {blocks, kThreads, 0, dependent}, stream);
  if (error != cudaSuccess) return error;
  error = launch_after_predecessor<mend_ties_kernel<Index>>(all, {blocks, kThreads, 0, dependent}, stream);
  if (error != cudaSuccess) return error;
  const LaunchShape rest = {static_cast<unsigned>(sm_blocks) * 2, kRestThreads, 0, dependent};
  return launch_after_predecessor<rest_of_ties_kernel<Index>>(all, rest, stream);
}

}  // namespace

cudaError_t launch_high_word_ties(const PassArguments<uint64_t>& arguments, const HighWordTables& tables, int sm_blocks,
                                  cudaStream_t stream) {
  const cudaError_t error = launch_close_windows(arguments, sm_blocks, stream);
  if (error != cudaSuccess) return error;
  if (arguments.indices_out == nullptr) return launch<NoIndex>(arguments, tables, sm_blocks, stream);
  if (arguments.index_bytes == 4) return launch<uint32_t>(arguments, tables, sm_blocks, stream);
  return launch<int64_t>(arguments, tables, sm_blocks, stream);
}

cudaError_t launch_sorted_again(const PassArguments<uint64_t>& arguments, int sm_blocks, cudaStream_t stream) {
  const LaunchShape shape = {static_cast<unsigned>(sm_blocks) * 4, kThreads, 0, arguments.dependent_launch()};
  return launch_after_predecessor<sorted_again_kernel>(arguments, shape, stream);
}

}  // namespace gpusort
