// The bridge between torch's stable ABI and the kernels: errors, dtypes, dims, allocation. Everything an op needs of torch on any device.
// Kernels only ever see raw pointers from here: an ATen call inside a kernel could be recorded by autograd.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/c/shim.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../plan/sort_problem.h"

namespace gpusort::ops {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// ---- errors -------------------------------------------------------------------------------------------------------------------------
// The ABI carries std::runtime_error only, so the text names the Python type that torch_gpusort raises in its place.

enum class PythonError { kIndex, kType, kValue, kRuntime, kOutOfMemory };

inline const char* python_name(PythonError error) {
  switch (error) {
    case PythonError::kIndex: return "IndexError: ";
    case PythonError::kType: return "TypeError: ";
    case PythonError::kValue: return "ValueError: ";
    case PythonError::kOutOfMemory: return "OutOfMemoryError: ";
    default: return "RuntimeError: ";
  }
}

template <class... Parts>
[[noreturn]] void fail(PythonError error, const Parts&... parts) {
  std::ostringstream text;
  text << python_name(error);
  (text << ... << parts);
  throw std::runtime_error(text.str());
}

template <class... Parts>
void check(bool condition, PythonError error, const Parts&... parts) {
  if (!condition) fail(error, parts...);
}

// A shim that failed has printed torch's own message; `what` says what was being done.
inline void check_shim(AOTITorchError code, const char* what) {
  check(code == 0, PythonError::kRuntime, "torch failed to ", what);
}

// ---- strings ------------------------------------------------------------------------------------------------------------------------

// The text of a `str` argument. Ops take it as the handle that torch passes, which is theirs to delete: the ABI's own conversion to
// std::string (torch 2.11) never frees what it makes.
inline std::string take_string(StringHandle handle) {
  size_t length = 0;
  const char* data = nullptr;
  const bool readable = torch_string_length(handle, &length) == 0 && torch_string_c_str(handle, &data) == 0;
  std::string text = readable ? std::string(data, length) : std::string();
  check(torch_delete_string(handle) == 0 && readable, PythonError::kRuntime, "torch failed to pass a string");
  return text;
}

// ---- dtypes -------------------------------------------------------------------------------------------------------------------------

inline int32_t dtype_code_of(const Tensor& tensor) {
  int32_t code = 0;
  check_shim(aoti_torch_get_dtype(tensor.get(), &code), "read a dtype");
  return code;
}

// The ABI's own scalar_type() throws for dtypes that it does not know (bits8, uint4). Nothing is done with those but to name them.
inline ScalarType dtype_of(const Tensor& tensor) {
  try {
    return tensor.scalar_type();
  } catch (const std::runtime_error&) {
    return static_cast<ScalarType>(dtype_code_of(tensor));
  }
}

// A dtype in a message, as Python writes it. The text is made only if the message is.
struct DtypeName {
  ScalarType dtype;

  const char* name_of_its_own() const {
    switch (dtype) {
      case ScalarType::Bool: return "bool";
      case ScalarType::Byte: return "uint8";
      case ScalarType::Char: return "int8";
      case ScalarType::Short: return "int16";
      case ScalarType::Int: return "int32";
      case ScalarType::Long: return "int64";
      case ScalarType::Half: return "float16";
      case ScalarType::Float: return "float32";
      case ScalarType::Double: return "float64";
      case ScalarType::ComplexHalf: return "complex32";
      case ScalarType::ComplexFloat: return "complex64";
      case ScalarType::ComplexDouble: return "complex128";
      default: return nullptr;
    }
  }

