// Radix pass for rows whose positions do not fit 32 bits: the plain form of onesweep_pass.cuh, for sizes that only the memory of large GPUs
// can hold.
//
// Same steps per tile (rank, scan, look-back, scatter through shared memory, write), but positions, indices and look-back words have 64
// bits, ranks come from match.any, which is in lane order by definition, and keys keep their own bits between the steps. Keys and indices
// lie in two arrays. Step j of k live digits writes buffer 1 (the outputs) when k - 1 - j is even, so that the last one does; k = 0 copies.
#include "wide_pass.h"

#include <cuda_runtime.h>

#include "../../plan/radix_plan.h"
#include "../primitives/look_back.cuh"
#include "radix_control.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = radix_plan_detail::kWideThreads;
constexpr int kTileItems = radix_plan_detail::kWideTileItems;
constexpr int kItems = kTileItems / kThreads;
constexpr int kWarps = kThreads / 32;
static_assert(kThreads == kRadixBins, "one thread per bin");

// Exclusive sum over the block; `sums` holds one value per warp.
template <class Value>
__device__ Value exclusive_sum(Value value, Value* sums) {
  const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  Value sum = value;
  for (int distance = 1; distance < 32; distance *= 2) {
    const Value other = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += other;
  }
  __syncthreads();
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  for (uint32_t w = 0; w < warp; ++w) sum += sums[w];
  return sum - value;
}

template <class Key>
__device__ void copy_wide_rows(const WidePassArguments<Key>& arguments) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * kThreads;
  const uint64_t first = static_cast<uint64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (uint32_t row = 0; row < arguments.rows; ++row) {
    for (uint64_t i = first; i < arguments.length; i += stride) {
      if (arguments.keys_wanted) arguments.keys[1][row * arguments.length + i] = arguments.keys_in[row * arguments.length + i];
      if (arguments.indices[1] != nullptr) arguments.indices[1][row * arguments.length + i] = static_cast<int64_t>(i);
    }
  }
}

