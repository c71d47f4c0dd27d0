// Shared memory by 32-bit address: loads, stores and atomics as single instructions, in program order.
//
// Kernels that compute many shared addresses keep them as 32-bit integers, which halves the registers of generic pointers and lets an
// offset be folded into the instruction. The accesses are volatile: they stay in the order in which they are written, so a kernel can batch
// loads before stores by hand.
#pragma once

#include <cstdint>

namespace gpusort {

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void load_shared(uint32_t address, uint32_t& value) {
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
}

__device__ __forceinline__ void load_shared(uint32_t address, uint2& value) {
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(value.x), "=r"(value.y) : "r"(address) : "memory");
}

__device__ __forceinline__ void load_shared(uint32_t address, uint4& value) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ uint32_t load_shared(uint32_t address) {
  uint32_t value;
  load_shared(address, value);
  return value;
}

__device__ __forceinline__ void store_shared(uint32_t address, uint32_t value) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ __forceinline__ void store_shared(uint32_t address, uint2 value) {
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(value.x), "r"(value.y) : "memory");
}

__device__ __forceinline__ void store_shared(uint32_t address, uint4 value) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
               : "memory");
}

__device__ __forceinline__ void clear_shared_16_bytes(uint32_t address) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(address), "r"(0) : "memory");
}

// Returns the value before the addition.
__device__ __forceinline__ uint32_t fetch_add_shared(uint32_t address, uint32_t value) {
  uint32_t before;
  asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(before) : "r"(address), "r"(value) : "memory");
  return before;
}

__device__ __forceinline__ void add_shared(uint32_t address, uint32_t value) {
  asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ __forceinline__ void raise_shared(uint32_t address, uint32_t value) {
  asm volatile("red.shared.max.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

// A value the compiler can not see through: keeps it from computing many sums of `value` ahead of time and holding them in registers.
__device__ __forceinline__ uint32_t opaque(uint32_t value) {
  uint32_t copy;
  asm volatile("mov.u32 %0, %1;" : "=r"(copy) : "r"(value));
  return copy;
}

__device__ __forceinline__ uint32_t lanes_below() {
  uint32_t mask;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  return mask;
}

// A value that is the same in all 32 lanes, in a form that the compiler knows to be the same (a uniform register). All lanes must call.
__device__ __forceinline__ uint32_t warp_uniform(uint32_t value) {
  return __reduce_or_sync(~0u, value);
}

}  // namespace gpusort
