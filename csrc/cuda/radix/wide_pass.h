// Radix pass for rows whose positions do not fit 32 bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "../../core/key_order.h"

namespace gpusort {

struct RadixControl;

template <class Key>
struct WidePassArguments {
  KeyOrder<Key> order;
  const Key* keys_in = nullptr;
  Key* keys[2] = {nullptr, nullptr};         // [0] workspace, [1] the outputs or what stands for them
  int64_t* indices[2] = {nullptr, nullptr};  // null: keys only
  bool keys_wanted = true;                   // the last step writes keys
  RadixControl* control = nullptr;
  const unsigned long long* bins = nullptr;  // [rows][passes][256]
  unsigned long long* look_back[2] = {nullptr, nullptr};
  uint64_t look_back_words = 0;
  uint64_t length = 0;
  uint32_t rows = 1;
  uint32_t tiles_per_row = 1;
  uint32_t tiles = 1;
  int slot = 0;
  int passes = 1;
  int begin_bit = 0;
  int window_bits = 0;
};

template <class Key>
cudaError_t launch_wide_pass(const WidePassArguments<Key>& arguments, int grid, cudaStream_t stream);

}  // namespace gpusort