template <class Key>
__global__ __launch_bounds__(kThreads) void wide_pass_kernel(const __grid_constant__ WidePassArguments<Key> arguments) {
  using Position = unsigned long long;
  __shared__ uint32_t histograms[kWarps][kRadixBins];
  __shared__ Position offsets[kRadixBins];
  __shared__ Position position_sums[kWarps];
  __shared__ uint32_t count_sums[kWarps];
  __shared__ uint16_t places[kTileItems];  // where in the tile the record at a place of digit order comes from
  __shared__ uint8_t digits[kTileItems];   // its digit
  __shared__ uint32_t shared_tile;

  const PassRole role = pass_role(arguments.control, PassKind::kMiddle, arguments.slot, arguments.passes);
  if (role.live == 0) {
    if (arguments.slot == 0) copy_wide_rows(arguments);
    return;
  }
  if (arguments.slot >= role.live) return;
  const bool final = arguments.slot == role.live - 1;
  const int target = (role.live - 1 - arguments.slot) & 1 ? 0 : 1;
  const Key* source_keys = arguments.slot == 0 ? arguments.keys_in : arguments.keys[target ^ 1];
  const int64_t* source_indices = arguments.slot == 0 ? nullptr : arguments.indices[target ^ 1];
  const int shift = arguments.begin_bit + role.digit * kRadixBits;
  const uint32_t mask = (1u << min(arguments.window_bits - role.digit * kRadixBits, kRadixBits)) - 1;
  auto digit_of = [&](Key bits) { return static_cast<uint32_t>(arguments.order.code(bits) >> shift) & mask; };
  const uint32_t thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;

  for (;;) {
    __syncthreads();
    if (thread == 0) shared_tile = atomicAdd(arguments.control->tickets + arguments.slot, 1u);
    for (int w = 0; w < kWarps; ++w) histograms[w][thread] = 0;
    __syncthreads();
    const uint32_t tile = shared_tile;
    if (tile >= arguments.tiles) return;
    const uint32_t row = tile / arguments.tiles_per_row, number = tile - row * arguments.tiles_per_row;
    const uint64_t first = static_cast<uint64_t>(number) * kTileItems;
    const uint64_t row_start = row * arguments.length;
    const uint32_t items = static_cast<uint32_t>(min(arguments.length - first, static_cast<uint64_t>(kTileItems)));
    const Key* tile_keys = source_keys + row_start + first;
    if (!final) {
      uint64_t* table = reinterpret_cast<uint64_t*>(arguments.look_back[(arguments.slot + 1) & 1]);
      const uint64_t groups = arguments.look_back_words / kRadixBins;
      for (uint64_t i = groups * tile / arguments.tiles * kRadixBins + thread; i < groups * (tile + 1) / arguments.tiles * kRadixBins;
           i += kThreads)
        table[i] = 0;
    }

    uint32_t digit[kItems], rank[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const uint32_t place = warp * 32 * kItems + k * 32 + lane;
      digit[k] = place < items ? digit_of(tile_keys[place]) : ~0u;
      const uint32_t same = __match_any_sync(~0u, digit[k]);
      const uint32_t below = same & ((1u << lane) - 1);
      rank[k] = 0;
      if (place < items) rank[k] = histograms[warp][digit[k]] + __popc(below);
      __syncwarp();
      if (place < items && same >> lane == 1) histograms[warp][digit[k]] = rank[k] + 1;
      __syncwarp();
    }
    __syncthreads();

    uint32_t total = 0;
    for (int w = 0; w < kWarps; ++w) total += histograms[w][thread];
    Position* word = arguments.look_back[arguments.slot & 1] + static_cast<uint64_t>(tile) * kRadixBins + thread;
    if (number != 0) publish_count(word, total);
    const uint32_t start = exclusive_sum(total, count_sums);
    uint32_t next = start;
    for (int w = 0; w < kWarps; ++w) {
      const uint32_t count = histograms[w][thread];
      histograms[w][thread] = next;
      next += count;
    }
    Position before;
    if (number == 0) {
      before =
          exclusive_sum(arguments.bins[(static_cast<uint64_t>(row) * arguments.passes + role.digit) * kRadixBins + thread], position_sums);
    } else {
      before = look_back<4>(word, tile, kRadixBins);
    }
    publish_inclusive(word, before + total);
    offsets[thread] = before - start;
    __syncthreads();

#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const uint32_t place = warp * 32 * kItems + k * 32 + lane;
      if (place >= items) continue;
      const uint32_t at = histograms[warp][digit[k]] + rank[k];
      places[at] = static_cast<uint16_t>(place);
      digits[at] = static_cast<uint8_t>(digit[k]);
    }
    __syncthreads();
    for (uint32_t i = thread; i < items; i += kThreads) {
      const uint32_t place = places[i];
      const uint64_t position = row_start + offsets[digits[i]] + i;
      if (!final || arguments.keys_wanted) arguments.keys[target][position] = tile_keys[place];
      if (arguments.indices[target] != nullptr) {
        arguments.indices[target][position] =
            source_indices == nullptr ? static_cast<int64_t>(first + place) : source_indices[row_start + first + place];
      }
    }
  }
}

}  // namespace

template <class Key>
cudaError_t launch_wide_pass(const WidePassArguments<Key>& arguments, int grid, cudaStream_t stream) {
  wide_pass_kernel<Key><<<grid, kThreads, 0, stream>>>(arguments);
  return cudaGetLastError();
}

template cudaError_t launch_wide_pass(const WidePassArguments<uint8_t>&, int, cudaStream_t);
template cudaError_t launch_wide_pass(const WidePassArguments<uint16_t>&, int, cudaStream_t);
template cudaError_t launch_wide_pass(const WidePassArguments<uint32_t>&, int, cudaStream_t);
template cudaError_t launch_wide_pass(const WidePassArguments<uint64_t>&, int, cudaStream_t);

}  // namespace gpusort
