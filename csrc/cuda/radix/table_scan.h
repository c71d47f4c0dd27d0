// Tables of 256 counts, one for each group of tiles of a partition, become where in its bin each group's items begin.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gpusort {

// tables: [count][256], aligned to 16 bytes; bins: the sums of all.
cudaError_t launch_table_scan(uint32_t* tables, uint32_t count, uint32_t* bins, cudaStream_t stream);

}  // namespace gpusort
