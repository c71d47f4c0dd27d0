// Launches slots of the radix sort with the kernel for their key width, form, kind and tile.
#pragma once

#include <atomic>

#include "../primitives/kernel_setup.h"
#include "onesweep_pass.cuh"
#include "placed_block.cuh"

namespace gpusort {

template <class Policy, bool kExact>
cudaError_t launch_form(const PassArguments<typename Policy::Key>& arguments, int grid, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(onesweep_pass_kernel<Policy, kExact>, Policy::kSharedBytes, prepared);
  if (error != cudaSuccess) return error;
  const LaunchShape shape = {static_cast<unsigned>(grid), Policy::kShape.threads, Policy::kSharedBytes, arguments.dependent_launch()};
  return launch_after_predecessor<onesweep_pass_kernel<Policy, kExact>>(arguments, shape, stream);
}

template <class Policy>
cudaError_t launch_policy(const PassArguments<typename Policy::Key>& arguments, int grid, cudaStream_t stream) {
  if constexpr (!Policy::kIndexed) {
    if (arguments.partial_window()) return launch_form<Policy, true>(arguments, grid, stream);
  }
  if constexpr (Policy::kIndexed || sizeof(typename Policy::Key) > 1)
    return launch_form<Policy, false>(arguments, grid, stream);
  else
    return cudaSuccess;  // byte_runs.h writes what the histogram counted
}

// All middle slots.
template <class Policy>
cudaError_t launch_one_by_one(const PassArguments<typename Policy::Key>& arguments, int grid, cudaStream_t stream) {
  const int slots = arguments.low_words ? 2 : arguments.passes - 2;  // low words have four digits
  for (int slot = 1; slot <= slots; ++slot) {
    PassArguments<typename Policy::Key> one = arguments;
    one.middle_slot = slot;
    const cudaError_t error = launch_policy<Policy>(one, grid, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

template <class Key, bool kIndexed, TileClass kClass, int kPermutePeriod>
cudaError_t launch_kind(PassKind kind, const PassArguments<Key>& arguments, int grid, cudaStream_t stream) {
  if constexpr (sizeof(Key) >= 2) {
    if (kind == PassKind::kLast)
      return launch_policy<PassPolicy<Key, kIndexed, PassKind::kLast, kClass, kPermutePeriod>>(arguments, grid, stream);
  }
  if constexpr (sizeof(Key) >= 4) {
    if (kind == PassKind::kMiddle) {
      using Policy = PassPolicy<Key, kIndexed, PassKind::kMiddle, kClass, kPermutePeriod>;
      if constexpr (kMiddleSlotsInOneLaunch<Key, kIndexed>)
        return launch_policy<Policy>(arguments, grid, stream);
      else
        return launch_one_by_one<Policy>(arguments, grid, stream);
    }
  }
  return launch_policy<PassPolicy<Key, kIndexed, PassKind::kFirst, kClass, kPermutePeriod>>(arguments, grid, stream);
}

template <class Key, bool kIndexed, int kPermutePeriod = 0>
cudaError_t launch_pass_of(PassKind kind, TileClass tile_class, const PassArguments<Key>& arguments, int grid, cudaStream_t stream) {
  if (tile_class == TileClass::kMedium)
    return launch_kind<Key, kIndexed, TileClass::kMedium, kPermutePeriod>(kind, arguments, grid, stream);
  return launch_kind<Key, kIndexed, TileClass::kLarge, kPermutePeriod>(kind, arguments, grid, stream);
}

template <bool kIndexed, TileClass kClass>
cudaError_t launch_low_word_kind(PassKind kind, const PassArguments<uint32_t>& arguments, int grid, cudaStream_t stream) {
  if (kind == PassKind::kFirst) return launch_form<LowWordPolicy<kIndexed, PassKind::kFirst, kClass>, false>(arguments, grid, stream);
  return launch_form<LowWordPolicy<kIndexed, PassKind::kLast, kClass>, false>(arguments, grid, stream);
}

// The slots between move records like those of any 32-bit keys.
template <bool kIndexed>
cudaError_t launch_low_word_pass_of(PassKind kind, TileClass tile_class, const PassArguments<uint32_t>& arguments, int grid,
                                    cudaStream_t stream) {
  if (kind == PassKind::kMiddle) return launch_pass<uint32_t, kIndexed>(kind, tile_class, arguments, grid, stream);
  if (tile_class == TileClass::kMedium) return launch_low_word_kind<kIndexed, TileClass::kMedium>(kind, arguments, grid, stream);
  return launch_low_word_kind<kIndexed, TileClass::kLarge>(kind, arguments, grid, stream);
}

}  // namespace gpusort
