// torch.ops.gpusort._build_info(): what the CPU library was compiled with, one "key=value" a line.
#include <torch/csrc/stable/library.h>

#include <sstream>
#include <string>

namespace gpusort::ops {
namespace {

#ifndef GPUSORT_VERSION
#define GPUSORT_VERSION "unknown"
#endif

std::string build_info() {
  std::ostringstream text;
  text << "version=" << GPUSORT_VERSION << '\n'
       << "compiler=" << __VERSION__ << '\n'
       << "cplusplus=" << __cplusplus << '\n'
       << "torch_target=" << (TORCH_TARGET_VERSION >> 56 & 0xff) << '.' << (TORCH_TARGET_VERSION >> 48 & 0xff) << '\n';
  return text.str();
}

}  // namespace
}  // namespace gpusort::ops

STABLE_TORCH_LIBRARY_IMPL(gpusort, CompositeExplicitAutograd, m) {
  m.impl("_build_info", TORCH_BOX(&gpusort::ops::build_info));
}
