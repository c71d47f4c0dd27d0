// Orders the runs of equal leading words by the words behind. The indices of a run lie in the order of the input.
//
// First kernel: a block owns the short runs (to 32 elements) that begin in its tile of 2048 places. Each tied place counts how many of its
// run come before it by the next word, equal words in the order they lie, and goes to that place; what is still equal goes on with the
// word after. Runs that are longer go to a list. Where no place is tied, which is nearly all of the tiles of random keys, the cost is the
// read of the words.
// Second kernel: a block per listed run of at most 4096, one stable sort per word, least significant first, by Batcher's merge exchange
// (Knuth, volume 3, algorithm 5.2.2 M) on (word, place).
// When a run is longer than that, or many elements lie in listed runs, the second kernel leaves and the chain does it all
// (plan/lexsort_plan.h).
#include <atomic>

#include "../primitives/kernel_setup.h"
#include "column_codes.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 2048;
constexpr int kItems = 3;                       // places whose next words a thread waits for at once
constexpr int kReach = kShortestListedRun - 1;  // the longest run that is mended here
constexpr int kPlaces = kTile + kReach;         // of all runs that begin in the tile
constexpr int kWindow = kReach + kPlaces + kReach;
constexpr int kListThreads = 512;
constexpr int kListBytes = static_cast<int>(kLongestMendedRun) * (8 + 4 + 2);

// Sorted words around a tile; word(place) for places of the tile, `kReach` before and 2 * kReach behind.
struct WordWindow {
  const LexsortArguments& m;
  const uint64_t* words;  // shared
  int64_t tile_begin;

  __device__ __forceinline__ uint64_t word(int64_t place) const { return words[place - tile_begin + kReach]; }

  // [begin, end) around a tied place, as far as kReach from it.
  __device__ __forceinline__ void find_run(int64_t place, int64_t* begin, int64_t* end) const {
    const int64_t row_begin = m.row_begin(place), row_end = row_begin + m.length;
    const uint64_t own = word(place);
    int64_t low = max(row_begin, place - kReach), high = place;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (word(middle) == own) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    *begin = low;
    low = place + 1;
    high = min(row_end, place + kReach + 1);
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (word(middle) == own) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    *end = low;
  }
};

// Lists a run that begins at `begin` and has more than kReach elements.
__device__ void list_run(const LexsortArguments& m, const uint64_t* sorted_words, int64_t begin, int64_t* long_runs) {
  const int64_t row_end = m.row_begin(begin) + m.length;
  const uint64_t word = sorted_words[begin];
  int64_t low = begin + kShortestListedRun, high = min(row_end, begin + kLongestMendedRun + 1);
  if (high - begin > kLongestMendedRun && sorted_words[high - 1] == word) {
    m.control->too_long = 1;
    return;
  }
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (sorted_words[middle] == word) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  atomicAdd(reinterpret_cast<unsigned long long*>(&m.control->long_run_places), static_cast<unsigned long long>(low - begin));
  long_runs[atomicAdd(&m.control->long_runs, 1u)] = begin;
}

// A tied place: where its run begins in the tile, and how many are equal to it so far.
struct TiedPlace {
  uint16_t place, begin, count;
};

