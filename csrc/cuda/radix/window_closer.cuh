// The last step of a sort of 64-bit keys by a few leading digits: records that agree in these, a group, are put in order by the rest.
//
// Records come from buffer 0, sorted by the leading digits, equal ones in the order of their indices. Groups have some hundred records at
// most (leading_digits.cu), so they are sorted on chip. A block reads a window of records and kBorder records after it, and owns the groups
// that begin in the window: from the first one that begins in the first kBorder records to the first one that begins in those after the
// window, which are the first of the next window. It spreads each group over bins by the bits that follow, of which there is one for each
// record all in all (distribution by a map that rises, then counting: Dobosiewicz, "Sorting by distributive partitioning", 1978), and a
// record finds its place in the bin by comparison with the others in it. They leave in order, through shared memory.
//
// Compared are words of 32 bits: the fraction of the map, and below it the place in the window, so that no two are equal. Keys of the same
// fraction may come out of order; where staged keys do not rise, neighbours are exchanged until they do.
//
// A group that has no beginning among kBorder records is copied as it is, and noted if it is out of order; so is a group of which more than
// kMostInBin records meet in a bin, in any order. The kernels of high_word_ties.cu order those.
//
// A warp works on four rows of 32 records at a time without branches between them: with a branch around each atomic and store, and exact
// comparisons, the step took 260 us (H200, 2^24 random keys), now 199.
//
// Traffic: 12 bytes read and 16 written per element with int64 indices.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "borrowed_indices.cuh"
#include "group_notes.cuh"
#include "pass_arguments.h"

namespace gpusort {

template <int kThreads, int kRows>
struct GroupWindow {
  static constexpr uint32_t kRecords = kThreads * kRows;
  static constexpr uint32_t kMostInBin = 256;
  uint64_t codes[kRecords + 2];  // in order, from the second on
  // By bin, and read beyond the last one; then indices in order. At the end: of records that the block does not own.
  uint32_t words[kRecords + kMostInBin + kThreads];
  uint32_t begins[kRecords + 4];  // of the bins; at first their counts
  uint32_t heads[kRecords / 32];  // a bit for each record that begins a group
  uint32_t sums[kThreads / 32];
  uint32_t first_head, heads_end;  // of the window, where they are asked for
};

__device__ __forceinline__ void prefetch_to_l2(const void* pointer) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(pointer));
}

template <class Index, int kThreads, int kRows>
struct WindowCloser {
  static constexpr bool kIndexed = !std::is_same_v<Index, NoIndex>;
  using Shared = GroupWindow<kThreads, kRows>;
  static constexpr uint32_t kRecords = Shared::kRecords;
  static constexpr uint32_t kBorder = 512;
  static constexpr uint32_t kWindow = kRecords - kBorder;
  static constexpr uint32_t kPlaceMask = kRecords - 1;
  static constexpr uint32_t kMostInBin = Shared::kMostInBin;
  static_assert(kRecords == 4096 && kBorder == 16 * 32, "a lane reads four words of heads; the words of two borders are a warp's");

  static constexpr int kTogether = 4;  // rows that a warp compares at a time
  struct Span {
    uint32_t begin, end;
    bool begin_known, end_known;  // groups begin in both borders
  };

  const PassArguments<uint64_t>& arguments;
  Shared& shared;
  const uint32_t shift;       // of the leading digits
  const uint32_t rest_shift;  // to the left, brings the highest bit of the rest that differs anywhere to the top
  const uint32_t most_notes;
  const uint32_t thread = threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  const uint64_t* records = static_cast<const uint64_t*>(arguments.records[0]);

  __device__ __forceinline__ bool same_group(uint64_t a, uint64_t b) const { return (a ^ b) >> shift == 0; }

