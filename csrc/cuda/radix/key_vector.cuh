// Keys of up to 64 bits inside the 16-byte vectors in which kernels load them.
#pragma once

#include <cstdint>

namespace gpusort {

template <class Key>
__device__ __forceinline__ Key key_of_vector(const uint4& vector, int i) {
  if constexpr (sizeof(Key) == 8) {
    return i == 0 ? static_cast<Key>(vector.y) << 32 | vector.x : static_cast<Key>(vector.w) << 32 | vector.z;
  } else {
    constexpr int kPerWord = 4 / sizeof(Key);
    const int word = i / kPerWord;
    const uint32_t bits = word == 0 ? vector.x : word == 1 ? vector.y : word == 2 ? vector.z : vector.w;
    return static_cast<Key>(bits >> (i % kPerWord * 8 * sizeof(Key)));
  }
}

}  // namespace gpusort
