// O2: deterministic sample sort: sorted tiles, regular samples, splitters, distribution, buckets sorted on chip.
//
// Leischner, Osipov, Sanders, "GPU sample sort" (2010), in the deterministic form of Dehne, Zaboli, "Deterministic sample sort for GPUs"
// (2012) with the regular sampling of Shi, Schaeffer (1992). What is sorted are pairs (code, position), no two of them equal, so equal keys
// are divided like any others and the bound on a bucket, about twice the mean, holds for every input (plan/steps_plan.h has the proof): no
// bucket can overflow, nothing is read back by the host, and the sort is stable. One level, for segments too long for one block:
//   tiles      each tile of a segment is sorted on chip (bitonic network)                 reads and writes the pairs
//   samples    every gap-th pair of each tile; each segment's samples are sorted          buckets / tile of the pairs
//   count      where the splitters fall in each sorted tile: binary searches
//   scan       one exclusive scan over [segment][bucket][tile]
//   scatter    each tile writes one contiguous run per bucket                             reads and writes the pairs
// A bucket is a segment of the next level; when the bound fits a block (8192 packed pairs), all buckets are sorted on chip straight into
// the result. Buckets lie densely in the order of the result, so only their begins are kept. Up to 256 buckets: rows to 2^20 keys need one
// level, to about 2^27 two. Invariant: after a level, every pair of bucket b is below every pair of bucket b + 1.
#include "sample_sort.h"

#include "../bitonic/bitonic_tiles.cuh"
#include "../primitives/device_scan.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 256;
static_assert(kThreads >= kSampleMaxBuckets, "a thread per splitter");

// One level as the kernels see it. Segments are rows of the problem, or what `starts` of the level before says.
template <class Pair>
struct Distribution {
  const Pair* pairs = nullptr;  // sorted tile by tile
  const uint64_t* starts = nullptr;
  int64_t segments = 0;
  int64_t segment_length = 0;  // when starts is null
  int64_t tiles_per_segment = 0;
  int64_t tile = 0;
  int64_t gap = 0;
  int buckets = 0;
  Pair* samples = nullptr;     // [segment][tile][sample], then sorted per segment; what a short tile lacks is padding
  uint64_t* counts = nullptr;  // [segment][bucket][tile]

  __device__ __forceinline__ int64_t begin(int64_t segment) const {
    return starts == nullptr ? segment * segment_length : static_cast<int64_t>(starts[segment]);
  }
  __device__ __forceinline__ uint64_t& count(int64_t segment, int bucket, int64_t tile_in_segment) const {
    return counts[(segment * buckets + bucket) * tiles_per_segment + tile_in_segment];
  }
  // The smallest pair of a bucket that is not the first: every (real samples / buckets)-th of the sorted samples.
  __device__ __forceinline__ Pair splitter(int64_t segment, int bucket) const {
    const int64_t length = begin(segment + 1) - begin(segment);
    const int64_t real_samples = length / tile * buckets + length % tile / gap;
    if (real_samples == 0) return Pair::last();
    return samples[segment * tiles_per_segment * buckets + bucket * real_samples / buckets];
  }
};

struct SegmentTile {
  int64_t segment = 0;
  int64_t tile_in_segment = 0;
  int64_t begin = 0;
  int count = 0;
};

template <class Pair>
__device__ __forceinline__ SegmentTile find_segment_tile(const Distribution<Pair>& level, int64_t number) {
  SegmentTile tile;
  tile.segment = number / level.tiles_per_segment;
  tile.tile_in_segment = number - tile.segment * level.tiles_per_segment;
  tile.begin = level.begin(tile.segment) + tile.tile_in_segment * level.tile;
  const int64_t left = level.begin(tile.segment + 1) - tile.begin;
  tile.count = left <= 0 ? 0 : static_cast<int>(left < level.tile ? left : level.tile);
  return tile;
}

template <class Pair>
__global__ void __launch_bounds__(kThreads) take_samples_kernel(const Distribution<Pair> level) {
  const int64_t number = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (number >= level.segments * level.tiles_per_segment * level.buckets) return;
  const SegmentTile tile = find_segment_tile(level, number / level.buckets);
  const int64_t place = (number % level.buckets + 1) * level.gap - 1;
  level.samples[number] = place < tile.count ? level.pairs[tile.begin + place] : Pair::last();
}

