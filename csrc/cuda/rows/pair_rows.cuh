// Rows of 2 to 32 keys of 32 bits, several to a warp, sorted as whole pairs: 64-bit words, code above index, in the registers of a few
// lanes.
//
// No ties, nothing to mend: at this length the kernel waits for memory, not for the network (H200, 2^26 float32 in rows of 16: 265 us; 284
// with 32-bit words). The keys themselves stay in shared memory and are fetched by index, so their bits come back as they were.
#pragma once

#include <cstdint>

#include "../../plan/row_plan.h"
#include "lane_sort.cuh"
#include "row_access.cuh"

namespace gpusort {

// A lane's four neighbouring indices as 16-byte stores.
__device__ __forceinline__ void store_four_indices(const RowOutput<uint32_t>& output, int position, const uint32_t (&indices)[4]) {
  if (output.indices_wide) {
    longlong2* to = reinterpret_cast<longlong2*>(output.indices_wide + position);
    to[0] = make_longlong2(indices[0], indices[1]);
    to[1] = make_longlong2(indices[2], indices[3]);
  }
  if (output.indices_narrow) {
    *reinterpret_cast<uint4*>(output.indices_narrow + position) = make_uint4(indices[0], indices[1], indices[2], indices[3]);
  }
}

template <int kLanes>
__global__ void __launch_bounds__(row_shapes::kWarpsPerBlock * 32)
    pair_rows_kernel(const __grid_constant__ RowArguments<uint32_t> arguments, const bool quad_stores) {
  constexpr int kItems = 4;
  constexpr int kRowsPerWarp = 32 / kLanes;
  constexpr int kPlaces = 32 * kItems;
  constexpr int kPaddedPlaces = kPlaces + kPlaces / 16 + 1;
  extern __shared__ uint4 shared_memory[];
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int lane_in_row = lane % kLanes, row_in_warp = lane / kLanes, length = arguments.length;
  const int64_t first_row = (static_cast<int64_t>(blockIdx.x) * warps + warp) * kRowsPerWarp;
  if (first_row >= arguments.rows) return;
  const int64_t rows_left = arguments.rows - first_row;
  const int live_rows = rows_left < kRowsPerWarp ? static_cast<int>(rows_left) : kRowsPerWarp;
  const bool live = row_in_warp < live_rows;
  const int64_t offset = first_row * length;
  const int row_start = row_in_warp * length;

  uint32_t* keys = reinterpret_cast<uint32_t*>(shared_memory) + warp * kPlaces;
  uint64_t* staged = reinterpret_cast<uint64_t*>(reinterpret_cast<uint32_t*>(shared_memory) + warps * kPlaces) + warp * kPaddedPlaces;
  const auto padded = [](int place) { return place + place / 16; };

  const uint32_t* from = arguments.keys_in + offset + row_start;
  const int place = lane_in_row * kItems;
  uint32_t quad[kItems] = {};
  if (arguments.quads) {
    if (live && place < length) {
      load_quad(from + place, quad);
      store_quad(keys + row_start + place, quad);
    }
  } else {
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      if (live && place + e < length) {
        quad[e] = from[place + e];
        keys[row_start + place + e] = quad[e];
      }
    }
  }
  uint64_t words[kItems];
#pragma unroll
  for (int e = 0; e < kItems; ++e) {
    words[e] =
        place + e < length ? static_cast<uint64_t>(arguments.order.code(quad[e])) << 32 | static_cast<uint32_t>(place + e) : ~uint64_t{0};
  }
  lanes_sort<kLanes>(words, lane);

  const RowOutput<uint32_t> output(arguments, offset);
  if (quad_stores) {
    __syncwarp();
    if (!live || place >= length) return;
    uint32_t sorted[kItems], indices[kItems];
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      indices[e] = static_cast<uint32_t>(words[e]);
      sorted[e] = keys[row_start + indices[e]];
    }
    if (output.keys) store_quad(output.keys + row_start + place, sorted);
    store_four_indices(output, row_start + place, indices);
    return;
  }
#pragma unroll
  for (int e = 0; e < kItems; ++e) {
    if (place + e < length) staged[padded(row_start + place + e)] = words[e];
  }
  __syncwarp();
  const int total = live_rows * length;
  const uint32_t reciprocal = 0xffffffffu / static_cast<uint32_t>(length) + 1;  // exact quotients: places are below 2^7
  for (int i = lane; i < total; i += 32) {
    const int row = static_cast<int>(__umulhi(static_cast<uint32_t>(i), reciprocal));
    const uint32_t index = static_cast<uint32_t>(staged[padded(i)]);
    output.store(i, keys[row * length + index], index);
  }
}

}  // namespace gpusort