  __device__ __forceinline__ void store(uint32_t position, uint64_t code, uint32_t index, uint32_t borrowed_begin) const {
    arguments.keys_out[position] = arguments.codec.bits(code);
    if constexpr (std::is_same_v<Index, int64_t>)
      store_wide_index(static_cast<int64_t*>(arguments.indices_out), position, borrowed_begin, index);
    else if constexpr (kIndexed)
      static_cast<uint32_t*>(arguments.indices_out)[position] = index;
  }

  __device__ __forceinline__ bool is_head(uint32_t position) const {
    return position == 0 || position >= arguments.length || !same_group(records[position], records[position - 1]);
  }

  // Where there is a border in which no group begins: from the first group that begins in the window to the last one. All threads call.
  __device__ __forceinline__ void ask_for_span(uint32_t first, Span& span) const {
#pragma unroll 1
    for (uint32_t place = thread; place < kWindow; place += kThreads) {
      if (!is_head(first + place)) continue;
      atomicMin(&shared.first_head, place);
      atomicMax(&shared.heads_end, place + 1);
    }
    __syncthreads();
    if (!span.end_known) span.end = kWindow;
    if (!span.begin_known) span.begin = min(shared.first_head, span.end);
    if (!span.end_known && shared.heads_end != 0) span.end = shared.heads_end - 1;
  }

  // What the block owns of the window. All threads call.
  __device__ __forceinline__ Span span_of(uint32_t first) const {
    constexpr uint32_t kWords = kBorder / 32;
    const uint32_t word = shared.heads[lane < kWords ? lane : kWindow / 32 + lane - kWords];
    const uint32_t filled = __ballot_sync(~0u, word != 0);
    const uint32_t lower = filled & ((1u << kWords) - 1), upper = filled & ~((1u << kWords) - 1);
    const int begin_word = __ffs(static_cast<int>(lower)) - 1, end_word = __ffs(static_cast<int>(upper)) - 1;
    Span span;
    span.begin = begin_word * 32 + __ffs(static_cast<int>(__shfl_sync(~0u, word, begin_word & 31))) - 1;
    span.end = kWindow - kBorder + end_word * 32 + __ffs(static_cast<int>(__shfl_sync(~0u, word, end_word & 31))) - 1;
    span.begin_known = lower != 0;
    span.end_known = upper != 0;
    if (span.end_known) span.end = min(span.end, arguments.length - first);
    if (!span.begin_known || !span.end_known) ask_for_span(first, span);
    return span;
  }

  // Copies records of a group that is not sorted here. All threads call.
  __device__ __forceinline__ void copy(uint32_t first, uint32_t begin, uint32_t end) const {
    const uint32_t borrowed_begin = borrowed_begin_in_row(arguments, 0);
    bool drop = false;
#pragma unroll 1
    for (uint32_t place = begin + thread; place < end; place += kThreads) {
      const uint32_t position = first + place;
      const uint64_t code = records[position];
      store(position, code, kIndexed ? arguments.record_indices[0][position] : 0, borrowed_begin);
      drop |= position > 0 && same_group(records[position - 1], code) && records[position - 1] > code;
    }
    if (__syncthreads_or(drop) && thread == 0) note_group(arguments, most_notes, first + begin);
  }

  // Exchanges neighbours until keys rise (odd-even transposition): those of the same fraction stand in the order of their places. Not in
  // bins of more than kMostInBin. `first`: where the `count` keys begin. All threads call.
  __device__ __forceinline__ void mend(uint32_t first, uint32_t count) const {
    bool exchanged = true;
#pragma unroll 1
    for (uint32_t round = 0; round <= kMostInBin && __syncthreads_or(exchanged); ++round) {
      exchanged = false;
#pragma unroll 1
      for (uint32_t odd = 0; odd < 2; ++odd) {
#pragma unroll 1
        for (uint32_t i = 2 * thread + odd; i + 1 < count; i += 2 * kThreads) {
          const uint64_t low = shared.codes[first + i + 1], high = shared.codes[first + i + 2];
          if (low <= high) continue;
          exchanged = true;
          shared.codes[first + i + 1] = high;
          shared.codes[first + i + 2] = low;
          if constexpr (kIndexed) {
            const uint32_t index = shared.words[first + i];
            shared.words[first + i] = shared.words[first + i + 1];
            shared.words[first + i + 1] = index;
          }
        }
        __syncthreads();
      }
    }
  }

