// The record buffer in pieces: every record has its own 8 aligned bytes inside the outputs or the rest, wherever the outputs begin.
#include "../../csrc/plan/record_pieces.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "check.h"

using namespace gpusort;

namespace {

// As the kernels find it (cuda/radix/record_places.cuh).
uint64_t address_of(const RecordPieces& pieces, uint64_t record) {
  uint64_t address = pieces.base + record * kPieceRecordBytes;
  for (int i = 0; i < 2; ++i) {
    if (record >= pieces.begin[i]) address += pieces.gap[i];
  }
  return address;
}

// Addresses as outputs and a workspace might have. Keys 0: not wanted.
void check_addresses(int64_t numel, uint64_t keys, uint64_t indices, uint64_t rest) {
  const RecordPieces pieces = make_record_pieces(numel, keys, indices, rest);
  // Only the last records lie in the third piece.
  CHECK(pieces.begin[1] == ~uint64_t{0} || (keys != 0 && pieces.begin[1] + kMostTailRecords >= static_cast<uint64_t>(numel)));
  const uint64_t bytes = static_cast<uint64_t>(numel) * 4;
  const uint64_t rest_bytes = static_cast<uint64_t>(most_records_left(numel, keys != 0)) * kPieceRecordBytes;
  std::vector<bool> taken_keys(numel * 4 / 8 + 2), taken_indices(numel * 4 / 8 + 2), taken_rest(rest_bytes / 8 + 2);
  for (uint64_t record = 0; record < static_cast<uint64_t>(numel); ++record) {
    const uint64_t address = address_of(pieces, record);
    const auto take = [&](uint64_t begin, uint64_t size, std::vector<bool>& taken) {
      if (address < begin || address + kPieceRecordBytes > begin + size) return false;
      CHECK(!taken[(address - begin) / 8]);
      taken[(address - begin) / 8] = true;
      return true;
    };
    CHECK(address % kPieceRecordBytes == 0);
    const int areas =
        (keys != 0 && take(keys, bytes, taken_keys)) + take(indices, bytes, taken_indices) + take(rest, rest_bytes, taken_rest);
    CHECK(areas == 1);
  }
}

// Against all tiles, one after the other.
void check_tiles(int64_t rows, int64_t length, int64_t tile_items, uint64_t begin) {
  const PieceTiles tiles = piece_tiles(begin, length, tile_items);
  const int64_t tiles_per_row = (length + tile_items - 1) / tile_items;
  for (int64_t tile = 0; tile < rows * tiles_per_row; ++tile) {
    const int64_t in_row = tile % tiles_per_row * tile_items;
    const uint64_t first = tile / tiles_per_row * length + in_row, end = first + std::min(tile_items, length - in_row);
    CHECK((tile >= tiles.first) == (first >= begin));
    CHECK((tile == tiles.divided) == (first < begin && begin < end));
  }
}

}  // namespace

int main() {
  constexpr uint64_t kKeys = 0x7f1200000000, kIndices = 0x7f1100000000, kRest = 0x7f1300000100;
  for (const int64_t numel : {1, 2, 3, 4, 5, 8, 9, 1000, 1001, 4098, 4099}) {
    for (const uint64_t key_shift : {0, 4, 8, 12}) {
      for (const uint64_t index_shift : {0, 4, 8, 12}) {
        check_addresses(numel, kKeys + key_shift, kIndices + index_shift, kRest);
        check_addresses(numel, kIndices + key_shift, kKeys + index_shift, kRest);  // the other way round
        check_addresses(numel, 0, kIndices + index_shift, kRest);
      }
    }
    CHECK(most_records_left(numel, true) == (numel % 2 == 1 ? 1 : 2));
    CHECK(most_records_left(numel, false) == numel / 2 + 1);
  }
  // Aligned outputs leave at most one record over.
  for (const int64_t numel : {6, 7}) {
    const RecordPieces pieces = make_record_pieces(numel, kKeys, kIndices, kRest);
    CHECK(pieces.base == kKeys && pieces.begin[0] == 3 && (pieces.begin[1] == 6) == (numel == 7));
    CHECK(address_of(pieces, 2) == kKeys + 16 && address_of(pieces, 3) == kIndices);
    if (numel == 7) CHECK(address_of(pieces, 6) == kRest);
  }
  CHECK(records_in_output(int64_t{1} << 33, 0) == int64_t{1} << 32);
  for (const int64_t rows : {1, 2, 3, 7}) {
    for (const int64_t length : {1, 7, 8, 9, 16, 23}) {
      for (uint64_t begin = 0; begin < static_cast<uint64_t>(rows * length); ++begin) check_tiles(rows, length, 8, begin);
      check_tiles(rows, length, 8, ~uint64_t{0});
    }
  }
  return report();
}
