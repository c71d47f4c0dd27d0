// Scratch memory of a CPU kernel: uninitialised, reused between rows, freed when it goes out of scope.
#pragma once

#include <cstdint>
#include <memory>

namespace gpusort::cpu {

class Scratch {
 public:
  // `size` elements of a trivial type; what an earlier call returned is gone. Throws std::bad_alloc.
  template <class T>
  T* get(int64_t size) {
    const int64_t bytes = size * static_cast<int64_t>(sizeof(T));
    if (bytes > bytes_) {
      memory_.reset();
      bytes_ = 0;
      memory_.reset(new unsigned char[static_cast<size_t>(bytes)]);  // aligned for any scalar type
      bytes_ = bytes;
    }
    return reinterpret_cast<T*>(memory_.get());
  }

 private:
  std::unique_ptr<unsigned char[]> memory_;
  int64_t bytes_ = 0;
};

}  // namespace gpusort::cpu
