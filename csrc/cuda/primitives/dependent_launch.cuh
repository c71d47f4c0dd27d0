// Lets a kernel's blocks be set up while the kernel before it in the stream still runs (programmatic dependent launch, CUDA programming
// guide, from compute capability 9.0 on).
//
// A launch in stream order waits until its predecessor has ended and its writes are flushed; only then are blocks placed and their shared
// memory configured. Here they are placed as soon as all blocks of the predecessor have started and left room, and wait in
// start_after_predecessor(), their first statement, for the same end and the same flush. So nothing is read or written early. It takes a
// fraction of a microsecond off each of a sequence of short kernels. A predecessor that is no such kernel is waited for as always.
#pragma once

#include <cuda_runtime_api.h>

#include <optional>

#include "device_answers.h"

namespace gpusort {

__device__ __forceinline__ void wait_for_predecessor() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ void let_successor_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The first statement of every kernel that launch_after_predecessor() launches, in every thread. (A block that needs nothing of its
// predecessor may wait as its last statement, if all that it does need had ended when the predecessor let it start.)
__device__ __forceinline__ void start_after_predecessor() {
  wait_for_predecessor();
  let_successor_start();
}

// Whether the current device has compute capability 9.0 and loads this kernel as compiled for it: with the wait, and with clusters.
template <auto kKernel>
bool waits_on_current_device() {
  static DeviceAnswers answers;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return false;
  return answers.of(device, [device]() -> std::optional<bool> {
    int major = 0;
    cudaFuncAttributes attributes = {};
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess) return std::nullopt;
    if (cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kKernel)) != cudaSuccess) return std::nullopt;
    return major >= 9 && attributes.ptxVersion >= 90;
  });
}

struct LaunchShape {
  unsigned blocks = 0;
  int threads = 0;
  int shared_bytes = 0;
  bool dependent = false;    // blocks may start early, on devices and kernels that can; on others the launch is as any
  bool cooperative = false;  // all blocks are to be resident at once
  unsigned cluster = 0;      // blocks to a cluster, if there are any
};

template <auto kKernel, class Arguments>
cudaError_t launch_after_predecessor(const Arguments& arguments, const LaunchShape& shape, cudaStream_t stream) {
  cudaLaunchAttribute attributes[3] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(shape.blocks);
  config.blockDim = dim3(shape.threads);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  if (shape.dependent && waits_on_current_device<kKernel>()) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cooperative) {
    attributes[config.numAttrs].id = cudaLaunchAttributeCooperative;
    attributes[config.numAttrs++].val.cooperative = 1;
  }
  if (shape.cluster > 0) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs].val.clusterDim.x = shape.cluster;
    attributes[config.numAttrs].val.clusterDim.y = 1;
    attributes[config.numAttrs++].val.clusterDim.z = 1;
  }
  return cudaLaunchKernelEx(&config, kKernel, arguments);
}

}  // namespace gpusort
