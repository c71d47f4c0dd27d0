// Counts the digits of a range of keys by one block, and compares the keys: see digit_histogram.cu.
//
// Every lane counts in its own bank of shared memory: counter (bin, lane) lies at word bin * 32 + lane, so the 32 atomics of an instruction
// never meet, whatever the data (H200, 2^26 32-bit keys: 71 us, against 130 us with one counter per bin). Four digits need 128 KB. The
// eight digits of 64-bit keys would need 256: there lanes l and l + 16 share a word, 16 bits each, and the counters are flushed before they
// can overflow. 8-bit keys are counted by their raw byte and translated when flushed, since a byte has only 256 patterns.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../../plan/radix_plan.h"
#include "../primitives/shared_memory.cuh"
#include "digit_histogram.h"
#include "key_vector.cuh"
#include "radix_control.cuh"

namespace gpusort {

constexpr int kHistogramThreads = 1024;

template <class Key, int kDigits_ = static_cast<int>(sizeof(Key))>
struct CounterLayout {
  static constexpr int kDigits = kDigits_;
  static constexpr bool kHalves = kDigits > 4;  // two 16-bit counters to a word
  static constexpr int kBanks = kHalves ? 16 : 32;
  static constexpr int kWords = kDigits * kRadixBins * kBanks;
  // Between flushes. A lane's counters see a 32nd of the block's keys, and a few more at the ends of ranges.
  static constexpr uint64_t kMaxKeys = kHalves ? uint64_t{1} << 20 : uint64_t{1} << 31;
};

__device__ __forceinline__ uint32_t warp_or(uint32_t value) {
  return __reduce_or_sync(~0u, value);
}

// kWhole: all bits are sorted by, so windows cost nothing. kFloat: floats and bool, or windows of any keys. kDigits digits are counted,
// from number kFirstDigit on.
template <class Key, class Count, bool kWhole, bool kFloat, int kDigits = static_cast<int>(sizeof(Key)), int kFirstDigit = 0>
struct HistogramBlock {
  using Layout = CounterLayout<Key, kDigits>;
  static constexpr int kThreads = kHistogramThreads;
  static constexpr int kBatch = kDigits == 0 ? 3 : 4;  // 16-byte loads in flight per thread
  static constexpr int kPerVector = 16 / sizeof(Key);
  static constexpr bool kRaw = sizeof(Key) == 1;

  const HistogramArguments<Key>& arguments;
  uint32_t* counters;
  uint32_t thread = threadIdx.x;
  uint32_t lane = threadIdx.x & 31;
  const uint32_t own_counters;  // shared address of this lane's counter of bin 0
  const uint32_t one;           // what counts one key: the upper lanes of a shared word count in its upper half
  Key window_mask;
  Key reference = 0;   // windowed code of the row's first key
  Key difference = 0;  // bits that differ from it
  bool unsorted = false;
  bool other_patterns = false;
  bool look_for_order = true;  // the same in all lanes of a warp

  __device__ HistogramBlock(const HistogramArguments<Key>& a, uint32_t* c)
      : arguments(a),
        counters(c),
        own_counters(shared_address(c) + (threadIdx.x & (Layout::kBanks - 1)) * 4),
        one(Layout::kHalves && (threadIdx.x & 16) != 0 ? 1u << 16 : 1u) {
    window_mask = static_cast<Key>(static_cast<Key>(~Key{0}) >> (sizeof(Key) * 8 - a.window_bits));
  }

  // The bits that are sorted by, moved down to bit 0.
  __device__ __forceinline__ Key window_of(Key code) const {
    return kWhole ? code : static_cast<Key>(static_cast<Key>(code >> arguments.begin_bit) & window_mask);
  }
  __device__ __forceinline__ Key windowed(Key bits) const { return window_of(code_of(bits)); }

  __device__ __forceinline__ Key code_of(Key bits) const { return static_cast<Key>(arguments.codec.code(bits)); }

  // The same, and notes whether another pattern would come back for the code.
  __device__ __forceinline__ Key noted_code_of(Key bits) {
    const auto mirrored = arguments.codec.mirrored(bits);
    other_patterns |= arguments.codec.loses_bits(bits, mirrored);
    return static_cast<Key>(arguments.codec.clamped(mirrored));
  }

  // Counts digit number `digit` of a windowed code.
  __device__ __forceinline__ void count(Key code, int digit) {
    constexpr int kBinShift = Layout::kHalves ? 6 : 7;  // log2 of the bytes of a bin's counters
    // A permutation and a multiply-add instead of a shift, a mask and an addition: 77 us, and 86 (H200, 2^26 float32).
    const int counted = kFirstDigit + digit;
    const uint32_t bin = __byte_perm(static_cast<uint32_t>(code >> (counted / 4 * 32)), 0, 0x4440 + counted % 4);
    add_shared((own_counters + (digit * kRadixBins << kBinShift)) + (bin << kBinShift), one);
  }

