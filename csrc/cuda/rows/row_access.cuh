// How row kernels read and write global memory: four keys at a time when the layout allows, and coalesced stores of what is wanted.
#pragma once

#include <cstdint>

#include "row_arguments.h"

namespace gpusort {

// Four neighbouring keys as one load or store (two for 64-bit keys). The address is aligned to 4 keys or 16 bytes.
__device__ __forceinline__ void load_quad(const uint8_t* from, uint8_t (&keys)[4]) {
  const uint32_t raw = *reinterpret_cast<const uint32_t*>(from);
#pragma unroll
  for (int i = 0; i < 4; ++i) keys[i] = static_cast<uint8_t>(raw >> (8 * i));
}

__device__ __forceinline__ void load_quad(const uint16_t* from, uint16_t (&keys)[4]) {
  const uint2 raw = *reinterpret_cast<const uint2*>(from);
  keys[0] = static_cast<uint16_t>(raw.x);
  keys[1] = static_cast<uint16_t>(raw.x >> 16);
  keys[2] = static_cast<uint16_t>(raw.y);
  keys[3] = static_cast<uint16_t>(raw.y >> 16);
}

__device__ __forceinline__ void load_quad(const uint32_t* from, uint32_t (&keys)[4]) {
  const uint4 raw = *reinterpret_cast<const uint4*>(from);
  keys[0] = raw.x;
  keys[1] = raw.y;
  keys[2] = raw.z;
  keys[3] = raw.w;
}

__device__ __forceinline__ void load_quad(const uint64_t* from, uint64_t (&keys)[4]) {
  const ulonglong2 low = reinterpret_cast<const ulonglong2*>(from)[0];
  const ulonglong2 high = reinterpret_cast<const ulonglong2*>(from)[1];
  keys[0] = low.x;
  keys[1] = low.y;
  keys[2] = high.x;
  keys[3] = high.y;
}

__device__ __forceinline__ void store_quad(uint8_t* to, const uint8_t (&keys)[4]) {
  *reinterpret_cast<uint32_t*>(to) =
      keys[0] | static_cast<uint32_t>(keys[1]) << 8 | static_cast<uint32_t>(keys[2]) << 16 | static_cast<uint32_t>(keys[3]) << 24;
}

__device__ __forceinline__ void store_quad(uint16_t* to, const uint16_t (&keys)[4]) {
  *reinterpret_cast<uint2*>(to) =
      make_uint2(keys[0] | static_cast<uint32_t>(keys[1]) << 16, keys[2] | static_cast<uint32_t>(keys[3]) << 16);
}

__device__ __forceinline__ void store_quad(uint32_t* to, const uint32_t (&keys)[4]) {
  *reinterpret_cast<uint4*>(to) = make_uint4(keys[0], keys[1], keys[2], keys[3]);
}

__device__ __forceinline__ void store_quad(uint64_t* to, const uint64_t (&keys)[4]) {
  reinterpret_cast<ulonglong2*>(to)[0] = make_ulonglong2(keys[0], keys[1]);
  reinterpret_cast<ulonglong2*>(to)[1] = make_ulonglong2(keys[2], keys[3]);
}

// The output from one place on. A null pointer is an output nobody wants.
template <class U>
struct RowOutput {
  U* keys;
  int64_t* indices_wide;
  int32_t* indices_narrow;
  uint16_t* indices_short;

  __device__ __forceinline__ RowOutput(const RowArguments<U>& arguments, int64_t offset)
      : keys(arguments.keys_out ? arguments.keys_out + offset : nullptr),
        indices_wide(arguments.indices_wide ? arguments.indices_wide + offset : nullptr),
        indices_narrow(arguments.indices_narrow ? arguments.indices_narrow + offset : nullptr),
        indices_short(arguments.indices_short ? arguments.indices_short + offset : nullptr) {}

  __device__ __forceinline__ void store(int position, U key, uint32_t index) const {
    if (keys) keys[position] = key;
    if (indices_wide) {
      indices_wide[position] = index;
    } else if (indices_narrow) {
      indices_narrow[position] = static_cast<int32_t>(index);
    } else if (indices_short) {
      indices_short[position] = static_cast<uint16_t>(index);
    }
  }

  // Four neighbours; position is a multiple of 4 and quad_stores holds.
  __device__ __forceinline__ void store_quad_at(int position, const U (&quad)[4], const uint32_t (&indices)[4]) const {
    if (keys) store_quad(keys + position, quad);
    if (indices_wide) {
      longlong2* to = reinterpret_cast<longlong2*>(indices_wide + position);
      to[0] = make_longlong2(indices[0], indices[1]);
      to[1] = make_longlong2(indices[2], indices[3]);
    } else if (indices_narrow) {
      store_quad(reinterpret_cast<uint32_t*>(indices_narrow) + position, indices);
    } else if (indices_short) {
      const uint16_t halves[4] = {static_cast<uint16_t>(indices[0]), static_cast<uint16_t>(indices[1]), static_cast<uint16_t>(indices[2]),
                                  static_cast<uint16_t>(indices[3])};
      store_quad(indices_short + position, halves);
    }
  }
};

}  // namespace gpusort
