// Strided tensor <-> packed rows.
//
// Two forms, chosen by which axis is the fastest in the strided tensor:
//   along   the length axis steps least: consecutive threads take consecutive elements of a row, on both sides.
//   across  some row axis steps least (sorting a matrix along dim 0): tiles of that axis and the length axis are turned in shared memory,
//           so that both the strided and the packed side are touched in runs. The classic tiled transpose (Ruetsch and Micikevicius,
//           "Optimizing Matrix Transpose in CUDA", 2009), with padding against bank conflicts; by square blocks of elements where lines
//           allow it (turned_blocks.cuh).
// Every element is read once and written once.
#include <algorithm>
#include <climits>

#include "strided_copy.h"
#include "turned_blocks.cuh"

namespace gpusort {
namespace {

struct Bytes16 {  // complex128: aligned to its parts only
  uint64_t words[2];
};

constexpr int kThreads = 256;

template <class Strided, class Packed, bool kGather>
__global__ void __launch_bounds__(kThreads) copy_along_kernel(StridedRows rows, Strided* strided, Packed* packed) {
  const int64_t total = rows.rows * rows.length;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < total; i += step) {
    const int64_t row = i / rows.length;
    Strided* element = strided + rows.offset(row) + (i - row * rows.length) * rows.length_stride;
    if (kGather) {
      packed[i] = *element;
    } else {
      *element = packed[i];
    }
  }
}

// Extents of a tile. Narrow ones are for matrices of few columns or few rows, of which a square one would mostly hold nothing.
template <int kLengths, int kRows>
struct TileShape {
  static_assert(kLengths * kRows % kThreads == 0, "every thread has as many elements");
  static constexpr int kSteps = kLengths * kRows / kThreads;

