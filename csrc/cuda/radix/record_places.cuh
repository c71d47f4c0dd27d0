// Where records lie in a buffer that is made of pieces (plan/record_pieces.h).
//
// A record that is written may go to any piece: a comparison with a position in the row and a predicated addition, for each begin. A tile's
// positions rise in the order in which it is written, so only the last records of a tile can be the last of all: the third piece is asked
// for in its last round alone. A tile that is read lies in one piece, but for two tiles of all, which are loaded as slowly as ragged ones.
#pragma once

#include <cstdint>

#include "pass_arguments.h"

namespace gpusort {

// The record buffer that may lie in pieces.
constexpr int kBufferInPieces = 1;

// The first positions of the row that lie in the second and in the third piece.
struct PiecesInRow {
  uint32_t begin[2];
};

template <class Key>
__device__ __forceinline__ PiecesInRow pieces_in_row(const PassArguments<Key>& arguments, uint64_t row_start) {
  PiecesInRow pieces;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint64_t begin = arguments.pieces.begin[i];
    pieces.begin[i] = begin <= row_start ? 0 : static_cast<uint32_t>(min(begin - row_start, static_cast<uint64_t>(~0u)));
  }
  return pieces;
}

// `row` is the address that position 0 of the row would have in the first piece. kBegins: of how many pieces but the first it may be in.
template <int kBegins, class Key>
__device__ __forceinline__ uint64_t address_of_record(const PassArguments<Key>& arguments, const PiecesInRow& pieces, uint64_t row,
                                                      uint32_t position) {
  uint64_t address = row + static_cast<uint64_t>(position) * kPieceRecordBytes;
#pragma unroll
  for (int i = 0; i < kBegins; ++i) {
    asm("{\n"
        ".reg .pred beyond;\n"
        "setp.ge.u32 beyond, %1, %2;\n"
        "@beyond add.u64 %0, %0, %3;\n"
        "}"
        : "+l"(address)
        : "r"(position), "r"(pieces.begin[i]), "l"(arguments.pieces.gap[i]));
  }
  return address;
}

// What is to be added to the address of a record in the first piece. `position` is that over all rows.
template <class Key>
__device__ __forceinline__ uint64_t gap_before(const PassArguments<Key>& arguments, uint64_t position) {
  uint64_t gap = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (position >= arguments.pieces.begin[i]) gap += arguments.pieces.gap[i];
  }
  return gap;
}

// The same of all records of a tile in one piece.
template <class Key>
__device__ __forceinline__ uint64_t gap_before_tile(const PassArguments<Key>& arguments, uint32_t tile) {
  uint64_t gap = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (tile >= arguments.piece_tiles[i].first) gap += arguments.pieces.gap[i];
  }
  return gap;
}

template <class Key>
__device__ __forceinline__ bool tile_in_one_piece(const PassArguments<Key>& arguments, uint32_t tile) {
  return tile != arguments.piece_tiles[0].divided && tile != arguments.piece_tiles[1].divided;
}

}  // namespace gpusort
