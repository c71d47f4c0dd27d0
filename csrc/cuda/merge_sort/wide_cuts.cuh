// Where the tiles of a wide merge cut its runs: the samples, and after they were sorted a bisection in every run for every bound.
//
// A warp looks for 32 neighbouring bounds in one run, so that its lanes read the same few lines of memory for most of their steps.
#pragma once

#include "wide_arguments.cuh"

namespace gpusort {

constexpr int kSampleThreads = 256;
constexpr int kWideCutsWarps = 8;  // of a block: runs in which it looks for its 32 bounds
constexpr int kWideCutsThreads = kWideCutsWarps * 32;

// A sample of the first stage names the place of a record and not its index: within a run and between runs places order equal keys as
// indices do. Its bound gets the index when it is known which samples are bounds.
template <class U, bool kFirst>
__global__ void __launch_bounds__(kSampleThreads) wide_samples_kernel(const __grid_constant__ WideMergeArguments<U> m) {
  const uint32_t rows = static_cast<uint32_t>(m.rows), samples = rows * m.sample_row_length;
  const uint32_t bounds = rows * m.groups * (m.tiles_per_group + 1);
  const uint32_t first = blockIdx.x * kSampleThreads + threadIdx.x, stride = gridDim.x * kSampleThreads;
  if (blockIdx.x == 0 && threadIdx.x < 2) m.lists[threadIdx.x] = 0;
  for (uint32_t bound = first; bound < bounds; bound += stride) {
    m.bounds[bound] = bound % (m.tiles_per_group + 1) == 0 ? ~uint64_t{0} : 0;
    m.begins[bound] = 0;
  }
  for (uint32_t sample = first; sample < samples; sample += stride) {
    const uint32_t row = sample / m.sample_row_length, in_row = sample - row * m.sample_row_length;
    const uint32_t run = in_row / m.sample_run_length, number = in_row - run * m.sample_run_length;
    const int64_t place = run * m.run_length + number * kWideSampleStep + wide_sample_phase(run);
    if constexpr (kFirst) {
      m.samples[sample] = static_cast<uint64_t>(m.order.code(m.keys[row * m.row_length + place])) << 32 | static_cast<uint32_t>(place);
    } else {
      m.samples[sample] = m.words_in[row * m.row_length + place];
    }
  }
}

// The first place in [begin, end) that is not before the bound, or end. Each step reads three places at once and leaves a quarter: the time
// goes by how many reads wait for each other.
template <class Before>
__device__ __forceinline__ uint32_t count_before_bound(uint32_t begin, uint32_t end, Before before) {
  while (begin < end) {
    const uint32_t length = end - begin;
    const uint32_t first = begin + length / 4, second = begin + length / 2, third = begin + static_cast<uint32_t>(uint64_t{length} * 3 / 4);
    const bool first_before = before(first), second_before = before(second), third_before = before(third);
    begin = third_before ? third + 1 : second_before ? second + 1 : first_before ? first + 1 : begin;
    end = third_before ? end : second_before ? third : first_before ? second : first;
  }
  return begin;
}

template <class U, bool kFirst>
__global__ void __launch_bounds__(kWideCutsThreads) wide_cuts_kernel(const __grid_constant__ WideMergeArguments<U> m) {
  __shared__ uint32_t sums[kWideCutsWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t bounds_per_group = m.tiles_per_group + 1, chunks = (bounds_per_group + 31) / 32;
  const uint32_t group_number = blockIdx.x / chunks, tile = (blockIdx.x - group_number * chunks) * 32 + lane;
  const uint32_t bound = group_number * bounds_per_group + tile;
  const WideGroup group(m, group_number);
  const int way = static_cast<int>(blockIdx.y) * kWideCutsWarps + warp;
  const int64_t run = group.first_run + way;
  const int64_t run_begin = run * m.run_length;
  const int64_t first_place = group.row_begin + run_begin;
  const uint32_t length = way < m.ways ? static_cast<uint32_t>(max(min(m.row_length - run_begin, m.run_length), int64_t{0})) : 0;
  const int64_t first_sample = group.first_run * m.sample_run_length;
  const int64_t samples = min(m.sample_row_length - first_sample, int64_t{m.ways} * m.sample_run_length);
  const bool exists = tile<bounds_per_group, at_end = tile> 0 && int64_t{tile} * m.step >= samples;

  uint32_t cut = at_end ? length : 0;
  if (exists && (tile == 0 || at_end)) {  // the bound is the least or the greatest word of the group
    if (length > 0) {
      const uint64_t word = wide_word<U, kFirst>(m, first_place + (at_end ? length - 1 : 0), static_cast<uint32_t>(run_begin));
      unsigned long long* const extreme = reinterpret_cast<unsigned long long*>(m.bounds + bound);
      at_end ? atomicMax(extreme, static_cast<unsigned long long>(word)) : atomicMin(extreme, static_cast<unsigned long long>(word));
    }
  } else if (exists) {
    uint64_t splitter = m.samples[int64_t{group.row} * m.sample_row_length + first_sample + int64_t{tile} * m.step];
    uint32_t end = length;
    if constexpr (kFirst) {
      const uint32_t splitter_code = static_cast<uint32_t>(splitter >> 32), splitter_place = static_cast<uint32_t>(splitter);
      const uint32_t splitter_run = splitter_place / static_cast<uint32_t>(m.run_length);
      if (run == splitter_run) {
        cut = end = splitter_place - static_cast<uint32_t>(run_begin);
        m.bounds[bound] = wide_word<U, kFirst>(m, first_place + cut, static_cast<uint32_t>(run_begin));
      }
      const uint32_t below = splitter_code + (run < splitter_run ? 1 : 0);  // codes that are less than this are before the bound
      if (below < splitter_code) cut = length;                              // all codes are
      cut = count_before_bound(cut, end, [&](uint32_t place) { return m.order.code(m.keys[first_place + place]) < below; });
    } else {
      if (way == 0) m.bounds[bound] = splitter;
      cut = count_before_bound(cut, end, [&](uint32_t place) { return m.words_in[first_place + place] < splitter; });
    }
  }
  if (exists && way < m.ways) m.cuts[int64_t{bound} * m.ways + way] = cut;

  sums[warp][lane] = exists ? cut : 0;
  __syncthreads();
  if (warp != 0 || !exists) return;
  for (int other = 1; other < kWideCutsWarps; ++other) cut += sums[other][lane];
  atomicAdd(m.begins + bound, cut);
}

}  // namespace gpusort
