// torch.ops.gpusort._cuda_build_info(): toolkit and architectures of the CUDA library, one "key=value" a line. The op exists only when it
// is loaded.
#include <cuda_runtime_api.h>
#include <torch/csrc/stable/library.h>

#include <sstream>
#include <string>

namespace gpusort::ops {
namespace {

#ifndef GPUSORT_CUDA_ARCHITECTURES
#define GPUSORT_CUDA_ARCHITECTURES "unknown"
#endif

std::string cuda_build_info() {
  std::ostringstream text;
  text << "cuda_toolkit=" << CUDART_VERSION / 1000 << '.' << CUDART_VERSION % 1000 / 10 << '\n'
       << "cuda_architectures=" << GPUSORT_CUDA_ARCHITECTURES << '\n';
  return text.str();
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_FRAGMENT(gpusort, m) {
  m.def("_cuda_build_info() -> str");
}

STABLE_TORCH_LIBRARY_IMPL(gpusort, CompositeExplicitAutograd, m) {
  m.impl("_cuda_build_info", TORCH_BOX(&gpusort::ops::cuda_build_info));
}
