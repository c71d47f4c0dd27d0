// Launches a slot of the radix sort with the kernel for its key width, form, kind and tile.
#pragma once

#include <atomic>

#include "../primitives/kernel_setup.h"
#include "onesweep_pass.cuh"

namespace gpusort {

template <class Policy, bool kExact>
cudaError_t launch_form(const PassArguments<typename Policy::Key>& arguments, int grid, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(onesweep_pass_kernel<Policy, kExact>, Policy::kSharedBytes, prepared);
  if (error != cudaSuccess) return error;
  onesweep_pass_kernel<Policy, kExact><<<grid, Policy::kShape.threads, Policy::kSharedBytes, stream>>>(arguments);
  return cudaGetLastError();
}

template <class Policy>
cudaError_t launch_policy(const PassArguments<typename Policy::Key>& arguments, int grid, cudaStream_t stream) {
  if constexpr (!Policy::kIndexed) {
    if (arguments.codes_meet || arguments.partial_window()) {
      const cudaError_t error = launch_form<Policy, true>(arguments, grid, stream);
      if (error != cudaSuccess) return error;
    }
    if constexpr (sizeof(typename Policy::Key) == 1) {
      if (!arguments.partial_window()) return cudaSuccess;  // the other form would never have work: see byte_runs.h
    }
  }
  return launch_form<Policy, false>(arguments, grid, stream);
}

template <class Key, bool kIndexed, TileClass kClass, int kPermutePeriod>
cudaError_t launch_kind(PassKind kind, const PassArguments<Key>& arguments, int grid, cudaStream_t stream) {
  if constexpr (sizeof(Key) >= 2) {
    if (kind == PassKind::kLast)
      return launch_policy<PassPolicy<Key, kIndexed, PassKind::kLast, kClass, kPermutePeriod>>(arguments, grid, stream);
  }
  if constexpr (sizeof(Key) >= 4) {
    if (kind == PassKind::kMiddle)
      return launch_policy<PassPolicy<Key, kIndexed, PassKind::kMiddle, kClass, kPermutePeriod>>(arguments, grid, stream);
  }
  return launch_policy<PassPolicy<Key, kIndexed, PassKind::kFirst, kClass, kPermutePeriod>>(arguments, grid, stream);
}

template <class Key, bool kIndexed, int kPermutePeriod = 0>
cudaError_t launch_pass_of(PassKind kind, TileClass tile_class, const PassArguments<Key>& arguments, int grid, cudaStream_t stream) {
  if (tile_class == TileClass::kMedium)
    return launch_kind<Key, kIndexed, TileClass::kMedium, kPermutePeriod>(kind, arguments, grid, stream);
  return launch_kind<Key, kIndexed, TileClass::kLarge, kPermutePeriod>(kind, arguments, grid, stream);
}

}  // namespace gpusort
