// What every merge kernel is given: a MergeProblem with its keys typed by width, and the plan's pieces.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../../core/co_rank.h"
#include "../../plan/merge_plan.h"
#include "../../plan/sort_problem.h"

namespace gpusort {

template <class U>
struct MergeArguments {
  const U* a;
  const U* b;
  U* keys_out;
  int64_t rows, a_length, b_length;
  KeyOrder<U> order;

  const void* a_payload;
  const void* b_payload;
  void* payload_out;
  int payload_bytes;  // 0: none
  void* indices_out;  // null: none
  int index_bytes;

  int64_t piece, pieces_per_row;
  int64_t own_pieces;  // the first, whose blocks find them while the cuts of the others are found; 0 if there are cuts for all
  bool loose_cuts;     // those in memory may be (core/loose_cut.h)
  int64_t* cuts;       // null: blocks find their own; else rows x (pieces_per_row - 1): elements of a before each inner cut
  int reach;           // of the windows around expected cuts
  float share_of_a;    // among a row's outputs

  GPUSORT_HD int64_t row_outputs() const { return a_length + b_length; }
  GPUSORT_HD const U* a_row(int64_t row) const { return a + row * a_length; }
  GPUSORT_HD const U* b_row(int64_t row) const { return b + row * b_length; }
  GPUSORT_HD int64_t rank_of(int64_t cut) const { return cut * piece < row_outputs() ? cut * piece : row_outputs(); }
  GPUSORT_HD bool wants_positions() const { return payload_bytes != 0 || indices_out != nullptr; }
};

template <class U>
MergeArguments<U> make_merge_arguments(const MergeProblem& problem, const MergePlan& plan, void* workspace) {
  MergeArguments<U> m;
  m.a = static_cast<const U*>(problem.a_keys);
  m.b = static_cast<const U*>(problem.b_keys);
  m.keys_out = static_cast<U*>(problem.keys_out);
  m.rows = problem.rows;
  m.a_length = problem.a_length;
  m.b_length = problem.b_length;
  m.order = problem.key.order<U>(problem.descending);
  m.a_payload = problem.a_payload;
  m.b_payload = problem.b_payload;
  m.payload_out = problem.payload_out;
  m.payload_bytes = problem.payload_bytes;
  m.indices_out = problem.indices_out;
  m.index_bytes = problem.index_bytes;
  m.piece = plan.piece;
  m.pieces_per_row = plan.pieces_per_row;
  m.own_pieces = plan.own_pieces;
  m.loose_cuts = plan.loose_cuts;
  m.cuts = plan.cuts_in_workspace ? static_cast<int64_t*>(workspace) : nullptr;
  m.reach = static_cast<int>(plan.reach);
  m.share_of_a = static_cast<float>(static_cast<double>(m.a_length) / static_cast<double>(std::max<int64_t>(1, m.row_outputs())));
  return m;
}

// A key of the inputs. Fresh: past the L1, in which lines may lie from before the inputs were written, for blocks that read ahead of
// wait_for_predecessor() (own_pieces.cuh).
template <bool kFresh, class U>
__device__ __forceinline__ U read_key(const U* key) {
  if constexpr (kFresh) {
    return __ldcg(key);
  } else {
    return *key;
  }
}

// Keys in global memory, seen as their codes.
template <class U>
struct CodedKeys {
  const U* keys;
  KeyOrder<U> order;

  __device__ U operator[](int64_t index) const { return order.code(keys[index]); }
};

template <class U>
__device__ int64_t global_co_rank(const MergeArguments<U>& m, int64_t row, int64_t rank) {
  return co_rank<int64_t>(rank, CodedKeys<U>{m.a_row(row), m.order}, m.a_length, CodedKeys<U>{m.b_row(row), m.order}, m.b_length,
                          [](U x, U y) { return x < y; });
}

}  // namespace gpusort
