// Copies between a strided tensor and packed rows, for sorts along a dim that is not the fastest one in memory. One read and one write.
#pragma once

#include <cuda_runtime_api.h>

#include "../../plan/row_layout.h"

namespace gpusort {

// packed[row * length + e] = strided[offset(row) + e * length_stride]. element_bytes: 1, 2, 4, 8, 16.
cudaError_t launch_gather_rows(const StridedRows& rows, int element_bytes, const void* strided, void* packed, cudaStream_t stream);

// The other way. `rows` must not overlap itself.
cudaError_t launch_scatter_rows(const StridedRows& rows, int element_bytes, const void* packed, void* strided, cudaStream_t stream);

// The same of unsigned positions that are kept in fewer bytes while packed: 2, 4 or 8 and no more than strided_bytes (4 or 8).
cudaError_t launch_scatter_positions(const StridedRows& rows, int packed_bytes, const void* packed, int strided_bytes, void* strided,
                                     cudaStream_t stream);

// The keys and the positions of sorted rows, in one launch where that is faster.
cudaError_t launch_scatter_results(const StridedRows& rows, int key_bytes, const void* packed_keys, void* keys, int packed_bytes,
                                   const void* packed_positions, int position_bytes, void* positions, cudaStream_t stream);

}  // namespace gpusort
