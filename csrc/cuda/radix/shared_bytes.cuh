// Bytes and half words of shared memory by 32-bit address (primitives/shared_memory.cuh has the words), and requests to the L2 cache.
#pragma once

#include <cstdint>

namespace gpusort {

__device__ __forceinline__ uint32_t load_shared_8(uint32_t address) {
  uint32_t value;
  asm volatile("ld.shared.u8 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

__device__ __forceinline__ uint32_t load_shared_16(uint32_t address) {
  uint32_t value;
  asm volatile("{.reg .u16 t; ld.shared.u16 t, [%1]; cvt.u32.u16 %0, t;}" : "=r"(value) : "r"(address) : "memory");
  return value;
}

__device__ __forceinline__ void store_shared_8(uint32_t address, uint32_t value) {
  asm volatile("st.shared.u8 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ __forceinline__ void store_shared_16(uint32_t address, uint32_t value) {
  asm volatile("{.reg .u16 t; cvt.u16.u32 t, %1; st.shared.u16 [%0], t;}" ::"r"(address), "r"(value) : "memory");
}

// Asks for whole multiples of 16 bytes, from such a multiple on, to be brought into L2.
__device__ __forceinline__ void prefetch_to_l2(const void* from, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
#endif
}

}  // namespace gpusort
