// A seed for the places of samples. Only the time of a sort depends on it, never the result.
#pragma once

#include <chrono>
#include <cstdint>

namespace gpusort {

// Differs from call to call and from process to process.
inline uint32_t fresh_sample_seed() {
  uint64_t x = static_cast<uint64_t>(std::chrono::high_resolution_clock::now().time_since_epoch().count());
  x += reinterpret_cast<uintptr_t>(&x);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return static_cast<uint32_t>(x ^ x >> 31);
}

}  // namespace gpusort
