// What the four peer files share: the codes by which Python names a key type, and a call of a generic lambda with a key of that type.
// The peers are CUB's device-wide algorithms of the toolkit in use. They are measured against and are no part of the product.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cuda/std/functional>

namespace peers {

// The same numbers as KEY_CODES in cub.py.
enum KeyCode : int { kUint8 = 0, kInt32 = 1, kInt64 = 2, kFloat16 = 3, kFloat32 = 4, kInt16 = 5 };

// A pointer that knows its type and is never read: `decltype` of what it points to is the key type.
template <typename Key, typename Function>
cudaError_t call_with(Function&& function) {
  return function(static_cast<Key*>(nullptr));
}

template <typename Function>
cudaError_t with_any_key(int code, Function&& function) {
  switch (code) {
    case kUint8: return call_with<uint8_t>(function);
    case kInt32: return call_with<int32_t>(function);
    case kInt64: return call_with<int64_t>(function);
    case kFloat16: return call_with<__half>(function);
    case kFloat32: return call_with<float>(function);
    case kInt16: return call_with<int16_t>(function);
    default: return cudaErrorInvalidValue;
  }
}

// The comparison sorts are needed for 32-bit floats and 64-bit integers only.
template <typename Function>
cudaError_t with_wide_key(int code, Function&& function) {
  switch (code) {
    case kInt64: return call_with<int64_t>(function);
    case kFloat32: return call_with<float>(function);
    default: return cudaErrorInvalidValue;
  }
}

// Merges are measured for keys of every width.
template <typename Function>
cudaError_t with_merge_key(int code, Function&& function) {
  switch (code) {
    case kUint8: return call_with<uint8_t>(function);
    case kInt16: return call_with<int16_t>(function);
    default: return with_wide_key(code, function);
  }
}

}  // namespace peers
