// cub::DeviceRadixSort::SortKeys, out of place.
#include <cub/device/device_radix_sort.cuh>
#include <type_traits>

#include "dispatch.h"

// temp == nullptr: only *temp_bytes is written.
extern "C" int peer_radix_keys(int key_code, void* temp, size_t* temp_bytes, const void* keys_in, void* keys_out, int64_t count,
                               cudaStream_t stream) {
  return peers::with_any_key(key_code, [&](auto* key) {
    using Key = std::remove_pointer_t<decltype(key)>;
    return cub::DeviceRadixSort::SortKeys(temp, *temp_bytes, static_cast<const Key*>(keys_in), static_cast<Key*>(keys_out),
                                          static_cast<int>(count), 0, static_cast<int>(sizeof(Key) * 8), stream);
  });
}
