// See table_scan.h.
#include "table_scan.h"

#include "table_scan.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 512;

__global__ void __launch_bounds__(kThreads) table_scan_kernel(uint32_t* tables, uint32_t count, uint32_t* bins) {
  scan_tables<kThreads>(tables, count, bins, blockIdx.x);
}

}  // namespace

cudaError_t launch_table_scan(uint32_t* tables, uint32_t count, uint32_t* bins, cudaStream_t stream) {
  table_scan_kernel<<<256 / kScannedCodes, kThreads, 0, stream>>>(tables, count, bins);
  return cudaGetLastError();
}

}  // namespace gpusort
