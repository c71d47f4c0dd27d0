// Keys in shared memory by 32-bit address, and copies of 16-byte words into shared memory that run beside the threads that ask for them.
#pragma once

#include <cstdint>

#include "../primitives/shared_memory.cuh"

namespace gpusort {

// A key in shared memory, in a register of at least 32 bits.
template <class U>
__device__ __forceinline__ auto load_shared_key(uint32_t address) {
  if constexpr (sizeof(U) == 8) {
    uint64_t value;
    asm volatile("ld.shared.u64 %0, [%1];" : "=l"(value) : "r"(address) : "memory");
    return value;
  } else {
    uint32_t value;
    if constexpr (sizeof(U) == 1) asm volatile("ld.shared.u8 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    if constexpr (sizeof(U) == 2) asm volatile("ld.shared.u16 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    if constexpr (sizeof(U) == 4) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
  }
}

// The line around it is fetched whole. H200, tiles of 2 x 2^26 float32: 270 us so, 272 with 256 bytes, 274 with neither.
__device__ __forceinline__ void copy_word_async(uint4* destination, const uint4* source) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared_address(destination)), "l"(source) : "memory");
}

// Waits for all words that the calling thread asked for.
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

}  // namespace gpusort