// The first place of a sorted tile whose pair is not below the splitter.
template <class Pair>
__device__ __forceinline__ int bucket_boundary(const Pair* tile_pairs, int count, const Pair& splitter) {
  int low = 0;
  int high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (tile_pairs[middle].less(splitter))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Thread b finds where bucket b begins in the block's tile. boundaries has buckets + 1 items.
template <class Pair>
__device__ __forceinline__ void find_boundaries(const Distribution<Pair>& level, const SegmentTile& tile, int* boundaries) {
  const int bucket = threadIdx.x;
  if (bucket < level.buckets) {
    boundaries[bucket] = bucket == 0 ? 0 : bucket_boundary(level.pairs + tile.begin, tile.count, level.splitter(tile.segment, bucket));
  }
  if (bucket == 0) boundaries[level.buckets] = tile.count;
  __syncthreads();
}

template <class Pair>
__global__ void __launch_bounds__(kThreads) count_buckets_kernel(const Distribution<Pair> level) {
  __shared__ int boundaries[kSampleMaxBuckets + 1];
  const SegmentTile tile = find_segment_tile(level, blockIdx.x);
  find_boundaries(level, tile, boundaries);
  const int bucket = threadIdx.x;
  if (bucket < level.buckets) {
    level.count(tile.segment, bucket, tile.tile_in_segment) = static_cast<uint64_t>(boundaries[bucket + 1] - boundaries[bucket]);
  }
}

// `level.counts` has been scanned: it says where each tile's run of each bucket goes.
template <class Pair>
__global__ void __launch_bounds__(kThreads) scatter_buckets_kernel(const Distribution<Pair> level, Pair* target) {
  __shared__ int boundaries[kSampleMaxBuckets + 1];
  __shared__ int64_t run_begin[kSampleMaxBuckets];
  const SegmentTile tile = find_segment_tile(level, blockIdx.x);
  if (tile.count == 0) return;
  find_boundaries(level, tile, boundaries);
  const int own_bucket = threadIdx.x;
  if (own_bucket < level.buckets) {
    run_begin[own_bucket] = static_cast<int64_t>(level.count(tile.segment, own_bucket, tile.tile_in_segment)) - boundaries[own_bucket];
  }
  __syncthreads();
  for (int place = threadIdx.x; place < tile.count; place += kThreads) {
    // The last bucket that begins at or before the place; empty ones before it begin there too.
    int bucket = 0;
    for (int step = level.buckets / 2; step > 0; step /= 2) {
      if (boundaries[bucket + step] <= place) bucket += step;
    }
    target[run_begin[bucket] + place] = level.pairs[tile.begin + place];
  }
}

__global__ void __launch_bounds__(kThreads)
    bucket_starts_kernel(const uint64_t* counts, int64_t buckets, int64_t tiles_per_segment, uint64_t total, uint64_t* starts) {
  const int64_t bucket = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (bucket < buckets) starts[bucket] = counts[bucket * tiles_per_segment];
  if (bucket == buckets) starts[bucket] = total;
}

unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>(steps_ceil_div(threads, kThreads));
}