  // Counts become beginnings. All threads call.
  __device__ __forceinline__ void scan_bins() const {
    constexpr int kVectors = kRows / 4;
    uint4* own = reinterpret_cast<uint4*>(shared.begins) + thread * kVectors;
    uint4 counts[kVectors];
    uint32_t total = 0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      counts[v] = own[v];
      total += counts[v].x + counts[v].y + counts[v].z + counts[v].w;
    }
    uint32_t sum = total;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, sum, distance);
      if (lane >= distance) sum += other;
    }
    if (lane == 31) shared.sums[warp] = sum;
    __syncthreads();
    uint32_t next = __reduce_add_sync(~0u, lane < warp ? shared.sums[lane] : 0) + sum - total;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const uint4 count = counts[v];
      own[v] = make_uint4(next, next + count.x, next + count.x + count.y, next + count.x + count.y + count.z);
      next += count.x + count.y + count.z + count.w;
    }
    if (thread == kThreads - 1) shared.begins[kRecords] = next;
    __syncthreads();
  }

  __device__ __forceinline__ void close_window(uint32_t first) const {
    const uint32_t own_place = warp * (kRows * 32) + lane, own_first = first + own_place;
    uint64_t code[kRows], before = 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const uint32_t position = own_first + r * 32;
      code[r] = position < arguments.length ? records[position] : 0;
    }
    if (lane == 0 && own_first - 1 < arguments.length) before = records[own_first - 1];
    if constexpr (kIndexed) {  // lane r asks for row r
      const uint32_t position = own_first - lane + lane * 32;
      if (lane < kRows && position < arguments.length) prefetch_to_l2(arguments.record_indices[0] + position);
    }
