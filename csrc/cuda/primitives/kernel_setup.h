// Lets a kernel use more than 48 KB of dynamic shared memory, once per device.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

namespace gpusort {

// `prepared` has one bit per device that has been set up; devices from 64 on are set up at each call. Safe from several threads: setting
// the attribute twice does no harm.
template <class Kernel>
cudaError_t allow_shared_memory(Kernel kernel, int bytes, std::atomic<uint64_t>& prepared) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  const uint64_t bit = device < 64 ? uint64_t{1} << device : 0;
  if ((prepared.load(std::memory_order_acquire) & bit) != 0) return cudaSuccess;
  error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  prepared.fetch_or(bit, std::memory_order_release);
  return cudaSuccess;
}

}  // namespace gpusort
