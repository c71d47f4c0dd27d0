// The second record buffer of a radix sort where no output alone holds it: 32-bit keys with int32 indices, whose records of 8 bytes take
// the memory of both outputs. They lie in three pieces: as many as fit the key output, as many as fit the index output, and the last one or
// two in the workspace: one if their number is odd, or because an output begins between two records. Without keys there are two pieces: as
// many as fit the index output, and the other half in the workspace.
#pragma once

#include <cstdint>

namespace gpusort {

constexpr int64_t kPieceRecordBytes = 8;
constexpr int kMostTailRecords = 2;  // in the third piece

// Record i lies at base + 8 i, plus gap[0] from begin[0] on, plus gap[1] from begin[1] on. Gaps are modulo 2^64.
struct RecordPieces {
  uint64_t base = 0;
  uint64_t begin[2] = {~uint64_t{0}, ~uint64_t{0}};
  uint64_t gap[2] = {0, 0};
};

// How many records an output of `numel` 32-bit items holds: fewer by one if it begins between multiples of 8 bytes.
constexpr int64_t records_in_output(int64_t numel, int64_t begin) {
  return (numel * 4 - begin % kPieceRecordBytes) / kPieceRecordBytes;
}

// The most records that may be left for the workspace, wherever outputs begin.
constexpr int64_t most_records_left(int64_t numel, bool keys_wanted) {
  return numel - (keys_wanted ? 2 : 1) * records_in_output(numel, 4);
}

// Addresses as numbers, of outputs multiples of 4. keys_out 0: not wanted.
inline RecordPieces make_record_pieces(int64_t numel, uint64_t keys_out, uint64_t indices_out, uint64_t rest) {
  const auto round_up = [](uint64_t address) { return (address + kPieceRecordBytes - 1) / kPieceRecordBytes * kPieceRecordBytes; };
  const auto held = [&](uint64_t output) { return static_cast<uint64_t>(records_in_output(numel, static_cast<int64_t>(output % 8))); };
  RecordPieces pieces;
  uint64_t end = 0, records = 0;  // of the pieces so far
  int gaps = 0;
  const auto add = [&](uint64_t address, uint64_t count) {
    if (records == 0) {
      pieces.base = address;
    } else {
      pieces.begin[gaps] = records;
      pieces.gap[gaps++] = address - end;
    }
    records += count;
    end = address + count * kPieceRecordBytes;
  };
  if (keys_out != 0 && held(keys_out) > 0) add(round_up(keys_out), held(keys_out));
  if (held(indices_out) > 0) add(round_up(indices_out), held(indices_out));
  if (records < static_cast<uint64_t>(numel)) add(rest, static_cast<uint64_t>(numel) - records);
  return pieces;
}

// Where a piece begins among tiles that each hold `tile_items` records of a row, or what is left of it.
struct PieceTiles {
  uint32_t first = ~0u;    // that begins in the piece
  uint32_t divided = ~0u;  // that begins before it and ends in it. ~0: none
};

inline PieceTiles piece_tiles(uint64_t begin, uint64_t length, uint64_t tile_items) {
  PieceTiles tiles;
  if (begin == ~uint64_t{0}) return tiles;
  const uint64_t tiles_per_row = (length + tile_items - 1) / tile_items, in_row = begin % length;
  tiles.first = static_cast<uint32_t>(begin / length * tiles_per_row + (in_row + tile_items - 1) / tile_items);
  if (in_row % tile_items != 0) tiles.divided = tiles.first - 1;
  return tiles;
}

}  // namespace gpusort
