// Bulk copies between global and shared memory, which one thread asks for and which run beside all threads (PTX ISA, cp.async.bulk, from
// compute capability 9.0 on).
//
// Addresses and sizes are multiples of 16 bytes. Shared memory that threads have written and a bulk store reads needs
// fence_before_bulk_copy() by the threads that wrote, ahead of a block barrier. Kernels that are compiled for older devices can not copy so
// and must not be launched: waits_on_current_device() (dependent_launch.cuh) tells.
#pragma once

#include <cstdint>

#include "shared_memory.cuh"

namespace gpusort {

// Counts the bytes of bulk loads. One thread initialises it, announces the bytes and starts the copies; any thread may wait. A phase ends
// when all that was announced in it has arrived; phases are told apart by their parity, beginning with 0.
struct ArrivalBarrier {
  uint64_t state;

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  // A block barrier must follow.
  __device__ __forceinline__ void initialise() {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(&state)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }

  // What the calling thread has written to shared memory before is seen by those that have waited.
  __device__ __forceinline__ void expect(uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(&state)), "r"(bytes) : "memory");
  }

  __device__ __forceinline__ void wait(uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred arrived;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared.b64 arrived, [%0], %1;\n"
        "@!arrived bra again;\n"
        "}\n" ::"r"(shared_address(&state)),
        "r"(parity)
        : "memory");
  }
#endif
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

__device__ __forceinline__ void bulk_load(void* destination, const void* source, uint32_t bytes, ArrivalBarrier& barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(destination)),
               "l"(source), "r"(bytes), "r"(shared_address(&barrier.state))
               : "memory");
}

__device__ __forceinline__ void bulk_store(void* destination, const void* source, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(destination), "r"(shared_address(source)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until shared memory has been read by all bulk stores of the calling thread.
__device__ __forceinline__ void wait_for_bulk_reads() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Waits until all bulk stores of the calling thread are done.
__device__ __forceinline__ void wait_for_bulk_stores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ __forceinline__ void fence_before_bulk_copy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#endif

}  // namespace gpusort
