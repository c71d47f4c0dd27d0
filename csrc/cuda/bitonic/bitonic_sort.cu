// O1: bitonic sort, (log2 n)(log2 n + 1) / 2 steps of n / 2 compare-exchanges, none of which depends on the data.
//
// The network and why padding is free: bitonic_network.cuh. Rows that fit one block (8192 pairs of 8 bytes, 4096 of 16) are read once,
// sorted in registers and shared memory, and written once; several short rows share a block. A longer row is sorted tile by tile, then
// merged: for spans k = 2 tiles, 4 tiles, ... the steps of distance >= tile run in global memory, up to three per launch (a thread holds
// the 8 pairs that three steps connect), the rest on chip in one launch. Reads and writes of the pairs: one per launch, so about
// L (L + 1) / 6 + L for L = log2(n / tile). Pads are never stored: a comparator whose upper place is beyond the row would not swap.
#include "bitonic_sort.h"

#include "bitonic_network.cuh"
#include "bitonic_tiles.cuh"

namespace gpusort {
namespace {

constexpr int kMinThreads = 128;
constexpr int kStepThreads = 256;
constexpr int kMaxFusedSteps = 3;

struct TileRange {
  int64_t row = 0;
  int64_t row_begin = 0;
  int64_t begin = 0;
  int count = 0;  // real pairs; the tile's other places are padding
};

template <class U, class Pair>
__device__ __forceinline__ TileRange find_tile(const BitonicTiles<U, Pair>& tiles, int64_t number) {
  TileRange range;
  range.row = tiles.tiles_per_row == 1 ? number : number / tiles.tiles_per_row;
  if (range.row >= tiles.rows) return range;
  const int64_t tile_in_row = number - range.row * tiles.tiles_per_row;
  range.row_begin = tiles.starts == nullptr ? range.row * tiles.length : static_cast<int64_t>(tiles.starts[range.row]);
  const int64_t row_end = tiles.starts == nullptr ? range.row_begin + tiles.length : static_cast<int64_t>(tiles.starts[range.row + 1]);
  range.begin = range.row_begin + tile_in_row * tiles.tile;
  const int64_t left = row_end - range.begin;
  range.count = left <= 0 ? 0 : left < tiles.tile ? static_cast<int>(left) : tiles.tile;
  return range;
}

template <class U, class Pair>
__device__ __forceinline__ void store_pair(const BitonicTiles<U, Pair>& tiles, const TileRange& range, int place, const Pair& pair) {
  const int64_t at = range.begin + place;
  if (tiles.pairs_out != nullptr) {
    tiles.pairs_out[at] = pair;
    return;
  }
  if (tiles.keys_out != nullptr) {
    const int64_t input_row = tiles.rows_per_input_row == 1 ? range.row : range.row / tiles.rows_per_input_row;
    tiles.keys_out[at] =
        key_of_code(tiles.order, static_cast<U>(pair.code()), tiles.input + input_row * tiles.input_length, pair.position());
  }
  if (tiles.indices_out != nullptr) {
    if (tiles.index_bytes == 4)
      static_cast<uint32_t*>(tiles.indices_out)[at] = static_cast<uint32_t>(pair.position());
    else
      static_cast<uint64_t*>(tiles.indices_out)[at] = pair.position();
  }
}

template <class U, class Pair>
__global__ void __launch_bounds__(kBitonicMaxThreads) bitonic_tiles_kernel(const BitonicTiles<U, Pair> tiles) {
  constexpr int kPairs = kPairsPerThread<Pair>;
  extern __shared__ uint4 dynamic_shared[];
  Pair* const stage = reinterpret_cast<Pair*>(dynamic_shared);
  const int tile_log2 = __popc(tiles.tile - 1);
  const int thread = threadIdx.x & (tiles.tile / kPairs - 1);
  const int tiles_per_block = (blockDim.x * kPairs) >> tile_log2;
  const int64_t first_tile = int64_t{blockIdx.x} * tiles_per_block;
  const TileRange own = find_tile(tiles, first_tile + ((threadIdx.x * kPairs) >> tile_log2));

  // A tile that has its block to itself is sorted over the span it really fills.
  int span = tiles.tile;
  if (tiles_per_block == 1) {
    if (own.count == 0) return;
    while (span > kPairs && span / 2 >= own.count) span /= 2;
  }

  Pair pairs[kPairs];
  const int loading_threads = span / kPairs;
#pragma unroll
  for (int item = 0; item < kPairs; ++item) {
    // A full sort takes its input in any arrangement within the span, so the reads coalesce; a merge needs every pair in its place.
    const int place = tiles.merge_only ? thread * kPairs + item : item * loading_threads + thread;
    pairs[item] = Pair::last();
    if (thread < loading_threads && place < own.count) {
      const int64_t at = own.begin + place;
      pairs[item] = tiles.keys_in != nullptr ? Pair::make(tiles.order.code(tiles.keys_in[at]), static_cast<uint64_t>(at - own.row_begin))
                                             : tiles.pairs_in[at];
    }
  }
  if (tiles.merge_only)
    clean_span(pairs, span / 2, stage);
  else
    sort_spans(pairs, span, stage);

  // Through shared memory, so that neighbours in the row are written by neighbouring threads.
  const int row = blockDim.x + kStagePadding;
#pragma unroll
  for (int item = 0; item < kPairs; ++item) stage[item * row + threadIdx.x] = pairs[item];
  __syncthreads();
#pragma unroll
  for (int item = 0; item < kPairs; ++item) {
    const int slot = item * blockDim.x + threadIdx.x;
    const int place = slot & (tiles.tile - 1);
    const TileRange range = tiles_per_block == 1 ? own : find_tile(tiles, first_tile + (slot >> tile_log2));
    if (place < range.count) store_pair(tiles, range, place, stage[(slot % kPairs) * row + slot / kPairs]);
  }
}

// kSteps consecutive steps on spans of 2^kSteps * stride places: with `flip` the first is the flip of that span, else all are half
// cleaners of distance span / 2 and less. A thread owns the 2^kSteps places that these steps connect: stride apart, and for a flip
// mirrored in the upper half.
template <class Pair, int kSteps>
__global__ void __launch_bounds__(kStepThreads)
    bitonic_steps_kernel(Pair* pairs, int64_t rows, int64_t length, int64_t groups_per_row, int64_t stride, bool flip) {
  constexpr int kPlaces = 1 << kSteps;
  const int64_t group = int64_t{blockIdx.x} * kStepThreads + threadIdx.x;
  const int64_t row = group / groups_per_row;
  if (row >= rows) return;
  const int64_t group_in_row = group - row * groups_per_row;
  const int64_t offset = group_in_row & (stride - 1);
  const int64_t span_begin = (group_in_row - offset) * kPlaces;
  if (span_begin + offset >= length) return;
  Pair* const row_pairs = pairs + row * length;
  Pair own[kPlaces];
  auto place_of = [&](int item) {
    const bool mirrored = flip && item >= kPlaces / 2;
    return span_begin + item * stride + (mirrored ? stride - 1 - offset : offset);
  };
#pragma unroll
  for (int item = 0; item < kPlaces; ++item) own[item] = place_of(item) < length ? row_pairs[place_of(item)] : Pair::last();
  if (flip) {
#pragma unroll
    for (int item = 0; item < kPlaces / 2; ++item) compare_exchange(own[item], own[kPlaces - 1 - item]);
  } else {
#pragma unroll
    for (int item = 0; item < kPlaces / 2; ++item) compare_exchange(own[item], own[item + kPlaces / 2]);
  }
#pragma unroll
  for (int distance = kPlaces / 4; distance > 0; distance /= 2) {
#pragma unroll
    for (int item = 0; item < kPlaces; ++item) {
      if ((item & distance) == 0) compare_exchange(own[item], own[item + distance]);
    }
  }
#pragma unroll
  for (int item = 0; item < kPlaces; ++item) {
    if (place_of(item) < length) row_pairs[place_of(item)] = own[item];
  }
}

template <class Pair>
cudaError_t launch_steps(int steps, Pair* pairs, int64_t rows, int64_t length, int64_t padded, int64_t stride, bool flip,
                         cudaStream_t stream) {
  const int64_t groups_per_row = padded >> steps;
  const unsigned blocks = static_cast<unsigned>(steps_ceil_div(rows * groups_per_row, kStepThreads));
  switch (steps) {
    case 1: bitonic_steps_kernel<Pair, 1><<<blocks, kStepThreads, 0, stream>>>(pairs, rows, length, groups_per_row, stride, flip); break;
    case 2: bitonic_steps_kernel<Pair, 2><<<blocks, kStepThreads, 0, stream>>>(pairs, rows, length, groups_per_row, stride, flip); break;
    default: bitonic_steps_kernel<Pair, 3><<<blocks, kStepThreads, 0, stream>>>(pairs, rows, length, groups_per_row, stride, flip); break;
  }
  return cudaGetLastError();
}

template <class U, class Pair>
cudaError_t sort_problem_as(const SortProblem& problem, void* workspace, cudaStream_t stream) {
  BitonicTiles<U, Pair> tiles;
  tiles.rows = problem.rows;
  tiles.length = problem.length;
  tiles.keys_in = static_cast<const U*>(problem.keys_in);
  set_result(tiles, problem, 1);
  return launch_bitonic_rows(tiles, static_cast<Pair*>(workspace), stream);
}

}  // namespace

template <class U, class Pair>
cudaError_t launch_bitonic_tiles(const BitonicTiles<U, Pair>& tiles, cudaStream_t stream) {
  constexpr int kPairs = kPairsPerThread<Pair>;
  const int threads_per_tile = tiles.tile / kPairs;
  const int threads = threads_per_tile > kMinThreads ? threads_per_tile : kMinThreads;
  const int shared_bytes = kPairs * (threads + kStagePadding) * static_cast<int>(sizeof(Pair));
  const auto kernel = bitonic_tiles_kernel<U, Pair>;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                 kPairs * (kBitonicMaxThreads + kStagePadding) * static_cast<int>(sizeof(Pair)));
  if (error != cudaSuccess) return error;
  const int64_t blocks = steps_ceil_div(tiles.rows * tiles.tiles_per_row, threads / threads_per_tile);
  kernel<<<static_cast<unsigned>(blocks), threads, shared_bytes, stream>>>(tiles);
  return cudaGetLastError();
}