  // What a thread takes in each step when neighbours are to be neighbours on one axis of kExtent.
  template <int kExtent>
  static __device__ __forceinline__ int along(int step) {
    if constexpr (kExtent <= kThreads) {
      return threadIdx.x % kExtent;
    } else {
      return threadIdx.x + step % (kExtent / kThreads) * kThreads;
    }
  }
  template <int kExtent>
  static __device__ __forceinline__ int across(int step) {
    if constexpr (kExtent <= kThreads) {
      return threadIdx.x / kExtent + step * (kThreads / kExtent);
    } else {
      return step / (kExtent / kThreads);
    }
  }
};

// A tile is read whole into registers, so that all its loads are under way at once, turned in shared memory and written. `packed` and
// `strided` may differ in width when scattering: positions are widened on their way.
template <class Strided, class Packed, int kLengths, int kRows, bool kGather>
__global__ void __launch_bounds__(kThreads)
    copy_across_kernel(const __grid_constant__ StridedRows rows, TurnedAxis axis, int64_t first_tile, Strided* strided, Packed* packed) {
  using Shape = TileShape<kLengths, kRows>;
  // The padding that puts what a warp takes along the length axis on different banks.
  constexpr int kPaddingBytes = kLengths < 32 ? 4 * (32 / kLengths) : 4;
  constexpr int kPadding = kPaddingBytes < sizeof(Packed) ? 1 : kPaddingBytes / sizeof(Packed);
  __shared__ Packed tile[kLengths][kRows + kPadding];
  const TurnedTile part = find_turned_tile<kLengths, kRows, kGather>(rows, axis, first_tile + blockIdx.x);
  const int lengths = part.lengths, rows_here = part.rows;
  Strided* strided_tile = strided + part.strided;
  Packed* packed_tile = packed + part.packed;

  Packed held[Shape::kSteps];
#pragma unroll
  for (int i = 0; i < Shape::kSteps; ++i) {
    const int row = kGather ? Shape::template along<kRows>(i) : Shape::template across<kLengths>(i);
    const int place = kGather ? Shape::template across<kRows>(i) : Shape::template along<kLengths>(i);
    if (row < rows_here && place < lengths) {
      held[i] = kGather ? strided_tile[row * axis.stride + place * rows.length_stride] : packed_tile[row * part.row_pitch + place];
    }
  }
#pragma unroll
  for (int i = 0; i < Shape::kSteps; ++i) {
    const int row = kGather ? Shape::template along<kRows>(i) : Shape::template across<kLengths>(i);
    const int place = kGather ? Shape::template across<kRows>(i) : Shape::template along<kLengths>(i);
    tile[place][row] = held[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Shape::kSteps; ++i) {
    const int row = kGather ? Shape::template across<kLengths>(i) : Shape::template along<kRows>(i);
    const int place = kGather ? Shape::template along<kLengths>(i) : Shape::template across<kRows>(i);
    if (row < rows_here && place < lengths) {
      if (kGather) {
        packed_tile[row * part.row_pitch + place] = tile[place][row];
      } else {
        strided_tile[row * axis.stride + place * rows.length_stride] = tile[place][row];
      }
    }
  }
}

// kBlocks: lines allow for blocks.
template <int kLengths, int kRows, bool kGather, bool kBlocks = false, class Strided, class Packed>
cudaError_t launch_across(const StridedRows& rows, TurnedAxis axis, Strided* strided, Packed* packed, cudaStream_t stream) {
  axis.size_tiles = (axis.size + kRows - 1) / kRows;
  axis.length_tiles = (rows.length + kLengths - 1) / kLengths;
  axis.tiles = axis.size_tiles * axis.length_tiles * (rows.rows / axis.size);
  for (int64_t first = 0; first < axis.tiles; first += INT_MAX) {
    const unsigned blocks = static_cast<unsigned>(std::min<int64_t>(axis.tiles - first, INT_MAX));
    if constexpr (kBlocks) {
      const TurnedArguments<Strided, Packed> arguments{rows, axis, first, strided, packed};
      const cudaError_t launched = launch_after_predecessor<turn_blocks_kernel<Strided, Packed, kLengths, kRows, kGather>>(
          arguments, {blocks, kTurningThreads, 0, true}, stream);
      if (launched != cudaSuccess) return launched;
    } else {
      copy_across_kernel<Strided, Packed, kLengths, kRows, kGather><<<blocks, kThreads, 0, stream>>>(rows, axis, first, strided, packed);
    }
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

// The row axis that steps least; -1 where the length axis does.
int turned_axis_of(const StridedRows& rows) {
  int turned = -1;
  for (int i = 0; i < rows.dims; ++i) {
    if (rows.strides[i] > 0 && (turned < 0 || rows.strides[i] < rows.strides[turned])) turned = i;  // stride 0: the cache serves it
  }
  return turned >= 0 && rows.length > 1 && rows.strides[turned] < rows.length_stride ? turned : -1;
}

TurnedAxis make_turned_axis(const StridedRows& rows, int turned) {
  TurnedAxis axis;
  axis.size = rows.sizes[turned];
  axis.stride = rows.strides[turned];
  for (int i = turned + 1; i < rows.dims; ++i) axis.row_step *= rows.sizes[i];
  return axis;
}

template <class Strided, class Packed, bool kGather>
cudaError_t launch(const StridedRows& rows, Strided* strided, Packed* packed, cudaStream_t stream) {
  if (rows.rows * rows.length == 0) return cudaSuccess;
  const int turned = turned_axis_of(rows);
  if (turned < 0) {
    const int64_t blocks = (rows.rows * rows.length + kThreads - 1) / kThreads;
    copy_along_kernel<Strided, Packed, kGather>
        <<<static_cast<unsigned>(std::min<int64_t>(blocks, INT_MAX)), kThreads, 0, stream>>>(rows, strided, packed);
    return cudaGetLastError();
  }
  TurnedAxis axis = make_turned_axis(rows, turned);
  constexpr int kFew = 4, kSome = 16;
  constexpr int kArea = sizeof(Packed) == 16 ? 1024 : 4096;  // 33 KB of shared memory at 8 bytes
  constexpr int kSquare = sizeof(Packed) == 16 ? 32 : 64;
  if (axis.size <= kFew) return launch_across<kArea / kFew, kFew, kGather>(rows, axis, strided, packed, stream);
  if (axis.size <= kSome) return launch_across<kArea / kSome, kSome, kGather>(rows, axis, strided, packed, stream);
  if (rows.length <= kFew) return launch_across<kFew, kArea / kFew, kGather>(rows, axis, strided, packed, stream);
  if (rows.length <= kSome) return launch_across<kSome, kArea / kSome, kGather>(rows, axis, strided, packed, stream);
  // [8192, 8192] on an H200, in us, by blocks (by elements): 4 bytes gather 138 (159), scatter 137 (147), 2 bytes 75 (132), 76 (128), 1
  // byte 76 (125), 70 (126), 8 bytes gather 271 (278; scatter 270 either way); positions of 2 bytes to 8 181 (183; in tiles of 64 x 64
  // 187). Copying 4 bytes takes 133. Scattering takes the last tiles first: what the sort of the rows has written last is still in the L2
  // cache.
  constexpr bool kWidens = sizeof(Strided) > sizeof(Packed), kWide = sizeof(Packed) == 8;
  if constexpr (sizeof(Packed) < 8 || (kWide && kGather)) {
    constexpr int kTileLengths = kWide ? 32 : kWidens || sizeof(Packed) < 4 ? 128 : 64, kTileRows = kWidens ? 32 : 64;
    if (turns_by_blocks(rows, turned, strided, packed) && (!kWidens || axis.size > kSquare)) {
      axis.last_first = !kGather;
      return launch_across<kTileLengths, kTileRows, kGather, true>(rows, axis, strided, packed, stream);
    }
  }
  // Tiles that are long where the packed side is touched in runs. [8192, 8192] of 4 bytes on an H200: gather 160 us (64 x 64: 251), scatter
  // 148 (164). Of 33 columns a second tile would hold one, and scattering 300000 x 33 take 45 us instead of 39.
  if constexpr (sizeof(Packed) <= 4) {
    if (kGather || axis.size > kSquare) return launch_across<128, 32, kGather>(rows, axis, strided, packed, stream);
  }
  return launch_across<kSquare, kSquare, kGather>(rows, axis, strided, packed, stream);
}

template <bool kGather, class T>
cudaError_t launch_same(const StridedRows& rows, void* strided, void* packed, cudaStream_t stream) {
  return launch<T, T, kGather>(rows, static_cast<T*>(strided), static_cast<T*>(packed), stream);
}

template <bool kGather>
cudaError_t dispatch(const StridedRows& rows, int element_bytes, void* strided, void* packed, cudaStream_t stream) {
  switch (element_bytes) {
    case 1: return launch_same<kGather, uint8_t>(rows, strided, packed, stream);
    case 2: return launch_same<kGather, uint16_t>(rows, strided, packed, stream);
    case 4: return launch_same<kGather, uint32_t>(rows, strided, packed, stream);
    case 8: return launch_same<kGather, uint64_t>(rows, strided, packed, stream);
    case 16: return launch_same<kGather, Bytes16>(rows, strided, packed, stream);
    default: return cudaErrorInvalidValue;
  }
}

template <class Strided, class Packed>
cudaError_t launch_widening(const StridedRows& rows, const void* packed, void* strided, cudaStream_t stream) {
  return launch<Strided, Packed, false>(rows, static_cast<Strided*>(strided), static_cast<Packed*>(const_cast<void*>(packed)), stream);
}

}  // namespace

cudaError_t launch_gather_rows(const StridedRows& rows, int element_bytes, const void* strided, void* packed, cudaStream_t stream) {
  return dispatch<true>(rows, element_bytes, const_cast<void*>(strided), packed, stream);
}

cudaError_t launch_scatter_rows(const StridedRows& rows, int element_bytes, const void* packed, void* strided, cudaStream_t stream) {
  return dispatch<false>(rows, element_bytes, strided, const_cast<void*>(packed), stream);
}

cudaError_t launch_scatter_positions(const StridedRows& rows, int packed_bytes, const void* packed, int strided_bytes, void* strided,
                                     cudaStream_t stream) {
  if (packed_bytes == strided_bytes) return launch_scatter_rows(rows, packed_bytes, packed, strided, stream);
  if (packed_bytes == 2 && strided_bytes == 4) return launch_widening<uint32_t, uint16_t>(rows, packed, strided, stream);
  if (packed_bytes == 2 && strided_bytes == 8) return launch_widening<uint64_t, uint16_t>(rows, packed, strided, stream);
  if (packed_bytes == 4 && strided_bytes == 8) return launch_widening<uint64_t, uint32_t>(rows, packed, strided, stream);
  return cudaErrorInvalidValue;
}

cudaError_t launch_scatter_results(const StridedRows& rows, int key_bytes, const void* packed_keys, void* keys, int packed_bytes,
                                   const void* packed_positions, int position_bytes, void* positions, cudaStream_t stream) {
  // After the sort of [8192, 8192] 2.5 us less than two launches, of [1000, 1004] 10.8 us for 13.7; in tiles of 64 x 64 5 us more.
  constexpr int kLengths = 128, kRows = 64;
  const int turned = rows.rows * rows.length > 0 ? turned_axis_of(rows) : -1;
  if (turned < 0 || rows.sizes[turned] <= kRows || rows.length <= kRows || key_bytes != 4 || packed_bytes != 2 || position_bytes != 8 ||
      !turns_by_blocks(rows, turned, keys, packed_keys) || !turns_by_blocks(rows, turned, positions, packed_positions)) {
    const cudaError_t status = launch_scatter_rows(rows, key_bytes, packed_keys, keys, stream);
    if (status != cudaSuccess) return status;
    return launch_scatter_positions(rows, packed_bytes, packed_positions, position_bytes, positions, stream);
  }
  TurnedAxis axis = make_turned_axis(rows, turned);
  axis.size_tiles = (axis.size + kRows - 1) / kRows;
  axis.length_tiles = (rows.length + kLengths - 1) / kLengths;
  axis.tiles = axis.size_tiles * axis.length_tiles * (rows.rows / axis.size);
  axis.last_first = true;
  const TurnedResultArguments<uint32_t, uint64_t, uint16_t> arguments{rows,
                                                                      axis,
                                                                      static_cast<const uint32_t*>(packed_keys),
                                                                      static_cast<uint32_t*>(keys),
                                                                      static_cast<const uint16_t*>(packed_positions),
                                                                      static_cast<uint64_t*>(positions)};
  return launch_after_predecessor<turn_results_kernel<uint32_t, uint64_t, uint16_t, kLengths, kRows>>(
      arguments, {static_cast<unsigned>(axis.tiles), kTurningThreads, 0, true}, stream);
}

}  // namespace gpusort