#pragma unroll
    for (int v = 0; v < kRows / 4; ++v) reinterpret_cast<uint4*>(shared.begins)[v * kThreads + thread] = make_uint4(0, 0, 0, 0);
    if (thread == 0) {
      shared.first_head = ~0u;
      shared.heads_end = 0;
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const uint32_t position = own_first + r * 32;
      const uint64_t turned = __shfl_sync(~0u, static_cast<unsigned long long>(code[r]), (lane + 31) & 31);
      const bool head = position == 0 || position >= arguments.length || !same_group(code[r], lane == 0 ? before : turned);
      before = turned;  // lane 0 has the row's last one
      const uint32_t heads = __ballot_sync(~0u, head);
      if (lane == 0) shared.heads[warp * kRows + r] = heads;
    }
    __syncthreads();
    const Span span = span_of(first);
    const uint32_t count = span.end - span.begin;

    // Of groups that begin before each row of the warp, and in the window.
    const uint4 four = reinterpret_cast<const uint4*>(shared.heads)[lane];
    const uint32_t heads_of_four = __popc(four.x) + __popc(four.y) + __popc(four.z) + __popc(four.w);
    uint32_t groups_before = heads_of_four;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, groups_before, distance);
      if (lane >= distance) groups_before += other;
    }
    const uint32_t beyond = kWindow - min(kWindow, arguments.length - first);  // places behind the end
    const uint32_t groups = max(1u, __shfl_sync(~0u, groups_before, kWindow / 128 - 1) - beyond);
    uint32_t group = __shfl_sync(~0u, groups_before - heads_of_four, warp * (kRows / 4)) - 1;
    const uint32_t bins = static_cast<uint32_t>(__fdividef(static_cast<float>(kRecords), static_cast<float>(groups)));  // of a group
    auto mapped = [&](uint64_t own_code) { return static_cast<uint64_t>(static_cast<uint32_t>(own_code << rest_shift >> 32)) * bins; };

    auto owned = [&](int r) { return own_place + r * 32 - span.begin < count; };
    auto word_of = [&](int r) { return (static_cast<uint32_t>(mapped(code[r])) & ~kPlaceMask) | (own_place + r * 32); };

    uint32_t slot[kRows], number[kRows];  // bin, and which of its records this is
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const uint32_t heads = shared.heads[warp * kRows + r];
      const uint32_t own_group = group + __popc(heads & (~0u >> (31 - lane)));
      group += __popc(heads);
      slot[r] = min(own_group * bins + static_cast<uint32_t>(mapped(code[r]) >> 32), kRecords - 1);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) number[r] = atomicAdd(shared.begins + slot[r], owned(r) ? 1u : 0u);
    __syncthreads();
    scan_bins();
    uint32_t crowds = 0;  // bins of too many records of which this thread has the first
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const uint32_t from = shared.begins[slot[r]], size = shared.begins[slot[r] + 1] - from;
      shared.words[owned(r) ? from + number[r] : kRecords + kMostInBin + thread] = word_of(r);
      slot[r] = from | size << 16;
      if (size > kMostInBin) slot[r] = from + number[r];
      if (!owned(r)) slot[r] = 0;
      if (size > kMostInBin && owned(r) && number[r] == 0) crowds |= 1u << r;
    }
    uint32_t index[kRows];
    if constexpr (kIndexed) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const uint32_t position = own_first + r * 32;
        index[r] = position < arguments.length ? arguments.record_indices[0][position] : 0;
      }
    }
    __syncthreads();
    for (; crowds != 0; crowds &= crowds - 1) {
      const int row = __ffs(static_cast<int>(crowds)) - 1;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (r == row) note_group(arguments, most_notes, first + span.begin + slot[r]);
      }
    }
    // Rows of 32 in the outputs begin at multiples of 32, so that whole sectors are written.
    const uint32_t begin = first + span.begin;
    const uint32_t skew = begin % 32 + count <= kRecords ? begin % 32 : 0;
#pragma unroll
    for (int r = 0; r < kRows; r += kTogether) {
      uint32_t from[kTogether], size[kTogether], own[kTogether], most = 0;
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        from[i] = slot[r + i] & 0xffff;
        size[i] = slot[r + i] >> 16;
        own[i] = word_of(r + i);
        slot[r + i] = from[i];
        most = max(most, size[i]);
      }
      most = __reduce_max_sync(~0u, most);
#pragma unroll 1
      for (uint32_t k = 0; k < most; ++k) {
        uint32_t other[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) other[i] = shared.words[from[i] + k];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) slot[r + i] += k < size[i] && other[i] < own[i] ? 1 : 0;
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        slot[r + i] += skew;
        if (owned(r + i)) shared.codes[slot[r + i] + 1] = code[r + i];
      }
    }
    __syncthreads();
    bool drop = false;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (kIndexed && owned(r)) shared.words[slot[r]] = index[r];
      const uint32_t place = r * kThreads + thread;
      code[r] = shared.codes[place + 1];
      drop |= place - skew - 1 < count - 1 && shared.codes[place] > code[r];
    }
    if (__syncthreads_or(drop)) {
      mend(skew, count);
#pragma unroll
      for (int r = 0; r < kRows; ++r) code[r] = shared.codes[r * kThreads + thread + 1];
    }
    const uint32_t borrowed_begin = borrowed_begin_in_row(arguments, 0);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const uint32_t place = r * kThreads + thread;
      if (place - skew < count) store(begin - skew + place, code[r], kIndexed ? shared.words[place] : 0, borrowed_begin);
    }
    if (!span.begin_known) copy(first, 0, span.begin);
    if (!span.end_known) copy(first, span.end, kWindow);
  }
};

}  // namespace gpusort
