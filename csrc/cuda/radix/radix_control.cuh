// What the histogram read tells the passes, and what each launch slot makes of it: the schedule is decided on the device, without a host
// read.
//
// k = number of live digits (not constant in every row; 0 also when every row is sorted already). Live digit number j (j = 0 .. k-1) is
// step j:
//
//   k = 0   the first slot copies keys and writes 0, 1, 2, ...; the other slots leave at once
//   k = 1   the first slot does everything: keys in, outputs out (32- and 64-bit keys with indices: the last slot in both cases)
//   k > 1   the first slot is step 0, middle slot j is step j (there is none from j = k - 1 on), the last slot is step k - 1
//
// Keys of 64 bits may be sorted by their d leading digits alone (leading_digits.h). Where these leave only small groups together, k is
// d + 1, and a kernel that orders the groups is the last step, in place of the last slot (SmallGroups).
//
// Integers of 64 bits whose high words are the same all over each row are sorted as 32-bit keys, their low words, by kernels of their own:
// records have 8 bytes instead of 12. The first of these reads the low words alone, the last one puts the high word back.
//
// Integers that differ in their low byte alone may be sorted as bytes: low_bytes.h. No slot has anything to do then.
//
// Step j writes record buffer (k - 2 - j) mod 2, so the last step always reads buffer 0, which lies in the workspace; buffer 1 may lie in
// the outputs. A step also clears the look-back table of the next one; the histogram kernel clears the first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../../plan/radix_plan.h"

