// cub::DeviceRadixSort::SortPairs with 32-bit values that are ready-made indices: less work than torch's contract, so a hard peer.
// Out of place. The DoubleBuffer form runs the same passes (CUB takes its second buffer from the temporary storage instead), so it saves
// memory, not time.
#include <cub/device/device_radix_sort.cuh>
#include <type_traits>

#include "dispatch.h"

// temp == nullptr: only *temp_bytes is written. end_bit == 0: all bits of the key.
extern "C" int peer_radix_pairs(int key_code, void* temp, size_t* temp_bytes, const void* keys_in, void* keys_out, const int32_t* values_in,
                                int32_t* values_out, int64_t count, int end_bit, cudaStream_t stream) {
  return peers::with_any_key(key_code, [&](auto* key) {
    using Key = std::remove_pointer_t<decltype(key)>;
    const int last_bit = end_bit == 0 ? static_cast<int>(sizeof(Key) * 8) : end_bit;
    return cub::DeviceRadixSort::SortPairs(temp, *temp_bytes, static_cast<const Key*>(keys_in), static_cast<Key*>(keys_out), values_in,
                                           values_out, static_cast<int>(count), 0, last_bit, stream);
  });
}
