// Decoupled look-back: the exclusive sum over all earlier tiles, without a second kernel. After Merrill and Garland, "Single-pass Parallel
// Prefix Scan with Decoupled Look-back" (2016), one chain per bin as in Adinarayanan and Merrill, "Onesweep" (2022).
//
// Each (tile, bin) has one word. It goes from empty to the tile's own count, then to the position after the tile's last item of the bin:
//
//   0                                     nothing is known yet
//   1 + count                             the tile's own count, at most kMaxLookBackCount
//   kLookBackInclusive + position         everything up to and with this tile; the walk ends here
//
// One word holds state and value together, so relaxed loads and stores suffice. Positions reach 2^32 - kLookBackInclusive.
// Tiles take tickets in start order and wait for smaller tickets only: the smallest unfinished tile never waits, so the walk ends.
#pragma once

#include <cstdint>

namespace gpusort {

constexpr uint32_t kLookBackInclusive = 1u << 16;
constexpr uint32_t kMaxLookBackCount = kLookBackInclusive - 2;

__device__ __forceinline__ uint32_t load_relaxed(const uint32_t* pointer) {
  uint32_t value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(pointer) : "memory");
  return value;
}

__device__ __forceinline__ void store_relaxed(uint32_t* pointer, uint32_t value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(pointer), "r"(value) : "memory");
}

__device__ __forceinline__ unsigned long long load_relaxed(const unsigned long long* pointer) {
  unsigned long long value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(pointer) : "memory");
  return value;
}

__device__ __forceinline__ void store_relaxed(unsigned long long* pointer, unsigned long long value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(pointer), "l"(value) : "memory");
}

template <class Word>
__device__ __forceinline__ void publish_count(Word* word, uint32_t count) {
  store_relaxed(word, static_cast<Word>(count) + 1);
}

template <class Word>
__device__ __forceinline__ void publish_inclusive(Word* word, Word position) {
  store_relaxed(word, position + kLookBackInclusive);
}

// Position before the tile that owns `word`: adds counts of the tiles before it until an inclusive position is met. The word of the tile
// before lies `stride` words earlier. `tile` is the number of tiles before it in the table. Looks at kWidth words at a time.
template <int kWidth, class Word>
__device__ __forceinline__ Word look_back(const Word* word, uint32_t tile, int stride) {
  Word before = 0;
  const Word* next = word - stride;
  uint32_t left = tile;
  for (;;) {
    Word window[kWidth];
#pragma unroll
    for (int k = 0; k < kWidth; ++k) window[k] = k < left ? load_relaxed(next - k * stride) : 0;
    // All words are waited for here. A load whose result is never read is waited for when its register is used again, and with it all loads
    // that share its scoreboard by then: in a radix pass those of the next tile, before the write-out could begin.
    Word known = 0;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) known |= window[k];
    if (known == 0) continue;
    bool stop = false, done = false;
    int passed = 0;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      if (stop) continue;
      if (window[k] >= kLookBackInclusive) {
        before += window[k] - kLookBackInclusive;
        stop = done = true;
      } else if (window[k] != 0) {
        before += window[k] - 1;
        ++passed;
      } else {
        stop = true;
      }
    }
    if (done) return before;
    next -= passed * stride;
    left -= passed;
  }
}

}  // namespace gpusort
