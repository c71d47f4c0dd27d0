// Large sorts: least-significant-digit radix sort, batched over rows.
//
//   1. one memset of the control words and the bins; for 64-bit keys leading_digits.cu, which may choose to sort by a few digits
//   2. digit_histogram.cu: one read counts all digits of all rows, and finds constant digits and sorted rows; before it digit_preview.cu,
//      which may spare the count
//   3. onesweep_pass.cuh: one slot per 8-bit digit, each one read and one write of the data: the first slot, the middle ones (in one
//      launch but for 32-bit pairs), and the last one. Which slots work, on which digit and between which buffers, is decided on the
//      device (radix_control.cuh); one that is not needed leaves at once. 64-bit integers have slots of both forms, whole keys and low
//      words. For 32- and 64-bit keys with int64 indices the tables lie in the outputs, and move_tables.cu moves them before the last
//      slot
//   4. 8-bit keys without indices need no slot: byte_runs.cu writes what was counted. 16-bit ones have a sort of their own:
//      counting_sort_16.cu. So have single rows of 8- and 16-bit keys with indices, byte_sort.cu and half_sort.cu, and of bools without:
//      bool_keys.cu
//   5. 64-bit keys whose high words tell nearly all different keys apart are sorted by these alone; high_word_ties.cu then orders the few
//      ties. Those of which two to four leading digits leave small groups together are sorted by these, and close_windows.cu or
//      close_groups.cuh orders the groups, in place of the last slot. If ties are not few, or groups not small after all, the middle slots
//      sort all keys again, by all digits
//   6. long rows of integers that differ in their low byte alone need no slot either: low_bytes.cu
//   7. where different keys have one code (floats and bool): ambiguous_keys.cu with indices, for all whose tables lie in the index output
//      too; equal_codes.cu without
//
// Traffic for 32-bit keys with int64 indices: 4 (histogram) + 4 + 8 (first) + 2 * 16 (middle) + 8 + 12 (last) = 68 bytes per element.
// The index is implied in the first slot, 32 bits between slots, and widened in the last. Keys travel as codes (staged_record.cuh).
#include "radix_sort.h"

#include <cuda_runtime.h>

#include <algorithm>

#include "ambiguous_keys.h"
#include "bool_keys.h"
#include "byte_runs.h"
#include "byte_sort.h"
#include "counting_sort_16.h"
#include "digit_histogram.h"
#include "equal_codes.h"
#include "half_sort.h"
#include "high_word_ties.h"
#include "leading_digits.h"
#include "low_bytes.h"
#include "move_tables.h"
#include "pass_arguments.h"
#include "radix_control.cuh"
#include "wide_pass.h"

