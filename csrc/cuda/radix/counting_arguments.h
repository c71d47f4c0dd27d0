// What the kernels of counting_sort_16.cu share: how a row is shared out to the blocks that count, and what these leave to the others.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "../../core/host_device.h"
#include "../../core/key_order.h"

namespace gpusort {

constexpr uint32_t kPatterns = 1 << 16;
constexpr int kNumberThreads = 1024;  // of a block of the numbering, one place in the order of the keys each
constexpr int kKeysPerVector = 8;
constexpr int kCountThreads = 1024;
constexpr int kCountBatch = 4;  // 16-byte loads in flight per thread; a tile is one batch of every thread
constexpr uint32_t kCountTileVectors = kCountThreads * kCountBatch;

// A row as 16-byte vectors, and fewer than 8 keys before and after them. Neighbouring vectors belong to one block; the first block also has
// what comes before, the last one what comes after.
struct KeyShares {
  const uint16_t* row = nullptr;
  uint32_t vectors = 0;
  uint32_t vectors_per_block = 0;  // a multiple of 32
  uint32_t blocks = 1;
  uint32_t head = 0;  // keys before the vectors
  uint32_t tail = 0;  // and after

  GPUSORT_HD const uint16_t* vector_keys() const { return row + head; }
  GPUSORT_HD uint32_t first_vector(uint32_t block) const {
    const uint32_t first = vectors_per_block * block;
    return first < vectors ? first : vectors;
  }
};

// Zeroed before the first kernel.
struct CountingControl {
  uint32_t runs;                                              // patterns that were counted
  uint32_t nan_patterns;                                      // those of NaNs among them
  uint32_t codes_meet;                                        // patterns of one code were counted: both zeros, or several NaNs
  uint32_t class_begin[2];                                    // where zeros and NaNs begin in the sorted row
  uint32_t ticket;                                            // the next block of the numbering
  unsigned long long block_sums[kPatterns / kNumberThreads];  // of the numbering: keys, runs << 32, kSumKnown
};

// Floats: what the counting blocks know of the zeros and NaNs of their shares.
struct ClassFindings {
  uint2* counts = nullptr;     // of each block: zeros, NaNs
  uint32_t* listed = nullptr;  // of each block: how many of its vectors hold some, as far as they were looked for
  uint32_t* lists = nullptr;   // of each block: the numbers of these vectors, in no order. Head and tail are not listed
  uint32_t capacity = 0;       // of a list. Where more are listed, the list says nothing
  uint32_t infinity = 0;       // patterns beyond it are NaNs, but for the sign
};

}  // namespace gpusort
