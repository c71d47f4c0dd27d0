// csrc/cuda/primitives/dependent_launch.cuh with devices of two kinds in one process, played by the functions below: the attribute goes to
// those that can start the kernel early, and to no other. tests/test_early_launch.py builds and runs it where the CUDA headers are.
#include <cuda_runtime.h>

#include <cstdio>

#include "../../csrc/cuda/primitives/dependent_launch.cuh"

namespace {

struct Arguments {
  int value;
};

template <int>
void kernel(Arguments) {}  // stands for a kernel; nothing runs it

struct Device {
  int major;
  int ptx;        // of the kernel, as this device loads it
  int asked = 0;  // how often
};

Device devices[3] = {{9, 90}, {8, 80}, {9, 80}};  // the last one runs what was compiled for the one before
int current = 0, early = 0, attributes = 0, failed = 0;

void check(bool condition, const char* text) {
  if (!condition && ++failed) std::printf("failed: %s\n", text);
}

template <int kNumber>
int early_on(int device, bool dependent) {
  current = device;
  gpusort::LaunchShape shape{1, 32, 0, dependent};
  check(gpusort::launch_after_predecessor<kernel<kNumber>>(Arguments{7}, shape, nullptr) == cudaSuccess, "launch");
  check(attributes == early, "no other attribute");
  return early;
}

}  // namespace

cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  check(attribute == cudaDevAttrComputeCapabilityMajor && device == current, "attribute");
  *value = devices[device].major;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* found, const void*) {
  *found = {};
  found->ptxVersion = devices[current].ptx;
  ++devices[current].asked;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*, void**) {
  attributes = static_cast<int>(config->numAttrs);
  early = 0;
  for (int i = 0; i < attributes; ++i) {
    if (config->attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization) {
      early += config->attrs[i].val.programmaticStreamSerializationAllowed;
    }
  }
  return cudaSuccess;
}

int main() {
  for (int round = 0; round < 2; ++round) {
    check(early_on<0>(0, true) == 1, "the newer device first");
    check(early_on<0>(1, true) == 0, "then the older one");
    check(early_on<0>(2, true) == 0, "and a kernel without the wait");
    check(early_on<1>(1, true) == 0, "the older device first");
    check(early_on<1>(0, true) == 1, "then the newer one");
    check(early_on<0>(0, false) == 0, "not asked for");
  }
  check(devices[0].asked == 2 && devices[1].asked == 2 && devices[2].asked == 1, "each is asked once a kernel");
  if (failed == 0) std::puts("passed");
  return failed;
}
