// How the words of a block's sort lie in shared memory, for the kernels and for the plans that reserve it.
#pragma once

#include <cstdint>

#include "../core/host_device.h"

namespace gpusort {

// A word wide row of shared memory: one word of padding after 32 keeps the threads of a warp on different banks.
GPUSORT_HD int padded_position(int position) {
  return position + (position >> 5);
}

GPUSORT_HD constexpr int64_t round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The most keys with equal leading bits that one thread of `items` words puts in order. With 32 items shared memory decides how many
// blocks an SM runs, and what is kept of longer runs is to be little.
GPUSORT_HD constexpr int longest_run(int items) {
  return items >= 32 ? 16 : 8;
}

// What is kept of longer runs: one slot for each that there can be, and the bytes for all.
GPUSORT_HD constexpr int64_t long_run_slots(int64_t places, int items) {
  return places / (longest_run(items) + 1) + 1;
}
GPUSORT_HD constexpr int64_t long_run_bytes(int key_bytes, int64_t places, int items) {
  return key_bytes < 4 ? 0 : round_up(long_run_slots(places, items) * (2 * key_bytes + 2), 16);  // shorter keys fit whole into their words
}

// Places of shared memory are padded so that threads at a stride of 2, 4 or 8 words use different banks.
GPUSORT_HD constexpr int grid_code_place(int place) {
  return place + (place >> 4);
}
GPUSORT_HD constexpr int grid_index_place(int place) {
  return place + (place >> 5);
}

// Words of keys to 32 bits are (code, index) in 64 bits; those of 64-bit keys have their indices in an array of their own.
GPUSORT_HD constexpr int grid_shared_codes_bytes(int places) {
  return (grid_code_place(places) * 8 + 15) / 16 * 16;
}
GPUSORT_HD constexpr int grid_shared_word_bytes(bool wide, int places) {
  return grid_shared_codes_bytes(places) + (wide ? (grid_index_place(places) * 4 + 15) / 16 * 16 : 0);
}

// Words that are sorted by short stand-ins: the words themselves, the stand-ins, and what is kept of long runs of equal ones.
GPUSORT_HD constexpr int grid_held_bytes(bool wide, int places) {
  return static_cast<int>(round_up(int64_t{places} * 8, 16) + (wide ? round_up(int64_t{places} * 4, 16) : 0));
}
GPUSORT_HD constexpr int grid_short_bytes(int places) {
  return static_cast<int>(round_up((int64_t{places} + places / 32 + 1) * 4, 16));
}
GPUSORT_HD constexpr int grid_packed_bytes(bool wide, int places) {
  constexpr int kItems = 8;  // to a thread, or fewer
  return grid_held_bytes(wide, places) + grid_short_bytes(places) + static_cast<int>(round_up(long_run_bytes(8, places, kItems), 16));
}

}  // namespace gpusort
