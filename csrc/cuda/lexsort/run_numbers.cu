// The number of each element's run of equal leading words: where in its row the run begins. Numbers rise as the words do, so a sort by them
// is a sort by the words, of 32 bits. Only where the chain is needed.
//
// A block numbers 2048 places: each thread finds the last beginning among its eight, a scan takes the last one before them, and where none
// lies in the block the first warp searches the words before it, 32 places at a time.
#include <algorithm>

#include "lexsort_arguments.h"

namespace gpusort {
namespace {

constexpr int kThreads = 256;
constexpr int kItems = 8;  // places to a thread
constexpr int kTile = kThreads * kItems;
constexpr unsigned kAllLanes = ~0u;

// By one warp: the first place of [low, high] whose word is that of `high`.
__device__ int64_t find_run_begin(const uint64_t* words, int64_t low, int64_t high) {
  const uint64_t word = words[high];
  const int lane = threadIdx.x % 32;
  while (low < high) {
    const int64_t step = (high - low + 31) / 32;
    const int64_t place = low + lane * step;
    const unsigned equal = __ballot_sync(kAllLanes, place >= high || words[place] == word);
    if (equal == 0) {
      low += 31 * step + 1;
      continue;
    }
    const int first = __ffs(static_cast<int>(equal)) - 1;
    high = min(high, low + first * step);
    if (first > 0) low += (first - 1) * step + 1;
  }
  return high;
}

__global__ void __launch_bounds__(kThreads) run_numbers_kernel(const __grid_constant__ LexsortArguments m, const uint64_t* sorted_words,
                                                               const int64_t* indices, uint32_t* numbers) {
  if (m.control->chain_called_off != 0) return;
  __shared__ int64_t before_tile;
  __shared__ int64_t last_of_warp[kThreads / 32];
  const int64_t tile_begin = static_cast<int64_t>(blockIdx.x) * kTile, numel = m.numel();
  const auto begins_run = [&](int64_t place) { return place == m.row_begin(place) || sorted_words[place - 1] != sorted_words[place]; };
  if (threadIdx.x < 32) {
    const int64_t begin = find_run_begin(sorted_words, m.row_begin(tile_begin), tile_begin);
    if (threadIdx.x == 0) before_tile = begin;
  }
  const int64_t first = tile_begin + static_cast<int64_t>(threadIdx.x) * kItems;
  uint32_t begins = 0;
  int64_t last = -1;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    if (first + k >= numel || !begins_run(first + k)) continue;
    begins |= 1u << k;
    last = first + k;
  }
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int64_t other = __shfl_up_sync(kAllLanes, last, distance);
    if (lane >= distance) last = max(last, other);
  }
  if (lane == 31) last_of_warp[warp] = last;
  int64_t begin = __shfl_up_sync(kAllLanes, last, 1);
  if (lane == 0) begin = -1;
  __syncthreads();
  for (int w = 0; w < warp; ++w) begin = max(begin, last_of_warp[w]);
  begin = max(begin, before_tile);
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const int64_t place = first + k;
    if (place >= numel) return;
    if ((begins >> k & 1) != 0) begin = place;
    const int64_t row_begin = m.row_begin(place);
    numbers[row_begin + indices[place]] = static_cast<uint32_t>(begin - row_begin);
  }
}

__global__ void __launch_bounds__(kThreads)
    fetch_run_numbers_kernel(const __grid_constant__ LexsortArguments m, const uint32_t* numbers, Positions order, uint32_t* fetched) {
  if (m.control->chain_called_off != 0) return;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t place = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; place < m.numel(); place += step) {
    fetched[place] = numbers[m.row_begin(place) + order[place]];
  }
}

}  // namespace

cudaError_t launch_run_numbers(const LexsortArguments& arguments, const uint64_t* sorted_words, const int64_t* indices, uint32_t* numbers,
                               cudaStream_t stream) {
  const int64_t tiles = (arguments.numel() + kTile - 1) / kTile;
  if (tiles >= int64_t{1} << 31) return cudaErrorInvalidValue;  // 2^42 elements
  run_numbers_kernel<<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(arguments, sorted_words, indices, numbers);
  return cudaGetLastError();
}

cudaError_t launch_fetch_run_numbers(const LexsortArguments& arguments, const uint32_t* numbers, Positions order, uint32_t* fetched,
                                     cudaStream_t stream) {
  const int64_t blocks = std::min<int64_t>((arguments.numel() + kThreads - 1) / kThreads, 1 << 30);
  fetch_run_numbers_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(arguments, numbers, order, fetched);
  return cudaGetLastError();
}

}  // namespace gpusort
