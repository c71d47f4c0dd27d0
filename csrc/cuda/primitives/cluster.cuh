// Thread block clusters (PTX ISA, from compute capability 9.0 on): blocks that run at the same time on neighbouring SMs, meet at a barrier
// of their own and write into each other's shared memory.
#pragma once

#include <cstdint>

namespace gpusort {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

__device__ __forceinline__ int block_in_cluster() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}

// Every thread arrives and waits, in turn. What was written before an arrival is seen after the wait.
__device__ __forceinline__ void arrive_at_cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void wait_at_cluster_barrier() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Where `mine`, an address in shared memory, lies in another block of the cluster.
__device__ __forceinline__ uint32_t address_in_block(const void* mine, int block) {
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(mine))), "r"(block));
  return address;
}

__device__ __forceinline__ void store_in_block(uint32_t address, uint32_t word) {
  asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}
__device__ __forceinline__ void store_in_block(uint32_t address, uint64_t word) {
  asm volatile("st.shared::cluster.b64 [%0], %1;" ::"r"(address), "l"(word) : "memory");
}

#endif

}  // namespace gpusort