__global__ void __launch_bounds__(kThreads)
    short_runs_kernel(const __grid_constant__ LexsortArguments m, const uint64_t* sorted_words, int64_t* indices, int64_t* long_runs) {
  if (m.control->lead_called_off != 0 || m.control->words <= 1) return;  // not sorted; equal words are equal keys
  __shared__ uint64_t words[kWindow];
  __shared__ uint32_t order[2][kPlaces];
  __shared__ TiedPlace tied[kPlaces];
  const int64_t tile_begin = static_cast<int64_t>(blockIdx.x) * kTile, numel = m.numel();
#pragma unroll
  for (int k = 0; k < (kWindow + kThreads - 1) / kThreads; ++k) {
    const int slot = k * kThreads + threadIdx.x;
    const int64_t place = tile_begin - kReach + slot;
    if (slot < kWindow && place >= 0 && place < numel) words[slot] = sorted_words[place];
  }
  __syncthreads();

  const WordWindow window{m, words, tile_begin};
  bool any = false;
  for (int own = threadIdx.x; own < kPlaces; own += kThreads) {
    const int64_t place = tile_begin + own;
    tied[own].count = 0;
    if (place >= numel) continue;
    const uint64_t word = window.word(place);
    const bool like_last = place > 0 && window.word(place - 1) == word && place != m.row_begin(place);
    const bool like_next = place + 1 < numel && window.word(place + 1) == word && place + 1 != m.row_begin(place + 1);
    if (!like_last && !like_next) continue;
    int64_t begin, end;
    window.find_run(place, &begin, &end);
    if (end - begin > kReach) {
      if (!like_last && own < kTile) list_run(m, sorted_words, place, long_runs);
    } else if (begin >= tile_begin && begin < tile_begin + kTile) {
      tied[own] = {static_cast<uint16_t>(own), static_cast<uint16_t>(begin - tile_begin), static_cast<uint16_t>(end - begin)};
      order[0][own] = static_cast<uint32_t>(indices[place]);
      any = true;
    }
  }
  if (!__syncthreads_or(any)) return;

  // From here on `words` holds the next word of each tied place. tied[own] belongs to one thread throughout and moves with its element.
  int from = 0;
  for (int64_t word = 1; word < m.control->words; ++word, from ^= 1) {
    for (int begin = threadIdx.x; begin < kPlaces; begin += kThreads * kItems) {
      int place[kItems];
      int64_t element[kItems];
      uint64_t value[kItems];
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        const int own = begin + k * kThreads;
        element[k] = -1;
        if (own >= kPlaces || tied[own].count < 2) continue;
        place[k] = tied[own].place;
        element[k] = m.row_begin(tile_begin + place[k]) + order[from][place[k]];
      }
      load_words(m, word, 0, 0, element, value);
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        if (element[k] >= 0) words[place[k]] = value[k];
      }
    }
    __syncthreads();
    any = false;
    for (int own = threadIdx.x; own < kPlaces; own += kThreads) {
      const TiedPlace spot = tied[own];
      if (spot.count == 0) continue;
      const uint32_t index = order[from][spot.place];
      if (spot.count == 1) {
        order[from ^ 1][spot.place] = index;
        continue;
      }
      const uint64_t mine = words[spot.place];
      int below = 0, equal = 0, equal_before = 0;
      for (int other = spot.begin; other < spot.begin + spot.count; ++other) {
        const uint64_t theirs = words[other];
        below += theirs < mine;
        equal += theirs == mine;
        equal_before += theirs == mine && other < spot.place;
      }
      const int begin = spot.begin + below;
      tied[own] = {static_cast<uint16_t>(begin + equal_before), static_cast<uint16_t>(begin), static_cast<uint16_t>(equal)};
      order[from ^ 1][begin + equal_before] = index;
      any |= equal > 1;
    }
    if (!__syncthreads_or(any)) {
      from ^= 1;
      break;
    }
  }
  for (int own = threadIdx.x; own < kPlaces; own += kThreads) {
    const TiedPlace spot = tied[own];
    if (spot.count > 0) indices[tile_begin + spot.place] = order[from][spot.place];
  }
}