// Distributes the sorted tiles of every segment over its buckets, from level.pairs to `target`, and notes where the buckets begin.
template <class U, class Pair>
cudaError_t distribute(const Distribution<Pair>& level, int64_t pairs, Pair* target, uint64_t* bucket_starts, uint64_t* scan_totals,
                       cudaStream_t stream) {
  const int64_t tiles = level.segments * level.tiles_per_segment;
  take_samples_kernel<<<blocks_for(tiles * level.buckets), kThreads, 0, stream>>>(level);
  if (cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;

  BitonicTiles<U, Pair> samples;
  samples.rows = level.segments;
  samples.length = level.tiles_per_segment * level.buckets;
  samples.pairs_in = level.samples;
  samples.pairs_out = level.samples;
  if (cudaError_t error = launch_bitonic_rows(samples, level.samples, stream); error != cudaSuccess) return error;

  count_buckets_kernel<<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(level);
  if (cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  if (cudaError_t error = launch_exclusive_scan(level.counts, tiles * level.buckets, scan_totals, stream); error != cudaSuccess)
    return error;
  const int64_t buckets = level.segments * level.buckets;
  bucket_starts_kernel<<<blocks_for(buckets + 1), kThreads, 0, stream>>>(level.counts, buckets, level.tiles_per_segment,
                                                                         static_cast<uint64_t>(pairs), bucket_starts);
  if (cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  scatter_buckets_kernel<<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(level, target);
  return cudaGetLastError();
}

template <class U, class Pair>
cudaError_t sort_problem_as(const SortProblem& problem, const SamplePlan& plan, void* workspace, cudaStream_t stream) {
  char* const base = static_cast<char*>(workspace);
  // What the next launch of tiles reads: the problem's rows of keys, later the buckets of the level before.
  BitonicTiles<U, Pair> tiles;
  set_result(tiles, problem, 1);
  tiles.rows = problem.rows;
  tiles.length = problem.length;
  tiles.keys_in = static_cast<const U*>(problem.keys_in);

  int buffer = 0;
  for (const SampleLevel& level : plan.levels) {
    Pair* const pairs = reinterpret_cast<Pair*>(base + plan.pairs[buffer]);
    Pair* const target = reinterpret_cast<Pair*>(base + plan.pairs[1 - buffer]);
    uint64_t* const starts = reinterpret_cast<uint64_t*>(base + level.starts);
    BitonicTiles<U, Pair> sorted = tiles;
    sorted.tile = static_cast<int>(plan.tile);
    sorted.tiles_per_row = level.tiles_per_segment;
    sorted.pairs_out = pairs;
    if (cudaError_t error = launch_bitonic_tiles(sorted, stream); error != cudaSuccess) return error;

    Distribution<Pair> distribution;
    distribution.pairs = pairs;
    distribution.starts = tiles.starts;
    distribution.segments = level.segments;
    distribution.segment_length = problem.length;
    distribution.tiles_per_segment = level.tiles_per_segment;
    distribution.tile = plan.tile;
    distribution.gap = level.sample_gap;
    distribution.buckets = level.buckets;
    distribution.samples = reinterpret_cast<Pair*>(base + plan.samples);
    distribution.counts = reinterpret_cast<uint64_t*>(base + plan.counts);
    uint64_t* const scan_totals = reinterpret_cast<uint64_t*>(base + plan.scan_totals);
    if (cudaError_t error = distribute<U>(distribution, problem.numel(), target, starts, scan_totals, stream); error != cudaSuccess) {
      return error;
    }

    tiles.rows = level.segments * level.buckets;
    tiles.length = level.bucket_bound;
    tiles.starts = starts;
    tiles.rows_per_input_row *= level.buckets;
    tiles.keys_in = nullptr;
    tiles.pairs_in = target;
    buffer = 1 - buffer;
  }
  return launch_bitonic_rows(tiles, static_cast<Pair*>(nullptr), stream);
}

}  // namespace

cudaError_t launch_sample_sort(const SortProblem& problem, const SamplePlan& plan, void* workspace, cudaStream_t stream) {
  if (problem.numel() == 0) return cudaSuccess;
  switch (problem.key.bytes) {
    case 1:
      return plan.packed ? sort_problem_as<uint8_t, PackedPair>(problem, plan, workspace, stream)
                         : sort_problem_as<uint8_t, WidePair>(problem, plan, workspace, stream);
    case 2:
      return plan.packed ? sort_problem_as<uint16_t, PackedPair>(problem, plan, workspace, stream)
                         : sort_problem_as<uint16_t, WidePair>(problem, plan, workspace, stream);
    case 4:
      return plan.packed ? sort_problem_as<uint32_t, PackedPair>(problem, plan, workspace, stream)
                         : sort_problem_as<uint32_t, WidePair>(problem, plan, workspace, stream);
    case 8: return sort_problem_as<uint64_t, WidePair>(problem, plan, workspace, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace gpusort
