// Which bucket a code belongs to: the splitters of a row as a search tree in shared memory, walked without branches.
//
// The tree is complete and lies level by level (node k has the children 2k and 2k + 1; Eytzinger, "Thesaurus" (1590); Khuong and Morin,
// "Array layouts for comparison-based searching" (2017)), so that lanes at one level read neighbouring words: the upper six levels have no
// bank conflicts. A step is a load, a subtraction that leaves its borrow, and one more that takes it: node = 2 node + (code >= splitter).
//
// Bucket b holds the codes in [floor(b), floor(b + 1)), where floor(b) is splitter b but for one thing: the last of several equal splitters
// rises by one. A value that is found so often that it is a splitter twice or more thereby gets a bucket of its own, which needs no
// sorting, and the buckets between its equal splitters are empty.
#pragma once

#include <cstdint>

#include "partition_arguments.h"

namespace gpusort {

// The lowest code of bucket `bucket` >= 1. `splitters` are the row's, in global memory.
template <class Code>
__device__ __forceinline__ Code bucket_floor(const Code* splitters, int bucket, int buckets, Code highest) {
  const Code own = splitters[bucket];
  const bool as_before = bucket > 1 && splitters[bucket - 1] == own;
  const bool as_after = bucket + 1 < buckets && splitters[bucket + 1] == own;
  return own + (as_before && !as_after && own != highest ? 1 : 0);
}

// The largest code of keys of type U.
template <class U>
__device__ __forceinline__ BucketCode<U> highest_code() {
  return static_cast<U>(~U{0});
}

// The node of splitter `bucket` >= 1.
__device__ __forceinline__ int splitter_node(int bucket, int levels) {
  const int height = __ffs(bucket) - 1;  // above the lowest inner level
  return (1 << (levels - 1 - height)) + (bucket >> (height + 1));
}

// All threads of the block call; a barrier must follow.
template <class U>
__device__ __forceinline__ void build_splitter_tree(BucketCode<U>* tree, const PartitionArguments<U>& arguments, uint32_t row) {
  using Code = BucketCode<U>;
  const Code* splitters = arguments.splitters + static_cast<uint64_t>(row) * arguments.buckets;
  const int leaves = 1 << arguments.levels;
  for (int k = static_cast<int>(threadIdx.x) + 1; k < leaves; k += static_cast<int>(blockDim.x)) {
    const int node = splitter_node(k, arguments.levels);
    tree[node] = k < arguments.buckets ? bucket_floor(splitters, k, arguments.buckets, highest_code<U>()) : static_cast<Code>(~Code{0});
  }
}

__device__ __forceinline__ uint32_t child_of(uint32_t node, uint32_t code, uint32_t splitter) {
#ifdef __CUDA_ARCH__
  uint32_t child;
  asm("{\n\t.reg .u32 difference, inverse;\n\tsub.cc.u32 difference, %2, %3;\n\tnot.b32 inverse, %1;\n\tsubc.u32 %0, %1, inverse;\n\t}"
      : "=r"(child)
      : "r"(node), "r"(code), "r"(splitter));
  return child;
#else
  return 2 * node + (code >= splitter ? 1 : 0);
#endif
}

__device__ __forceinline__ uint32_t child_of(uint32_t node, uint64_t code, uint64_t splitter) {
  return 2 * node + (code >= splitter ? 1 : 0);
}

// The leaves of kCount codes, counted from 2^levels on; the searches run side by side. Bucket b is leaf b, and what fills the tree up is as
// large as codes get, so the last bucket has the last leaf besides its own.
template <int kCount, class Code>
__device__ __forceinline__ void find_leaves(const Code* tree, int levels, const Code (&codes)[kCount], uint32_t (&found)[kCount]) {
#pragma unroll
  for (int k = 0; k < kCount; ++k) found[k] = 1;
#pragma unroll 1
  for (int level = 0; level < levels; ++level) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) found[k] = child_of(found[k], codes[k], tree[found[k]]);
  }
}

template <int kCount, class Code>
__device__ __forceinline__ void find_buckets(const Code* tree, int levels, int buckets, const Code (&codes)[kCount],
                                             uint32_t (&found)[kCount]) {
  find_leaves(tree, levels, codes, found);
#pragma unroll
  for (int k = 0; k < kCount; ++k) found[k] = min(found[k] - (1u << levels), static_cast<uint32_t>(buckets - 1));
}

}  // namespace gpusort
