// What the slots of a radix sort are given. The digit, the buffers and whether there is anything to do follow on the device
// (radix_control.cuh).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

#include "../../core/key_codec.h"
#include "../../core/key_order.h"
#include "../../plan/radix_plan.h"
#include "../../plan/record_pieces.h"
#include "digit_histogram.h"

namespace gpusort {

struct RadixControl;

// Whether all middle slots are one launch, whose blocks wait for each other between two steps. It saves launches and tails, but the loop
// takes registers, of which the 1024 threads of 32-bit pairs have none to spare: two steps 1010 us in a loop, 760 in two launches (H200,
// 2^26).
template <class Key, bool kIndexed>
constexpr bool kMiddleSlotsInOneLaunch = sizeof(Key) == 8 || !kIndexed;

// Keys as integers of 32 or 64 bits: what kernels compute with.
template <class Key>
using CodeOf = std::conditional_t<sizeof(Key) == 8, uint64_t, uint32_t>;

template <class Key>
struct PassArguments {
  KeyOrder<Key> order;
  KeyCodec<Key> codec;      // of this order
  bool codes_meet = false;  // different keys may have one code: floats and bool

  const Key* keys_in = nullptr;
  Key* keys_out = nullptr;      // null: not wanted
  void* indices_out = nullptr;  // int64 or int32
  int index_bytes = 8;
  void* records[2] = {nullptr, nullptr};             // see radix_control.cuh: [0] workspace, [1] the other buffer
  uint32_t* record_indices[2] = {nullptr, nullptr};  // 64-bit keys only
  // From this index on, over all rows, the upper halves belong to the tables: see borrowed_indices.cuh. Beyond all where they do not.
  uint64_t borrowed_begin = ~uint64_t{0};
  int spacing = 1;  // of the words of the tables: control, bins, look_back
  RadixControl* control = nullptr;
  const uint32_t* bins = nullptr;               // [rows][passes][256]
  uint32_t* look_back[2] = {nullptr, nullptr};  // table of step j: [j mod 2]
  uint32_t look_back_rows = 0;                  // of 256 words, per table
  uint32_t look_back_share = 0;                 // rows of the next table that a tile clears

  LowByteTables low_bytes;

  uint32_t length = 0;
  uint32_t rows = 1;
  uint32_t tiles_per_row = 1;
  uint32_t tiles = 1;
  int passes = 1;
  int middle_slot = 1;  // which one a launch is for, where they are not all in one
  int begin_bit = 0;
  int window_bits = 0;
  bool may_use_low_words = false;  // 64-bit integers, sorted by all bits: both forms are launched, see radix_control.cuh
  bool low_words = false;          // this is the form that sorts low words alone
  RecordPieces pieces;             // of records[1], for launch_pass_in_pieces
  PieceTiles piece_tiles[2];       // of the tiles of this slot

  // Are kernels set up while the one before ends (dependent_launch.cuh)? H200, with indices: 2^26 float32 1675 us with and 1686 without,
  // 2^24 506 and 514; but 2^22 in a graph 161 and 156. Sorts of 64-bit keys have many launches that leave at once: ids below 2^20, 2^24 421
  // and 440, 2^22 147 and 166; random keys 2^22 241 either way.
  bool dependent_launch() const {
    const uint64_t numel = static_cast<uint64_t>(rows) * length;
    if (sizeof(Key) == 8 || low_words) return numel >= uint64_t{1} << 20;
    return sizeof(Key) == 4 && indices_out != nullptr && numel >= uint64_t{1} << 23;
  }

  GPUSORT_HD bool partial_window() const { return window_bits < static_cast<int>(sizeof(Key) * 8); }
};

// Launches the first slot, the middle ones (one by one or all at once: kMiddleSlotsInOneLaunch), or the last one. One explicit
// specialisation per key width and form lives in its own file, so that they compile side by side.
template <class Key, bool kIndexed>
cudaError_t launch_pass(PassKind kind, TileClass tile_class, const PassArguments<Key>& arguments, int grid, cudaStream_t stream);

template <>
cudaError_t launch_pass<uint8_t, true>(PassKind, TileClass, const PassArguments<uint8_t>&, int, cudaStream_t);
template <>
cudaError_t launch_pass<uint16_t, true>(PassKind, TileClass, const PassArguments<uint16_t>&, int, cudaStream_t);
template <>
cudaError_t launch_pass<uint32_t, true>(PassKind, TileClass, const PassArguments<uint32_t>&, int, cudaStream_t);
template <>
cudaError_t launch_pass<uint64_t, true>(PassKind, TileClass, const PassArguments<uint64_t>&, int, cudaStream_t);
template <>
cudaError_t launch_pass<uint8_t, false>(PassKind, TileClass, const PassArguments<uint8_t>&, int, cudaStream_t);
template <>
cudaError_t launch_pass<uint16_t, false>(PassKind, TileClass, const PassArguments<uint16_t>&, int, cudaStream_t);
template <>
cudaError_t launch_pass<uint32_t, false>(PassKind, TileClass, const PassArguments<uint32_t>&, int, cudaStream_t);
template <>
cudaError_t launch_pass<uint64_t, false>(PassKind, TileClass, const PassArguments<uint64_t>&, int, cudaStream_t);

// The first or the middle slots of 32-bit keys with indices, the second buffer of which lies in pieces.
cudaError_t launch_pass_in_pieces(PassKind kind, TileClass tile_class, const PassArguments<uint32_t>& arguments, int grid,
                                  cudaStream_t stream);

// The last slot of 64-bit keys with indices where keys_out is scratch memory (RadixPlan::scratch_keys_offset).
cudaError_t launch_last_pass_with_scratch_keys(TileClass tile_class, const PassArguments<uint64_t>& arguments, int grid,
                                               cudaStream_t stream);

// The same for the low words of 64-bit keys; keys_in and keys_out point to the 64-bit keys.
template <bool kIndexed>
cudaError_t launch_low_word_pass(PassKind kind, TileClass tile_class, const PassArguments<uint32_t>& arguments, int grid,
                                 cudaStream_t stream);

template <>
cudaError_t launch_low_word_pass<true>(PassKind, TileClass, const PassArguments<uint32_t>&, int, cudaStream_t);
template <>
cudaError_t launch_low_word_pass<false>(PassKind, TileClass, const PassArguments<uint32_t>&, int, cudaStream_t);

}  // namespace gpusort
