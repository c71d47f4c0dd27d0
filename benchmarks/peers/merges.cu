// cub::DeviceMerge (keys; 32-bit keys with 32-bit values) and cub::DeviceMergeSort (keys with 32-bit values that are ready-made indices).
#include <cub/device/device_merge.cuh>
#include <cub/device/device_merge_sort.cuh>
#include <type_traits>

#include "dispatch.h"

// In all three, temp == nullptr: only *temp_bytes is written.
extern "C" int peer_merge_keys(int key_code, void* temp, size_t* temp_bytes, const void* a, int64_t a_count, const void* b, int64_t b_count,
                               void* out, cudaStream_t stream) {
  return peers::with_merge_key(key_code, [&](auto* key) {
    using Key = std::remove_pointer_t<decltype(key)>;
    return cub::DeviceMerge::MergeKeys(temp, *temp_bytes, static_cast<const Key*>(a), a_count, static_cast<const Key*>(b), b_count,
                                       static_cast<Key*>(out), cuda::std::less<Key>{}, stream);
  });
}

extern "C" int peer_merge_pairs(void* temp, size_t* temp_bytes, const float* a_keys, const int32_t* a_values, int64_t a_count,
                                const float* b_keys, const int32_t* b_values, int64_t b_count, float* keys_out, int32_t* values_out,
                                cudaStream_t stream) {
  return cub::DeviceMerge::MergePairs(temp, *temp_bytes, a_keys, a_values, a_count, b_keys, b_values, b_count, keys_out, values_out,
                                      cuda::std::less<float>{}, stream);
}

// SortPairsCopy runs the kernels of StableSortPairs, but reads its input from one place and writes to another.
extern "C" int peer_merge_sort_pairs(int key_code, void* temp, size_t* temp_bytes, const void* keys_in, void* keys_out,
                                     const int32_t* values_in, int32_t* values_out, int64_t count, cudaStream_t stream) {
  return peers::with_wide_key(key_code, [&](auto* key) {
    using Key = std::remove_pointer_t<decltype(key)>;
    return cub::DeviceMergeSort::SortPairsCopy(temp, *temp_bytes, static_cast<const Key*>(keys_in), values_in, static_cast<Key*>(keys_out),
                                               values_out, static_cast<int>(count), cuda::std::less<Key>{}, stream);
  });
}
