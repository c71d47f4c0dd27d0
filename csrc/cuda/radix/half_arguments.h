// What the kernels of the sort of 16-bit keys with indices are given (half_sort.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "../../core/key_codec.h"
#include "../../plan/half_sort_plan.h"

namespace gpusort {

// Zeroed before the histogram.
struct HalfControl {
  uint32_t unsorted;      // some key is smaller than the one before it
  uint32_t few;           // the sample has at most kMostPatterns patterns
  uint32_t missing;       // some key has none of these
  uint32_t tickets[3];    // the next tile, by HalfStep
  uint32_t mended_tiles;  // whose order the verification found wrong, for tests
};

enum class HalfMode { kCalledOff, kCopy, kFewPatterns, kTwoPasses };

struct HalfArguments {
  KeyCodec<uint16_t> codec;
  uint32_t pad[2] = {0, 0};  // a key whose code ends in 255, and one with the largest code
  const uint16_t* keys_in = nullptr;
  uint16_t* keys_out = nullptr;  // null: not wanted
  void* indices_out = nullptr;   // aligned to 16 bytes
  int index_bytes = 8;
  const uint32_t* called_off = nullptr;  // null, or a word that says that nobody wants the results
  uint16_t* low_keys = nullptr;          // in the order of the low byte
  uint32_t* low_indices = nullptr;       // of these
  HalfControl* control = nullptr;
  uint32_t* bins = nullptr;                     // [3][256], zeroed: low bytes, high bytes, patterns by their number
  uint32_t* patterns = nullptr;                 // [kPatternWords]: a bit for each pattern of the sample
  uint32_t* look_back[2] = {nullptr, nullptr};  // [tiles][256], one after the other; cleared by the histogram
  uint64_t look_back_vectors = 0;               // of 16 bytes, in both
  uint16_t* grid_counts = nullptr;              // half_grid.cu, [2][tiles][256]: of each tile, by low and by high byte
  uint32_t* grid_unsorted = nullptr;            // [tiles]: some key of the tile is smaller than the one before it
  uint32_t length = 0;
  uint32_t tiles[3] = {0, 0, 0};  // by HalfStep
};

__device__ __forceinline__ HalfMode half_mode(const HalfArguments& arguments) {
  if (arguments.called_off != nullptr && *arguments.called_off != 0) return HalfMode::kCalledOff;
  const HalfControl* control = arguments.control;
  const uint32_t unsorted = __ldcg(&control->unsorted), few = __ldcg(&control->few), missing = __ldcg(&control->missing);
  if (unsorted == 0) return HalfMode::kCopy;
  return few != 0 && missing == 0 ? HalfMode::kFewPatterns : HalfMode::kTwoPasses;
}

// Two kernels: cleared_bytes from the control words on are cleared first.
cudaError_t launch_half_histogram(const HalfArguments& arguments, int64_t cleared_bytes, int grid, cudaStream_t stream);

// `keeps_ranks`: see HalfTile.
cudaError_t launch_half_first(const HalfArguments& arguments, bool keeps_ranks, int grid, cudaStream_t stream);
// `threads`: of a block.
cudaError_t launch_half_last(const HalfArguments& arguments, int threads, int grid, cudaStream_t stream);

// The one launch: a block to each tile. `shape`: one of kHalfGridShapes.
cudaError_t launch_half_grid(const HalfArguments& arguments, HalfShape shape, int grid, cudaStream_t stream);

}  // namespace gpusort