  __device__ __forceinline__ void add(Key bits, Key code) {
    if constexpr (kRaw) {
      count(bits, 0);
    } else {
      difference |= code ^ reference;
#pragma unroll
      for (int digit = 0; digit < kDigits; ++digit) {
        if (kWhole || digit < arguments.passes) count(code, digit);
      }
    }
  }

  // One key with its successor in the row looked up: the ends of chunks.
  __device__ __forceinline__ void add_single(const Key* row, uint64_t position) {
    const Key bits = row[position];
    const Key code = kFloat ? window_of(noted_code_of(bits)) : windowed(bits);
    add(bits, code);
    if (!unsorted && position + 1 < arguments.length) unsorted = code > windowed(row[position + 1]);
  }

  __device__ __forceinline__ static uint64_t position_of(uint64_t first, uint32_t vector) {
    return first + static_cast<uint64_t>(vector) * kPerVector;
  }

  // The key after the vector at this position, where another warp has it: the last lane's.
  __device__ __forceinline__ Key key_after(const Key* row, uint64_t position) const {
    const uint64_t after = position + kPerVector;
    return lane == 31 && look_for_order && after < arguments.length ? row[after] : Key{0};
  }

  // The keys of one 16-byte vector. All lanes of the warp call, for neighbouring vectors. `after`: key_after, where nothing is counted.
  __device__ __forceinline__ void add_vector(const uint4& vector, const Key* row, uint64_t position, Key after = 0) {
    Key code[kPerVector];
#pragma unroll
    for (int i = 0; i < kPerVector; ++i) {
      const Key bits = key_of_vector<Key>(vector, i);
      code[i] = 0;
      if constexpr (!kRaw && kFloat) {
        code[i] = window_of(noted_code_of(bits));
      } else if constexpr (!kRaw) {
        code[i] = windowed(bits);
      }
      add(bits, code[i]);
    }
    if (look_for_order) {
      if constexpr (kRaw) {
#pragma unroll
        for (int i = 0; i < kPerVector; ++i) code[i] = windowed(key_of_vector<Key>(vector, i));
      }
#pragma unroll
      for (int i = 0; i + 1 < kPerVector; ++i) unsorted |= code[i] > code[i + 1];
      Key next;
      if constexpr (sizeof(Key) == 8) {
        next = __shfl_down_sync(~0u, static_cast<unsigned long long>(code[0]), 1);
      } else {
        next = static_cast<Key>(__shfl_down_sync(~0u, static_cast<uint32_t>(code[0]), 1));
      }
      const uint64_t next_position = position + kPerVector;
      if (lane == 31) {
        next = next_position < arguments.length ? windowed(kDigits == 0 ? after : row[next_position]) : static_cast<Key>(~Key{0});
      }
      unsorted |= code[kPerVector - 1] > next;
      look_for_order = !__any_sync(~0u, unsorted);
    }
  }

  // Keys [first, first + items) of a row.
  __device__ __forceinline__ void add_range(const Key* row, uint64_t first, uint32_t items) {
    const Key* keys = row + first;
    const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(keys) & 15) / sizeof(Key);
    const uint32_t head = min(misaligned == 0 ? 0 : kPerVector - misaligned, items);
    const uint32_t vectors = (items - head) / kPerVector;
    const uint32_t tail = head + vectors * kPerVector;
    const uint4* aligned = reinterpret_cast<const uint4*>(keys + head);
    uint32_t v = thread;
    for (; v - lane + 31 + (kBatch - 1) * kThreads < vectors; v += kBatch * kThreads) {
      uint4 batch[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) batch[b] = __ldcs(aligned + v + b * kThreads);
      if constexpr (kDigits == 0) {  // the loads are all that takes time, so none waits for another
        Key after[kBatch];
#pragma unroll
        for (int b = 0; b < kBatch; ++b) after[b] = key_after(row, position_of(first + head, v + b * kThreads));
#pragma unroll
        for (int b = 0; b < kBatch; ++b) add_vector(batch[b], row, position_of(first + head, v + b * kThreads), after[b]);
      } else {
#pragma unroll
        for (int b = 0; b < kBatch; ++b) add_vector(batch[b], row, position_of(first + head, v + b * kThreads));
      }
    }
    for (; v - lane + 31 < vectors; v += kThreads) {
      const uint64_t position = position_of(first + head, v);
      add_vector(__ldcs(aligned + v), row, position, kDigits == 0 ? key_after(row, position) : Key{0});
    }
    if (v < vectors) {
#pragma unroll 1
      for (int i = 0; i < kPerVector; ++i) add_single(row, first + head + v * kPerVector + i);
    }
    if (thread < head) add_single(row, first + thread);
    if (thread < items - tail) add_single(row, first + tail + thread);
    __syncwarp();
  }

