// How a block sorts a bucket: threads and keys to a thread, and what it needs of an SM. Pure functions, for the plan and for the kernels.
#pragma once

#include <cstdint>

#include "../core/host_device.h"

namespace gpusort {

struct BucketShape {
  int threads;
  int items;
};

// Buckets left to other kernels are noted in two lists: two counts, then room for all buckets in each.
GPUSORT_HD constexpr int64_t bucket_overflow_words(int64_t rows, int64_t buckets_per_row) {
  return 2 + 2 * rows * buckets_per_row;
}

// As many bins as keys, a word before and one behind.
GPUSORT_HD constexpr int bucket_counter_bytes(int threads, int items) {
  return threads * items * 4 + 32;
}

GPUSORT_HD constexpr int bucket_shared_bytes(int key_bytes, int threads, int items) {
  return bucket_counter_bytes(threads, items) + (threads * items + 4) * (key_bytes <= 4 ? 8 : 12);
}

// Blocks to an SM that the registers of the kernel must allow. `variables`: bytes of shared memory that the kernel takes besides.
GPUSORT_HD constexpr int bucket_blocks_per_sm(int key_bytes, int threads, int items, int variables = 0) {
  const int words = items * (key_bytes <= 4 ? 1 : 2);  // registers that hold keys
  const int registers = words <= 8 ? 40 : words <= 16 ? 56 : words <= 32 ? 72 : 112;
  const int blocks = 65536 / (threads * registers), fitting = 230000 / (bucket_shared_bytes(key_bytes, threads, items) + variables + 2048);
  return blocks < fitting ? blocks : fitting;
}

}  // namespace gpusort
