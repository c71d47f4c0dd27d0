// cub::DeviceSegmentedSort and cub::DeviceSegmentedRadixSort: float32 rows of one length with 32-bit values that are ready-made indices.
// Row offsets come from a counting iterator, so that no offset array has to be read. DeviceSegmentedSort reads group sizes back on the host
// (it can not be captured in a graph); DeviceSegmentedRadixSort does not.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include "dispatch.h"

namespace {

struct RowOffset {
  int length;
  __host__ __device__ int operator()(int row) const { return row * length; }
};

auto row_offsets(int first_row, int length) {
  return thrust::make_transform_iterator(thrust::make_counting_iterator(first_row), RowOffset{length});
}

}  // namespace

// temp == nullptr: only *temp_bytes is written.
extern "C" int peer_segmented_sort(void* temp, size_t* temp_bytes, const float* keys_in, float* keys_out, const int32_t* values_in,
                                   int32_t* values_out, int64_t rows, int64_t length, cudaStream_t stream) {
  return cub::DeviceSegmentedSort::StableSortPairs(temp, *temp_bytes, keys_in, keys_out, values_in, values_out, rows * length, rows,
                                                   row_offsets(0, static_cast<int>(length)), row_offsets(1, static_cast<int>(length)),
                                                   stream);
}

extern "C" int peer_segmented_radix_sort(void* temp, size_t* temp_bytes, const float* keys_in, float* keys_out, const int32_t* values_in,
                                         int32_t* values_out, int64_t rows, int64_t length, cudaStream_t stream) {
  return cub::DeviceSegmentedRadixSort::SortPairs(temp, *temp_bytes, keys_in, keys_out, values_in, values_out, rows * length, rows,
                                                  row_offsets(0, static_cast<int>(length)), row_offsets(1, static_cast<int>(length)), 0, 32,
                                                  stream);
}