  // Adds the counters to the bins of `row` and clears them; not those before bin `first_bin`. All threads call.
  __device__ __forceinline__ void flush(uint32_t row, int first_bin) {
    if constexpr (kDigits == 0) return;
    __syncthreads();
    const int bins = kRaw ? kRadixBins : (kWhole ? kDigits : arguments.passes) * kRadixBins;
    Count* target = static_cast<Count*>(arguments.bins) + static_cast<uint64_t>(row) * arguments.passes * kRadixBins;
    for (int bin = thread; bin < bins; bin += kThreads) {
      uint32_t sum = 0;
#pragma unroll 8
      for (int bank = 0; bank < Layout::kBanks; ++bank) {  // rotated, so that the 32 threads of a warp read 32 banks
        uint32_t& counter = counters[bin * Layout::kBanks + ((bank + bin) & (Layout::kBanks - 1))];
        sum += Layout::kHalves ? (counter & 0xffff) + (counter >> 16) : counter;
        counter = 0;
      }
      if (sum == 0 || bin < first_bin) continue;
      int place = bin + kFirstDigit * kRadixBins;
      if constexpr (kRaw) {
        const Key code = window_of(kFloat ? noted_code_of(static_cast<Key>(bin)) : code_of(static_cast<Key>(bin)));
        place = code;
        difference |= code ^ reference;
      }
      atomicAdd(target + place, static_cast<Count>(sum));
    }
    __syncthreads();
  }

  // Hands what the block found to the control words; `words` is cleared shared memory.
  __device__ __forceinline__ void report(uint32_t* words) {
    constexpr int kWords = 4;
    const uint32_t low = static_cast<uint32_t>(difference);
    const uint32_t high = sizeof(Key) == 8 ? static_cast<uint32_t>(static_cast<uint64_t>(difference) >> 32) : 0u;
    const uint32_t found[kWords] = {low, high, unsorted ? 1u : 0u, other_patterns ? 1u : 0u};
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const uint32_t all = warp_or(found[i]);
      if (lane == 0 && all != 0) atomicOr(words + i, all);
    }
    __syncthreads();
    RadixControl* control = arguments.control;
    uint32_t* const targets[kWords] = {control->live_bits, control->live_bits + 1, &control->unsorted, &control->other_patterns};
    if (thread == 0) {
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        if (words[i] != 0) atomicOr(targets[i], words[i]);
      }
    }
  }
};

// `first_bin`: those before are not wanted.
template <class Key, class Count, bool kWhole, bool kFloat, int kDigits = static_cast<int>(sizeof(Key)), int kFirstDigit = 0>
__device__ __forceinline__ void count_digits(const HistogramArguments<Key>& arguments, uint32_t* counters, uint32_t* report_words,
                                             int first_bin = 0) {
  using Layout = CounterLayout<Key, kDigits>;
  HistogramBlock<Key, Count, kWhole, kFloat, kDigits, kFirstDigit> block(arguments, counters);
  const uint64_t chunks = arguments.rows * arguments.chunks_per_row;
  const uint64_t begin = chunks * blockIdx.x / gridDim.x, end = chunks * (blockIdx.x + 1) / gridDim.x;
  uint32_t current = ~0u;
  uint64_t pending = 0;
  for (uint64_t chunk = begin; chunk < end;) {
    // All chunks of one row that the block has at one go, so that loads follow each other without a break.
    const uint32_t row = static_cast<uint32_t>(chunk / arguments.chunks_per_row);
    const uint64_t in_row = chunk - row * arguments.chunks_per_row;
    const uint64_t chunk_count = min(min(end - chunk, arguments.chunks_per_row - in_row), Layout::kMaxKeys / arguments.chunk);
    const uint64_t first = in_row * arguments.chunk;
    const uint64_t items = min(chunk_count * arguments.chunk, arguments.length - first);
    const Key* keys = arguments.keys + row * arguments.length;
    if (row != current || pending + items > Layout::kMaxKeys) {
      if (pending != 0) block.flush(current, first_bin);
      pending = 0;
      current = row;
      block.reference = block.windowed(keys[0]);
    }
    block.add_range(keys, first, static_cast<uint32_t>(items));
    pending += items;
    chunk += chunk_count;
  }
  if (pending != 0) block.flush(current, first_bin);
  block.report(report_words);
}

}  // namespace gpusort