  friend std::ostream& operator<<(std::ostream& text, const DtypeName& name) {
    text << "torch.";
    if (const char* known = name.name_of_its_own()) return text << known;
    for (const char* letter = torch::headeronly::toString(name.dtype); *letter != 0; ++letter) {  // the same name but for capitals
      text << static_cast<char>(*letter >= 'A' && *letter <= 'Z' ? *letter - 'A' + 'a' : *letter);
    }
    return text;
  }
};

inline DtypeName dtype_name(ScalarType dtype) {
  return {dtype};
}

constexpr const char* kRealDtypes =
    "bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2";

inline bool is_complex(ScalarType dtype) {
  return dtype == ScalarType::ComplexFloat || dtype == ScalarType::ComplexDouble;
}

// The kernels' view of a real dtype. Complex dtypes are sorted by code words (core/complex_code.h), which are plain unsigned keys.
inline KeyType key_type_of(ScalarType dtype, const char* argument) {
  switch (dtype) {
    case ScalarType::Bool: return {1, KeyKind::kBool, 0};
    case ScalarType::Byte: return {1, KeyKind::kUnsigned, 0};
    case ScalarType::UInt16: return {2, KeyKind::kUnsigned, 0};
    case ScalarType::UInt32: return {4, KeyKind::kUnsigned, 0};
    case ScalarType::UInt64: return {8, KeyKind::kUnsigned, 0};
    case ScalarType::Char: return {1, KeyKind::kSigned, 0};
    case ScalarType::Short: return {2, KeyKind::kSigned, 0};
    case ScalarType::Int: return {4, KeyKind::kSigned, 0};
    case ScalarType::Long: return {8, KeyKind::kSigned, 0};
    case ScalarType::Half: return {2, KeyKind::kFloat, 0x7c00};
    case ScalarType::BFloat16: return {2, KeyKind::kFloat, 0x7f80};
    case ScalarType::Float: return {4, KeyKind::kFloat, 0x7f800000};
    case ScalarType::Double: return {8, KeyKind::kFloat, 0x7ff0000000000000};
    case ScalarType::Float8_e5m2: return {1, KeyKind::kFloat, 0x7c};
    case ScalarType::Float8_e4m3fn: return {1, KeyKind::kFloatNoInf, 0x7e};
    default:
      fail(PythonError::kType, argument, " has dtype ", dtype_name(dtype), ", which has no order here; allowed are ", kRealDtypes,
           ", complex64 and complex128");
  }
}

// Bytes of an index, for a row of `length`.
inline int index_bytes_of(std::optional<ScalarType> index_dtype, int64_t length) {
  const ScalarType dtype = index_dtype.value_or(ScalarType::Long);
  check(dtype == ScalarType::Long || dtype == ScalarType::Int, PythonError::kValue, "index_dtype is ", dtype_name(dtype),
        "; allowed are torch.int64 and torch.int32");
  if (dtype == ScalarType::Long) return 8;
  check(length <= (int64_t{1} << 31), PythonError::kValue, "index_dtype is torch.int32, but the dimension has ", length,
        " elements and its last index would not fit; use torch.int64");
  return 4;
}

// ---- shapes -------------------------------------------------------------------------------------------------------------------------

// A 0-dim tensor takes dims -1 and 0, as in torch.
inline int64_t wrap_dim(int64_t dim, int64_t ndim) {
  const int64_t range = ndim > 0 ? ndim : 1;
  check(dim >= -range && dim < range, PythonError::kIndex, "Dimension out of range (expected to be in range of [", -range, ", ", range - 1,
        "], but got dim=", dim, ")");
  return dim < 0 ? dim + range : dim;
}

inline std::vector<int64_t> sizes_of(const Tensor& tensor) {
  const auto sizes = tensor.sizes();
  return {sizes.begin(), sizes.end()};
}

inline std::vector<int64_t> strides_of(const Tensor& tensor) {
  const auto strides = tensor.strides();
  return {strides.begin(), strides.end()};
}

inline std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i] > 1 ? sizes[i] : 1;
  }
  return strides;
}

// All dims but one, in their order.
inline std::vector<int> dims_but(int64_t dim, int64_t dims) {
  std::vector<int> others;
  for (int64_t i = 0; i < dims; ++i) {
    if (i != dim) others.push_back(static_cast<int>(i));
  }
  return others;
}

// A shape in a message. It refers to `sizes` and is made into text only if the message is.
template <class Sizes>
struct ShapeText {
  const Sizes& sizes;

  friend std::ostream& operator<<(std::ostream& text, const ShapeText& shape) {
    text << '[';
    const char* separator = "";
    for (const int64_t size : shape.sizes) {
      text << separator << size;
      separator = ", ";
    }
    return text << ']';
  }
};

template <class Sizes>
ShapeText<Sizes> shape_text(const Sizes& sizes) {
  return {sizes};
}

// ---- devices ------------------------------------------------------------------------------------------------------------------------

inline std::string device_text(const torch::stable::Device& device) {
  return device.is_cpu() ? "cpu" : "cuda:" + std::to_string(device.index());
}

inline void check_same_device(const Tensor& tensor, const Tensor& other, const char* argument, const char* other_name) {
  const auto device = tensor.device(), expected = other.device();
  if (device == expected) return;
  fail(PythonError::kRuntime, argument, " is on ", device_text(device), " and ", other_name, " on ", device_text(expected),
       "; all must be on one device");
}

// ---- allocation ---------------------------------------------------------------------------------------------------------------------

inline int32_t index_dtype_code(int index_bytes) {
  return index_bytes == 8 ? aoti_torch_dtype_int64() : aoti_torch_dtype_int32();
}

inline int element_bytes_of(const Tensor& tensor) {
  return static_cast<int>(aoti_torch_dtype_element_size(dtype_code_of(tensor)));
}

// A fresh tensor beside `like`. Memory comes from torch's allocator for the device, so it is stream-ordered and counted.
inline Tensor allocate(const Tensor& like, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, int32_t dtype_code) {
  int32_t device_type = 0;
  check_shim(aoti_torch_get_device_type(like.get(), &device_type), "read a device type");
  AtenTensorHandle handle = nullptr;
  const AOTITorchError code = aoti_torch_empty_strided(static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(), dtype_code,
                                                       device_type, like.get_device_index(), &handle);
  check(code == 0, PythonError::kOutOfMemory, "could not allocate a result of shape ", shape_text(sizes),
        "; torch's own message went to stderr");
  return Tensor(handle);
}

// `bytes` of scratch memory beside `like`, freed when the returned tensor goes out of scope.
inline Tensor allocate_bytes(const Tensor& like, int64_t bytes) {
  int32_t device_type = 0;
  check_shim(aoti_torch_get_device_type(like.get(), &device_type), "read a device type");
  const int64_t size = bytes > 0 ? bytes : 1;
  const int64_t stride = 1;
  AtenTensorHandle handle = nullptr;
  const AOTITorchError code =
      aoti_torch_empty_strided(1, &size, &stride, aoti_torch_dtype_uint8(), device_type, like.get_device_index(), &handle);
  check(code == 0, PythonError::kOutOfMemory, "could not allocate ", bytes, " bytes of workspace; torch's own message went to stderr");
  return Tensor(handle);
}

}  // namespace gpusort::ops
