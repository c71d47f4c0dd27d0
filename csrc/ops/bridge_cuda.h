// The CUDA half of the bridge: device guard, current stream, device traits, error checks.
#pragma once

#include <cuda_runtime_api.h>
#include <torch/csrc/stable/accelerator.h>

#include <array>
#include <mutex>

#include "bridge.h"

namespace gpusort::ops {

// Turns a failed CUDA call into an exception. The error is taken off the runtime's list, so that the next caller does not inherit it.
inline void check_cuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  fail(error == cudaErrorMemoryAllocation ? PythonError::kOutOfMemory : PythonError::kRuntime, "CUDA failed to ", what, ": ",
       cudaGetErrorString(error));
}

inline int device_attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, attribute, device), "read a device attribute");
  return value;
}

// Read once per device and process.
inline const DeviceTraits& device_traits(int device) {
  constexpr int kMaxDevices = 64;
  static std::array<DeviceTraits, kMaxDevices> traits;
  static std::array<std::once_flag, kMaxDevices> once;
  check(device >= 0 && device < kMaxDevices, PythonError::kRuntime, "device index ", device, " is above the ", kMaxDevices,
        " devices supported");
  std::call_once(once[device], [device] {
    DeviceTraits read;
    read.sm_count = device_attribute(cudaDevAttrMultiProcessorCount, device);
    read.shared_bytes_per_block = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    read.shared_bytes_per_sm = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    read.l2_bytes = device_attribute(cudaDevAttrL2CacheSize, device);
    read.compute_major = device_attribute(cudaDevAttrComputeCapabilityMajor, device);
    read.compute_minor = device_attribute(cudaDevAttrComputeCapabilityMinor, device);
    traits[device] = read;
  });
  return traits[device];
}

// Makes the tensor's device current for the life of an op and names the stream to work on.
class CudaScope {
 public:
  explicit CudaScope(const Tensor& tensor) : device_(tensor.get_device_index()), guard_(device_) {
    void* stream = nullptr;
    check_shim(aoti_torch_get_current_cuda_stream(device_, &stream), "read the current CUDA stream");
    stream_ = static_cast<cudaStream_t>(stream);
  }

  cudaStream_t stream() const { return stream_; }
  const DeviceTraits& traits() const { return device_traits(device_); }

 private:
  int32_t device_;
  torch::stable::accelerator::DeviceGuard guard_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace gpusort::ops