// Sorts (word, place) pairs; all differ.
__device__ void merge_exchange(uint64_t* words, uint16_t* places, uint32_t count) {
  const uint32_t top = 1u << (31 - __clz(static_cast<int>(count - 1)));
  for (uint32_t step = top; step > 0; step /= 2) {
    uint32_t rest = 0, distance = step;
    for (uint32_t reach = top;; reach /= 2) {
      for (uint32_t i = threadIdx.x; i + distance < count; i += kListThreads) {
        if ((i & step) != rest) continue;
        const uint32_t j = i + distance;
        const uint64_t a = words[i], b = words[j];
        const uint16_t a_place = places[i], b_place = places[j];
        if (a < b || (a == b && a_place < b_place)) continue;
        words[i] = b;
        words[j] = a;
        places[i] = b_place;
        places[j] = a_place;
      }
      __syncthreads();
      if (reach == step) break;
      distance = reach - step;
      rest = step;
    }
  }
}

__global__ void __launch_bounds__(kListThreads) listed_runs_kernel(const __grid_constant__ LexsortArguments m, const uint64_t* sorted_words,
                                                                   int64_t* indices, const int64_t* long_runs) {
  extern __shared__ uint64_t shared_words[];
  const LexsortControl& control = *m.control;
  if (control.lead_called_off != 0 || control.too_long != 0 || static_cast<int64_t>(control.long_run_places) * kMendedShare > m.numel())
    return;
  if (blockIdx.x == 0 && threadIdx.x == 0) m.control->chain_called_off = 1;
  auto* const order = reinterpret_cast<uint32_t*>(shared_words + kLongestMendedRun);
  auto* const places = reinterpret_cast<uint16_t*>(order + kLongestMendedRun);
  constexpr int kListItems = static_cast<int>(kLongestMendedRun) / kListThreads;
  for (uint32_t run = blockIdx.x; run < control.long_runs; run += gridDim.x) {
    const int64_t begin = long_runs[run], row_begin = m.row_begin(begin), row_end = row_begin + m.length;
    const uint64_t leading = sorted_words[begin];
    int count = 0;
    for (int k = 0; k < kListItems; ++k) {
      const int64_t place = begin + k * kListThreads + threadIdx.x;
      count += __syncthreads_count(place < row_end && sorted_words[place] == leading);
    }
    for (int i = threadIdx.x; i < count; i += kListThreads) order[i] = static_cast<uint32_t>(indices[begin + i]);
    __syncthreads();
    for (int64_t word = control.words - 1; word > 0; --word) {
      for (int i = threadIdx.x; i < count; i += kListThreads) {
        const int64_t element[1] = {row_begin + order[i]};
        uint64_t value[1];
        load_words(m, word, 0, 0, element, value);
        shared_words[i] = value[0];
        places[i] = static_cast<uint16_t>(i);
      }
      __syncthreads();
      merge_exchange(shared_words, places, static_cast<uint32_t>(count));
      uint32_t moved[kListItems];
#pragma unroll
      for (int k = 0; k < kListItems; ++k) {
        const int i = k * kListThreads + threadIdx.x;
        if (i < count) moved[k] = order[places[i]];
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kListItems; ++k) {
        const int i = k * kListThreads + threadIdx.x;
        if (i < count) order[i] = moved[k];
      }
      __syncthreads();
    }
    for (int i = threadIdx.x; i < count; i += kListThreads) indices[begin + i] = order[i];
    __syncthreads();
  }
}

}  // namespace

cudaError_t launch_mend_runs(const LexsortArguments& arguments, const uint64_t* sorted_words, int64_t* indices, int64_t* long_runs,
                             int blocks, cudaStream_t stream) {
  const int64_t tiles = (arguments.numel() + kTile - 1) / kTile;
  if (tiles >= int64_t{1} << 31) return cudaErrorInvalidValue;  // 2^42 elements
  short_runs_kernel<<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(arguments, sorted_words, indices, long_runs);
  cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  static std::atomic<uint64_t> prepared{0};
  status = allow_shared_memory(listed_runs_kernel, kListBytes, prepared);
  if (status != cudaSuccess) return status;
  listed_runs_kernel<<<static_cast<unsigned>(blocks), kListThreads, kListBytes, stream>>>(arguments, sorted_words, indices, long_runs);
  return cudaGetLastError();
}

}  // namespace gpusort