namespace gpusort {
namespace {

// Nothing is read through null: a slice the plan did not reserve stays null.
template <class Type>
Type* slice(void* workspace, int64_t offset) {
  return offset < 0 ? nullptr : reinterpret_cast<Type*>(static_cast<char*>(workspace) + offset);
}

// Control words, bins and look-back tables.
void* tables_of(const SortProblem& problem, const RadixPlan& plan, void* workspace) {
  if (plan.borrowed_begin < 0) return workspace;
  return static_cast<char*>(problem.key.bytes == 8 ? problem.indices_out : problem.keys_out) + plan.lent_offset;
}

// Both zeros, several NaNs, several bytes that mean True.
bool codes_may_meet(KeyKind kind) {
  return kind != KeyKind::kUnsigned && kind != KeyKind::kSigned;
}

// Gives the slots of one kind their tiles.
template <class Key>
void set_tiles(PassArguments<Key>& arguments, int64_t tiles_per_row) {
  arguments.tiles_per_row = static_cast<uint32_t>(tiles_per_row);
  arguments.tiles = static_cast<uint32_t>(arguments.rows * tiles_per_row);
  arguments.look_back_share = (arguments.look_back_rows + arguments.tiles - 1) / arguments.tiles;
}

bool has_slots(const RadixPlan& plan, int key_bytes, PassKind kind) {
  if (kind == PassKind::kMiddle) return plan.passes >= 3;
  return plan.passes >= 2 || (kind == PassKind::kLast) == last_slot_takes_all(key_bytes, plan.indexed);
}

// The same slot of the form that sorts 64-bit keys by their low words: one of the two leaves at once.
cudaError_t launch_low_word_slot(PassKind kind, const PassArguments<uint64_t>& whole, const RadixPlan& plan, cudaStream_t stream) {
  PassArguments<uint32_t> arguments;
  arguments.order.complement = static_cast<uint32_t>(whole.order.complement);  // low words of integers have no sign
  arguments.codec = make_key_codec(arguments.order);
  arguments.keys_in = reinterpret_cast<const uint32_t*>(whole.keys_in);
  arguments.keys_out = plan.scratch_keys_offset >= 0 ? nullptr : reinterpret_cast<uint32_t*>(whole.keys_out);  // it does without
  arguments.indices_out = whole.indices_out;
  arguments.index_bytes = whole.index_bytes;
  arguments.borrowed_begin = whole.borrowed_begin;
  arguments.spacing = whole.spacing;
  arguments.control = whole.control;
  arguments.bins = whole.bins;
  for (int i = 0; i < 2; ++i) {
    arguments.records[i] = whole.records[i];
    arguments.look_back[i] = whole.look_back[i];
  }
  arguments.look_back_rows = whole.look_back_rows;
  arguments.length = whole.length;
  arguments.rows = whole.rows;
  arguments.passes = whole.passes;
  arguments.window_bits = 32;
  arguments.may_use_low_words = true;
  arguments.low_words = true;
  const int tile_items = radix_tile_shape(4, plan.indexed, plan.tile_class, kind).tile_items();
  set_tiles(arguments, (static_cast<int64_t>(arguments.length) + tile_items - 1) / tile_items);
  const int grid = std::min(plan.grid[static_cast<int>(kind)], static_cast<int>(arguments.tiles));
  return plan.indexed ? launch_low_word_pass<true>(kind, plan.tile_class, arguments, grid, stream)
                      : launch_low_word_pass<false>(kind, plan.tile_class, arguments, grid, stream);
}

template <class Key>
cudaError_t launch_slot(PassKind kind, const PassArguments<Key>& arguments, const RadixPlan& plan, cudaStream_t stream) {
  const int grid = plan.grid[static_cast<int>(kind)];
  if constexpr (sizeof(Key) == 4) {
    if (plan.in_pieces && kind != PassKind::kLast) return launch_pass_in_pieces(kind, plan.tile_class, arguments, grid, stream);
  }
  if constexpr (sizeof(Key) == 8) {
    const bool scratch_keys = plan.scratch_keys_offset >= 0 && kind == PassKind::kLast;
    if (scratch_keys) return launch_last_pass_with_scratch_keys(plan.tile_class, arguments, grid, stream);
  }
  return plan.indexed ? launch_pass<Key, true>(kind, plan.tile_class, arguments, grid, stream)
                      : launch_pass<Key, false>(kind, plan.tile_class, arguments, grid, stream);
}

// Leaves `arguments` as the last slot needs them, and in `middle` what the middle ones had.
template <class Key>
cudaError_t launch_slots(PassArguments<Key>& arguments, PassArguments<Key>& middle, const RadixPlan& plan, cudaStream_t stream) {
  for (PassKind kind : {PassKind::kFirst, PassKind::kMiddle, PassKind::kLast}) {
    if (!has_slots(plan, static_cast<int>(sizeof(Key)), kind)) continue;
    if constexpr (sizeof(Key) >= 4) {
      if (kind == PassKind::kLast && plan.borrowed_begin >= 0) {
        const cudaError_t error = launch_move_tables(arguments, plan, stream);
        if (error != cudaSuccess) return error;
      }
    }
    if constexpr (sizeof(Key) == 8) {
      if (plan.may_use_low_words) {
        const cudaError_t error = launch_low_word_slot(kind, arguments, plan, stream);
        if (error != cudaSuccess) return error;
      }
    }
    set_tiles(arguments, plan.tiles_per_row[static_cast<int>(kind)]);
    if (kind == PassKind::kMiddle) middle = arguments;
    const cudaError_t error = launch_slot(kind, arguments, plan, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

// Orders keys of equal high words by the rest, or else sorts all keys again.
cudaError_t launch_rest_of_high_words(const PassArguments<uint64_t>& arguments, const PassArguments<uint64_t>& middle,
                                      const RadixPlan& plan, cudaStream_t stream) {
  static_assert(kMiddleSlotsInOneLaunch<uint64_t, true> && kMiddleSlotsInOneLaunch<uint64_t, false>, "all digits in one launch");
  HighWordTables tables;
  tables.middle = middle;
  tables.bin_words = static_cast<uint32_t>(plan.passes) * kRadixBins;
  cudaError_t error = launch_high_word_ties(arguments, tables, plan.grid[0], stream);
  if (error != cudaSuccess) return error;
  PassArguments<uint64_t> again = middle;
  again.passes += kSortAgain;
  again.may_use_low_words = false;
  const int grid = plan.grid[static_cast<int>(PassKind::kMiddle)];
  error = plan.indexed ? launch_pass<uint64_t, true>(PassKind::kMiddle, plan.tile_class, again, grid, stream)
                       : launch_pass<uint64_t, false>(PassKind::kMiddle, plan.tile_class, again, grid, stream);
  return error != cudaSuccess ? error : launch_sorted_again(arguments, plan.grid[0], stream);
}

LowByteTables low_byte_tables(const SortProblem& problem, const RadixPlan& plan, void* workspace) {
  LowByteTables tables;
  if (!plan.low_bytes.used) return tables;
  char* records = slice<char>(workspace, plan.records_offset);
  tables.bytes = slice<uint8_t>(records, low_bytes_offset(problem.length));
  tables.tile_tables = slice<uint32_t>(records, plan.low_bytes.tile_tables_offset);
  tables.group_tables = slice<uint32_t>(records, plan.low_bytes.group_tables_offset);
  tables.bins = slice<uint32_t>(records, plan.low_bytes.bins_offset);
  tables.tile_items = static_cast<uint32_t>(plan.low_bytes.tile_items);
  tables.tiles = static_cast<uint32_t>(plan.low_bytes.tiles);
  tables.tiles_per_group = static_cast<uint32_t>(plan.low_bytes.tiles_per_group);
  tables.groups = static_cast<uint32_t>(plan.low_bytes.groups);
  return tables;
}

template <class Key>
cudaError_t launch_histogram(const SortProblem& problem, const RadixPlan& plan, const KeyOrder<Key>& order, void* tables, void* workspace,
                             cudaStream_t stream) {
  HistogramArguments<Key> arguments;
  arguments.order = order;
  arguments.codec = make_key_codec(order);
  arguments.keys = static_cast<const Key*>(problem.keys_in);
  arguments.control = slice<RadixControl>(tables, plan.control_offset);
  arguments.bins = slice<void>(tables, plan.bins_offset);
  arguments.look_back = slice<void>(tables, plan.look_back_offset[0]);
  arguments.look_back_bytes = static_cast<uint64_t>(plan.look_back_words) * (plan.wide ? 8 : 4);
  arguments.length = static_cast<uint64_t>(problem.length);
  arguments.rows = static_cast<uint32_t>(problem.rows);
  arguments.chunk = static_cast<uint32_t>(plan.histogram_chunk);
  arguments.chunks_per_row = static_cast<uint64_t>((problem.length + plan.histogram_chunk - 1) / plan.histogram_chunk);
  arguments.passes = plan.passes;
  arguments.begin_bit = problem.begin_bit;
  arguments.window_bits = problem.end_bit - problem.begin_bit;
  arguments.codes_meet = codes_may_meet(problem.key.kind);
  arguments.previewed = plan.previewed;
  arguments.low_bytes = low_byte_tables(problem, plan, workspace);
  return launch_digit_histogram(arguments, plan.wide, plan.histogram_grid, stream);
}

template <class Key>
cudaError_t launch_narrow(const SortProblem& problem, const RadixPlan& plan, const KeyOrder<Key>& order, void* workspace,
                          cudaStream_t stream) {
  PassArguments<Key> arguments;
  arguments.order = order;
  arguments.codec = make_key_codec(order);
  arguments.codes_meet = codes_may_meet(problem.key.kind);
  arguments.keys_in = static_cast<const Key*>(problem.keys_in);
  arguments.keys_out =
      plan.scratch_keys_offset >= 0 ? slice<Key>(workspace, plan.scratch_keys_offset) : static_cast<Key*>(problem.keys_out);
  arguments.indices_out = problem.indices_out;
  arguments.index_bytes = problem.index_bytes;
  arguments.records[0] = slice<void>(workspace, plan.records_offset);
  arguments.record_indices[0] = slice<uint32_t>(workspace, plan.record_indices_offset);
  const bool pairs = plan.indexed && sizeof(Key) < 8;  // records of 8 bytes, else keys alone
  arguments.records[1] = plan.second_records_offset >= 0 ? slice<void>(workspace, plan.second_records_offset)
                         : pairs                         ? problem.indices_out
                                                         : arguments.keys_out;
  arguments.record_indices[1] = static_cast<uint32_t*>(problem.indices_out);
  if (plan.in_pieces) {
    arguments.pieces =
        make_record_pieces(problem.numel(), reinterpret_cast<uint64_t>(problem.keys_out), reinterpret_cast<uint64_t>(problem.indices_out),
                           reinterpret_cast<uint64_t>(arguments.records[1]));
    arguments.records[1] = reinterpret_cast<void*>(arguments.pieces.base);
  }
  void* tables = tables_of(problem, plan, workspace);
  arguments.control = slice<RadixControl>(tables, plan.control_offset);
  arguments.bins = slice<uint32_t>(tables, plan.bins_offset);
  for (int table = 0; table < 2; ++table) arguments.look_back[table] = slice<uint32_t>(tables, plan.look_back_offset[table]);
  arguments.look_back_rows = static_cast<uint32_t>(plan.look_back_words / kRadixBins);
  arguments.low_bytes = low_byte_tables(problem, plan, workspace);
  arguments.length = static_cast<uint32_t>(problem.length);
  arguments.rows = static_cast<uint32_t>(problem.rows);
  arguments.passes = plan.passes;
  arguments.begin_bit = problem.begin_bit;
  arguments.window_bits = problem.end_bit - problem.begin_bit;
  if constexpr (sizeof(Key) == 8) {
    arguments.may_use_low_words = plan.may_use_low_words;
  }
  PassArguments<Key> middle;
  cudaError_t error = launch_slots(arguments, middle, plan, stream);
  if constexpr (sizeof(Key) >= 4) {
    if (error == cudaSuccess && plan.low_bytes.used) error = launch_low_bytes(arguments, plan, stream);
  }
  if (error != cudaSuccess) return error;
  if constexpr (sizeof(Key) == 1) {
    if (!plan.indexed && !arguments.partial_window()) {
      const cudaError_t error = launch_byte_runs(arguments, plan.grid[0] * 8, stream);
      if (error != cudaSuccess) return error;
    }
  }
  if constexpr (sizeof(Key) == 8) {
    if (plan.high_word_samples > 0) {
      const cudaError_t error = launch_rest_of_high_words(arguments, middle, plan, stream);
      if (error != cudaSuccess) return error;
    }
  }
  const bool ambiguous = plan.passes > 0 && arguments.codes_meet && problem.keys_out != nullptr;
  if (plan.indexed) return ambiguous || plan.borrowed_begin >= 0 ? launch_ambiguous_keys(arguments, plan.grid[0] * 4, stream) : cudaSuccess;
  if (!ambiguous || arguments.partial_window()) return cudaSuccess;  // the passes have kept the keys whole
  const size_t table_bytes = static_cast<size_t>(plan.look_back_words) * 4;
  return launch_equal_codes(arguments, arguments.look_back[0], table_bytes, plan.grid[0] * 4, stream);
}

template <class Key>
cudaError_t launch_wide(const SortProblem& problem, const RadixPlan& plan, const KeyOrder<Key>& order, void* workspace,
                        cudaStream_t stream) {
  WidePassArguments<Key> arguments;
  arguments.order = order;
  arguments.keys_in = static_cast<const Key*>(problem.keys_in);
  arguments.keys[0] = slice<Key>(workspace, plan.records_offset);
  arguments.keys[1] =
      plan.second_records_offset >= 0 ? slice<Key>(workspace, plan.second_records_offset) : static_cast<Key*>(problem.keys_out);
  arguments.indices[0] = slice<int64_t>(workspace, plan.record_indices_offset);
  arguments.indices[1] = static_cast<int64_t*>(problem.indices_out);
  arguments.keys_wanted = problem.keys_out != nullptr;
  arguments.control = slice<RadixControl>(workspace, plan.control_offset);
  arguments.bins = slice<unsigned long long>(workspace, plan.bins_offset);
  for (int table = 0; table < 2; ++table) arguments.look_back[table] = slice<unsigned long long>(workspace, plan.look_back_offset[table]);
  arguments.look_back_words = static_cast<uint64_t>(plan.look_back_words);
  arguments.length = static_cast<uint64_t>(problem.length);
  arguments.rows = static_cast<uint32_t>(problem.rows);
  arguments.tiles_per_row = static_cast<uint32_t>(plan.tiles_per_row[0]);
  arguments.tiles = static_cast<uint32_t>(plan.tiles(PassKind::kFirst, problem.rows));
  arguments.passes = plan.passes;
  arguments.begin_bit = problem.begin_bit;
  arguments.window_bits = problem.end_bit - problem.begin_bit;
  for (int slot = 0; slot == 0 || slot < plan.passes; ++slot) {
    arguments.slot = slot;
    const cudaError_t error = launch_wide_pass(arguments, plan.grid[0], stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

template <class Key>
cudaError_t launch_width(const SortProblem& problem, const RadixPlan& plan, void* workspace, cudaStream_t stream) {
  const KeyOrder<Key> order = problem.key.order<Key>(problem.descending);
  if (plan.passes > 0) {
    const cudaError_t error = launch_histogram(problem, plan, order, tables_of(problem, plan, workspace), workspace, stream);
    if (error != cudaSuccess) return error;
  }
  return plan.wide ? launch_wide(problem, plan, order, workspace, stream) : launch_narrow(problem, plan, order, workspace, stream);
}

}  // namespace

cudaError_t launch_radix_sort(const SortProblem& problem, const RadixPlan& plan, void* workspace, cudaStream_t stream) {
  if (plan.counting.used) return launch_counting_sort_16(problem, plan.counting, plan.grid[0], workspace, stream);
  if (plan.bool_keys.used) return launch_bool_keys(problem, plan.bool_keys, workspace, stream);
  if (plan.byte_sort.used) return launch_byte_sort(problem, plan, workspace, stream);
  if (plan.half_sort.used) return launch_half_sort(problem, plan.half_sort, workspace, stream);
  if (plan.wide && plan.indexed && problem.index_bytes != 8) return cudaErrorInvalidValue;  // such positions need int64
  void* tables = tables_of(problem, plan, workspace);
  cudaError_t error = cudaSuccess;
  if (plan.high_word_samples > 0)
    error = launch_leading_digits(problem, plan, tables, stream);
  else if (!plan.cleared_before)
    error = cudaMemsetAsync(tables, 0, static_cast<size_t>(plan.cleared_bytes), stream);
  if (error == cudaSuccess && problem.called_off != nullptr) {
    RadixControl* control = slice<RadixControl>(tables, plan.control_offset);
    error = cudaMemcpyAsync(&control->called_off, problem.called_off, sizeof(uint32_t), cudaMemcpyDeviceToDevice, stream);
  }
  if (error != cudaSuccess) return error;
  switch (problem.key.bytes) {
    case 1: return launch_width<uint8_t>(problem, plan, workspace, stream);
    case 2: return launch_width<uint16_t>(problem, plan, workspace, stream);
    case 4: return launch_width<uint32_t>(problem, plan, workspace, stream);
    case 8: return launch_width<uint64_t>(problem, plan, workspace, stream);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace gpusort
