// Marks functions that run on the host and on the device. g++ sees plain inline functions, so tests/host can run them.
#pragma once

#if defined(__CUDACC__)
#define GPUSORT_HD __host__ __device__ __forceinline__
#else
#define GPUSORT_HD inline
#endif