template <class U, class Pair>
cudaError_t launch_bitonic_rows(BitonicTiles<U, Pair> tiles, Pair* pairs, cudaStream_t stream) {
  constexpr int kPairs = kPairsPerThread<Pair>;
  constexpr int64_t kLargestTile = int64_t{kBitonicMaxThreads} * kPairs;
  const int64_t padded = steps_power_of_two_at_least(tiles.length > kPairs ? tiles.length : kPairs);
  tiles.tile = static_cast<int>(padded < kLargestTile ? padded : kLargestTile);
  tiles.tiles_per_row = steps_ceil_div(tiles.length, tiles.tile);
  if (tiles.tiles_per_row == 1) return launch_bitonic_tiles(tiles, stream);

  BitonicTiles<U, Pair> part = tiles;
  part.pairs_out = pairs;
  if (cudaError_t error = launch_bitonic_tiles(part, stream); error != cudaSuccess) return error;
  part.keys_in = nullptr;
  part.pairs_in = pairs;
  part.merge_only = true;
  for (int64_t merged = 2 * kLargestTile; merged <= padded; merged *= 2) {
    bool flip = true;
    for (int64_t span = merged; span > kLargestTile; flip = false) {
      int steps = 1;
      while (steps < kMaxFusedSteps && span >> steps > kLargestTile) ++steps;
      const int64_t stride = span >> steps;
      if (cudaError_t error = launch_steps(steps, pairs, tiles.rows, tiles.length, padded, stride, flip, stream); error != cudaSuccess) {
        return error;
      }
      span = stride;
    }
    if (merged == padded) part.pairs_out = tiles.pairs_out;
    if (cudaError_t error = launch_bitonic_tiles(part, stream); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

template cudaError_t launch_bitonic_tiles(const BitonicTiles<uint8_t, PackedPair>&, cudaStream_t);
template cudaError_t launch_bitonic_tiles(const BitonicTiles<uint16_t, PackedPair>&, cudaStream_t);
template cudaError_t launch_bitonic_tiles(const BitonicTiles<uint32_t, PackedPair>&, cudaStream_t);
template cudaError_t launch_bitonic_tiles(const BitonicTiles<uint8_t, WidePair>&, cudaStream_t);
template cudaError_t launch_bitonic_tiles(const BitonicTiles<uint16_t, WidePair>&, cudaStream_t);
template cudaError_t launch_bitonic_tiles(const BitonicTiles<uint32_t, WidePair>&, cudaStream_t);
template cudaError_t launch_bitonic_tiles(const BitonicTiles<uint64_t, WidePair>&, cudaStream_t);
template cudaError_t launch_bitonic_rows(BitonicTiles<uint8_t, PackedPair>, PackedPair*, cudaStream_t);
template cudaError_t launch_bitonic_rows(BitonicTiles<uint16_t, PackedPair>, PackedPair*, cudaStream_t);
template cudaError_t launch_bitonic_rows(BitonicTiles<uint32_t, PackedPair>, PackedPair*, cudaStream_t);
template cudaError_t launch_bitonic_rows(BitonicTiles<uint8_t, WidePair>, WidePair*, cudaStream_t);
template cudaError_t launch_bitonic_rows(BitonicTiles<uint16_t, WidePair>, WidePair*, cudaStream_t);
template cudaError_t launch_bitonic_rows(BitonicTiles<uint32_t, WidePair>, WidePair*, cudaStream_t);
template cudaError_t launch_bitonic_rows(BitonicTiles<uint64_t, WidePair>, WidePair*, cudaStream_t);

cudaError_t launch_bitonic_sort(const SortProblem& problem, const BitonicPlan& plan, void* workspace, cudaStream_t stream) {
  if (problem.numel() == 0) return cudaSuccess;
  switch (problem.key.bytes) {
    case 1:
      return plan.packed ? sort_problem_as<uint8_t, PackedPair>(problem, workspace, stream)
                         : sort_problem_as<uint8_t, WidePair>(problem, workspace, stream);
    case 2:
      return plan.packed ? sort_problem_as<uint16_t, PackedPair>(problem, workspace, stream)
                         : sort_problem_as<uint16_t, WidePair>(problem, workspace, stream);
    case 4:
      return plan.packed ? sort_problem_as<uint32_t, PackedPair>(problem, workspace, stream)
                         : sort_problem_as<uint32_t, WidePair>(problem, workspace, stream);
    case 8: return sort_problem_as<uint64_t, WidePair>(problem, workspace, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace gpusort
