// Sorts a block's words of 64 bits as they are: for tiles so short that preparing stand-ins (packed_words.cuh) takes longer than it saves.
#pragma once

#include <cstdint>

#include "block_word_sort.cuh"
#include "grid_words.cuh"

namespace gpusort {

struct ExactWords {
  using Notes = BlockSortNotes<uint32_t>;

  SharedWords<uint64_t> words;

  // `storage` has grid_shared_word_bytes(false, places).
  __device__ __forceinline__ ExactWords(char* storage, int places) : words(storage, places) {}

  // Sorts `count` words: own[e] is that of place e * kThreads + thread. Called by all threads.
  template <int kThreads, int kItems>
  __device__ __forceinline__ void sort(Notes& notes, uint64_t (&own)[kItems], int count) const {
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      if (e * kThreads + static_cast<int>(threadIdx.x) >= count) own[e] = last_word<uint64_t>();
    }
    block_sort_words<kThreads>(own, words, notes.splits);
  }

  // The word of a rank after a sort of kPlaces places.
  template <int kPlaces>
  __device__ __forceinline__ uint64_t word_of_rank(int rank) const {
    return words.get(rank);
  }
};

}  // namespace gpusort