namespace gpusort {

// Zeroed before the histogram kernel; at most radix_plan_detail::kControlBytes.
struct RadixControl {
  uint32_t live_bits[2];    // low and high word: bits of the sorted-by window in which some key differs from the first of its row
  uint32_t unsorted;        // some key is smaller than the one before it in its row
  uint32_t other_patterns;  // some key is not the pattern that its code is turned back into (ambiguous_keys.h, equal_codes.h)
  uint32_t sorted_from;     // 64-bit keys: the passes sort from this bit on; high_word_ties.h does the rest
  uint32_t small_groups;    // a SmallGroups: what they leave together
  uint32_t called_off;      // not 0: nobody wants the results, and all kernels leave at once
  uint32_t again;           // high_word_ties.h: all keys must be sorted again, by all digits. See kSortAgain
  uint32_t long_runs;       // of equal high words that high_word_ties.cu has noted; some of them twice
  uint32_t tickets[kMaxRadixPasses + 1];        // one counter per step: the next tile
  uint32_t mended_tiles;                        // tiles whose order the verification found wrong, for tests
  uint32_t written_tiles[kMaxRadixPasses + 1];  // one counter per middle step
  uint32_t finished_blocks;                     // of the last kernel
  uint32_t preview;                             // a Preview
  uint32_t group_notes;                         // that group_notes.cuh has made
  uint32_t counting_blocks;                     // of high_word_ties.cu, that have counted what is missing for a second sort
};
static_assert(sizeof(RadixControl) <= radix_plan_detail::kControlBytes, "the plan reserves less");

// Added to PassArguments::passes: a second launch of the middle slots of 64-bit keys, which sorts records by all digits, slot j by live
// digit number j - 1, if RadixControl::again is set. The control words may lie in the index output, which has been written meanwhile. The
// upper half of an index is zero, so a word that lies there says that there is nothing to do.
constexpr int kSortAgain = 32;
static_assert(offsetof(RadixControl, again) / 4 % 2 == 1, "not the upper half of an index");

// Who orders groups that are left together: close_groups.cuh those of at most some dozen, close_windows.h those of some hundred that are
// all of much the same size.
enum class SmallGroups : uint32_t { kNone, kByRecords, kByWindows };

// What digit_preview.cu has seen, and done for the histogram.
enum class Preview : uint32_t { kNothing, kSorted, kLowWords, kLowBytes };

// How many digits are counted already; -1: all that will be needed.
__device__ __forceinline__ int counted_by_preview(const RadixControl& control) {
  switch (static_cast<Preview>(control.preview)) {
    case Preview::kSorted: return control.unsorted == 0 ? -1 : 0;
    case Preview::kLowWords: return control.live_bits[1] == 0 ? -1 : 4;
    case Preview::kLowBytes: return control.live_bits[1] == 0 && control.live_bits[0] >> 8 == 0 ? -1 : 0;
    default: return 0;
  }
}

// What a slot has to do.
struct PassRole {
  int live;   // live digits
  int step;   // which of them this slot sorts by
  int digit;  // its number among all digits
  bool active;
  bool final;  // writes the outputs
  int lowest;  // 64-bit keys: the lowest bit of all that are sorted by
  int target;  // record buffers
  int source;
};

// The control word at this offset (offsetof), where words lie `spacing` apart.
__device__ __forceinline__ uint32_t* control_word(RadixControl* control, size_t offset, int spacing) {
  return reinterpret_cast<uint32_t*>(control) + offset / 4 * spacing;
}

// Have the keys one high word in each row, and are they to be sorted at all?
__device__ __forceinline__ bool sorted_by_low_words(RadixControl* control, int spacing) {
  const uint32_t* live_bits = control_word(control, offsetof(RadixControl, live_bits), spacing);
  return *control_word(control, offsetof(RadixControl, unsorted), spacing) != 0 && live_bits[0] != 0 && live_bits[spacing] == 0;
}

// Is there but one live byte, the lowest, and is low_bytes.h to sort by it?
__device__ __forceinline__ bool sorted_by_low_bytes(RadixControl* control, int spacing) {
  const uint32_t* live_bits = control_word(control, offsetof(RadixControl, live_bits), spacing);
  const uint32_t preview = *control_word(control, offsetof(RadixControl, preview), spacing);
  return preview == static_cast<uint32_t>(Preview::kLowBytes) && live_bits[0] >> 8 == 0 && live_bits[spacing] == 0 &&
         *control_word(control, offsetof(RadixControl, called_off), spacing) == 0;
}

// Only digits of the high word are sorted by, so only those are counted, the others if all keys must be sorted again.
__device__ __forceinline__ bool high_word_counted_alone(uint32_t sorted_from) {
  return sorted_from >= 32;
}

__device__ __forceinline__ PassRole pass_role(RadixControl* control, PassKind kind, int slot, int passes, bool last_takes_all = false,
                                              int spacing = 1) {
  const uint32_t* live_bits = control_word(control, offsetof(RadixControl, live_bits), spacing);
  const unsigned long long bits = static_cast<unsigned long long>(live_bits[spacing]) << 32 | live_bits[0];
  const bool again = kind == PassKind::kMiddle && passes >= kSortAgain;
  if (again) passes -= kSortAgain;
  uint32_t digits = 0;
  for (int digit = 0; digit < passes; ++digit) digits |= (bits >> (digit * kRadixBits) & (kRadixBins - 1)) != 0 ? 1u << digit : 0u;
  if (*control_word(control, offsetof(RadixControl, unsorted), spacing) == 0) digits = 0;
  bool groups = false;
  PassRole role;
  role.lowest = 0;
  if (passes == kMaxRadixPasses && !again) {
    role.lowest = *control_word(control, offsetof(RadixControl, sorted_from), spacing);
    digits &= ~0u << role.lowest / kRadixBits;
    groups = digits != 0 && *control_word(control, offsetof(RadixControl, small_groups), spacing) != 0;
  }

  role.live = __popc(digits) + (groups ? 1 : 0);
  role.step = kind == PassKind::kLast ? role.live - 1 : slot;
  if (kind == PassKind::kMiddle)
    role.active = slot < role.live - 1;
  else if (kind == PassKind::kLast)
    role.active = !groups && (role.live > 1 || last_takes_all);
  else
    role.active = role.live > 1 || !last_takes_all;
  role.active = role.active && *control_word(control, offsetof(RadixControl, called_off), spacing) == 0;
  role.final = role.step == role.live - 1;
  role.target = (role.live - 2 - role.step) & 1;
  role.source = role.target ^ 1;
  if (sorted_by_low_bytes(control, spacing)) role.active = false;
  int skip = role.step;
  if (again) {
    role.active = slot <= role.live && *control_word(control, offsetof(RadixControl, again), spacing) != 0;
    --skip;
  }
  for (int skipped = 0; skipped < skip; ++skipped) digits &= digits - 1;
  role.digit = digits == 0 ? 0 : __ffs(static_cast<int>(digits)) - 1;
  return role;
}

}  // namespace gpusort
