// See equal_codes.h.
//
// A stable partition of two classes, zeros and clamped keys (NaNs, True), out of each row: every warp takes a contiguous share of the keys,
// so none has to wait for another.
//
//   find    counts the keys of the classes in each share, and lists them, until the list is full. One more block looks where the classes
//           begin in the sorted row, by a search for their codes
//   write   knows from the counts of the warps before it where in its class each key of a share goes. A share whose list was long enough is
//           written from the list; else it is read again
//
// Cost when there is something to do: a read of the input; a second read of the shares that have many keys of the classes; one write of the
// keys of both classes.
#include "equal_codes.h"

#include <cuda_runtime.h>

#include <algorithm>

#include "../primitives/block_scan.cuh"
#include "../primitives/dependent_launch.cuh"
#include "class_shares.cuh"
#include "key_vector.cuh"
#include "radix_control.cuh"

namespace gpusort {
namespace {

constexpr uint32_t kNotListed = ~0u;

// ---- find ---------------------------------------------------------------------------------------------------------------------------

template <class Key>
__global__ void __launch_bounds__(kClassThreads, 4) find_classes_kernel(const __grid_constant__ ClassArguments<Key> arguments) {
  start_after_predecessor();
  __shared__ uint2 sums[kClassWarps];
  if (arguments.pass.control->other_patterns == 0) return;
  const ClassShare<Key> share(arguments);
  const uint32_t thread = threadIdx.x, lane = thread % 32;
  if (blockIdx.x + 1 == gridDim.x) {
    if (thread >= 32 || arguments.pass.rows != 1) return;
    const uint32_t start = share.search(arguments.pass.keys_out);
    if (lane % 16 == 0) arguments.starts[lane / 16] = start;
    return;
  }
  constexpr int kRounds = ClassShare<Key>::kRounds;
  Key* list = arguments.lists + static_cast<uint64_t>(share.warp) * arguments.capacity;
  uint2 counts = make_uint2(0, 0);  // of this lane, in one row
  uint32_t listed = 0;
  uint64_t row_begin = 0;  // of the share's last row
  for (uint64_t at = share.begin; at < share.end;) {
    const uint64_t row = share.row_of(at), row_end = min((row + 1) * arguments.per_row, share.end);
    row_begin = row * arguments.per_row;
    counts = make_uint2(0, 0);
#pragma unroll 1
    for (; at < row_end; at += ClassShare<Key>::kBatchVectors) {
      uint4 vectors[kRounds];
      ClassMasks masks[kRounds];
      share.load(at, row_end, row, vectors, masks);
      uint32_t found = 0;
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        counts.x += __popc(masks[round].zeros);
        counts.y += __popc(masks[round].clamped);
        found |= masks[round].zeros | masks[round].clamped;
      }
      if (listed > arguments.capacity || !__any_sync(~0u, found != 0)) continue;
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        const uint32_t mask = masks[round].zeros | masks[round].clamped;
        const uint32_t inclusive = warp_inclusive_scan(static_cast<uint32_t>(__popc(mask)));
        uint32_t place = listed + inclusive - __popc(mask);
#pragma unroll
        for (int i = 0; i < ClassShare<Key>::kPerVector; ++i) {
          if ((mask >> i & 1) == 0) continue;
          if (place < arguments.capacity) list[place] = key_of_vector<Key>(vectors[round], i);
          ++place;
        }
        listed += __shfl_sync(~0u, inclusive, 31);
      }
    }
    at = row_end;
  }
  counts.x = __reduce_add_sync(~0u, counts.x);
  counts.y = __reduce_add_sync(~0u, counts.y);
  if (lane == 0) {
    arguments.warp_counts[share.warp] = counts;
    arguments.listed[share.warp] = share.begin == share.end || share.in_one_row() ? listed : kNotListed;
    sums[thread / 32] = counts;
  }
  __syncthreads();
  if (thread != 0) return;
  // The warps whose shares reach into the last row of the block's.
  const uint64_t block_end = share.begin_of(share.warp + kClassWarps);
  uint2 sum = make_uint2(0, 0);
  const uint64_t last_row = block_end == 0 ? 0 : share.row_of(block_end - 1) * arguments.per_row;
  for (uint32_t w = 0; w < kClassWarps; ++w) {
    if (share.begin_of(share.warp + w + 1) <= last_row) continue;
    sum.x += sums[w].x;
    sum.y += sums[w].y;
  }
  arguments.block_counts[blockIdx.x] = sum;
}

// ---- write --------------------------------------------------------------------------------------------------------------------------

template <class Key>
struct ClassWriter {
  static constexpr int kPerVector = ClassShare<Key>::kPerVector, kRounds = ClassShare<Key>::kRounds;
  static constexpr uint32_t kBatchItems = ClassShare<Key>::kBatchVectors * kPerVector;
  // Of a warp: zeros and clamped keys of a batch, each aligned like their place in the output.
  static constexpr uint32_t kStaged = kBatchItems + 4 * kPerVector;

  const ClassShare<Key>& share;
  Key* staged;
  uint64_t next[2];  // where the next zero and the next clamped key go

  // Keys of the classes in the row of vector `from` that lie in shares before this warp's.
  __device__ __forceinline__ void add_counts_before(uint64_t row_begin) {
    const ClassArguments<Key>& arguments = share.arguments;
    const uint32_t lane = threadIdx.x % 32;
    uint2 before = make_uint2(0, 0);
#pragma unroll 4
    for (uint32_t block = lane; block < blockIdx.x; block += 32) {
      if (share.begin_of((block + 1) * kClassWarps) <= row_begin) continue;
      before.x += arguments.block_counts[block].x;
      before.y += arguments.block_counts[block].y;
    }
    const uint32_t warp = blockIdx.x * kClassWarps + lane;
    if (warp < share.warp && share.begin_of(warp + 1) > row_begin) {
      before.x += arguments.warp_counts[warp].x;
      before.y += arguments.warp_counts[warp].y;
    }
    next[0] += __reduce_add_sync(~0u, before.x);
    next[1] += __reduce_add_sync(~0u, before.y);
  }

  __device__ __forceinline__ void write_list(uint32_t count) {
    const uint32_t lane = threadIdx.x % 32;
    const Key* list = share.arguments.lists + static_cast<uint64_t>(share.warp) * share.arguments.capacity;
#pragma unroll 1
    for (uint32_t i = lane; i - lane < count; i += 32) {
      const bool valid = i < count;
      const Key key = valid ? list[i] : Key{0};
      const bool zero = valid && share.is_zero(key);
      const uint32_t zeros = __ballot_sync(~0u, zero), clamped = __ballot_sync(~0u, valid && !zero);
      const uint32_t below = (1u << lane) - 1;
      if (valid) share.pass.keys_out[zero ? next[0] + __popc(zeros & below) : next[1] + __popc(clamped & below)] = key;
      next[0] += __popc(zeros);
      next[1] += __popc(clamped);
    }
  }

  __device__ __forceinline__ uint32_t misaligned(uint64_t place) const {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(share.pass.keys_out + place) & 15) / sizeof(Key);
  }

  // From staged[misaligned(place), ...] on, `base` being a multiple of 16 bytes.
  __device__ __forceinline__ void copy_out(uint32_t base, uint64_t place, uint32_t count) const {
    const uint32_t lane = threadIdx.x % 32, shift = misaligned(place);
    const Key* source = staged + base;
    Key* target = share.pass.keys_out + place - shift;  // aligned
    const uint32_t end = shift + count;
#pragma unroll 1
    for (uint32_t at = lane * kPerVector; at < end; at += 32 * kPerVector) {
      if (at >= shift && at + kPerVector <= end) {
        *reinterpret_cast<uint4*>(target + at) = *reinterpret_cast<const uint4*>(source + at);
        continue;
      }
#pragma unroll 1
      for (uint32_t i = max(at, shift); i < min(at + kPerVector, end); ++i) target[i] = source[i];
    }
  }

  // The keys of one row, vectors `at` to `row_end`.
  __device__ __forceinline__ void write_row(uint64_t at, uint64_t row_end, uint64_t row) {
#pragma unroll 1
    for (; at < row_end; at += ClassShare<Key>::kBatchVectors) {
      uint4 vectors[kRounds];
      ClassMasks masks[kRounds];
      share.load(at, row_end, row, vectors, masks);
      uint32_t before[kRounds], total = 0;
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        const uint32_t inclusive = warp_inclusive_scan(masks[round].counts());
        before[round] = total + inclusive - masks[round].counts();
        total += __shfl_sync(~0u, inclusive, 31);
      }
      if (total == 0) continue;
      const uint32_t zeros = total & 0xffff, clamped = total >> 16;
      const uint32_t zeros_from = misaligned(next[0]);
      const uint32_t base = (zeros_from + zeros + kPerVector - 1) / kPerVector * kPerVector;
      const uint32_t clamped_from = base + misaligned(next[1]);
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        uint32_t zero_at = zeros_from + (before[round] & 0xffff), clamped_at = clamped_from + (before[round] >> 16);
#pragma unroll
        for (int i = 0; i < kPerVector; ++i) {
          const Key key = key_of_vector<Key>(vectors[round], i);
          if (masks[round].zeros >> i & 1) staged[zero_at++] = key;
          if (masks[round].clamped >> i & 1) staged[clamped_at++] = key;
        }
      }
      __syncwarp();
      copy_out(0, next[0], zeros);
      copy_out(base, next[1], clamped);
      __syncwarp();
      next[0] += zeros;
      next[1] += clamped;
    }
  }
};

template <class Key>
__global__ void __launch_bounds__(kClassThreads, 4) write_classes_kernel(const __grid_constant__ ClassArguments<Key> arguments) {
  start_after_predecessor();
  using Writer = ClassWriter<Key>;
  static_assert(Writer::kBatchItems < 65536, "two counts share a word");
  __shared__ __align__(16) Key staged[kClassWarps][Writer::kStaged];
  static_assert(Writer::kStaged * sizeof(Key) % 16 == 0, "every warp's begins at a multiple of 16 bytes");
  const PassArguments<Key>& pass = arguments.pass;
  if (pass.control->other_patterns == 0) return;
  const ClassShare<Key> share(arguments);
  if (share.begin == share.end) return;
  const uint32_t listed = arguments.listed[share.warp];
  if (listed == 0) return;
  Writer writer{share, staged[threadIdx.x / 32], {0, 0}};
  bool first = true;
  for (uint64_t at = share.begin; at < share.end; first = false) {
    const uint64_t row = share.row_of(at), row_begin = row * arguments.per_row, row_end = min(row_begin + arguments.per_row, share.end);
    const uint64_t row_start = row * pass.length;
    const uint32_t start = pass.rows == 1 ? arguments.starts[threadIdx.x / 16 % 2] : share.search(pass.keys_out + row_start);
    writer.next[0] = row_start + __shfl_sync(~0u, start, 0);
    writer.next[1] = row_start + __shfl_sync(~0u, start, 16);
    if (first) writer.add_counts_before(row_begin);
    if (listed <= arguments.capacity) {
      writer.write_list(listed);
      return;
    }
    writer.write_row(at, row_end, row);
    at = row_end;
  }
}

}  // namespace

template <class Key>
cudaError_t launch_equal_codes(const PassArguments<Key>& pass, void* scratch, size_t scratch_bytes, int most_blocks, cudaStream_t stream) {
  auto ceil_div = [](uint64_t a, uint64_t b) { return (a + b - 1) / b; };
  constexpr int kPerVector = 16 / sizeof(Key);
  // Of the scratch: the starts, two counts for each block, two and a number for each warp, lists.
  constexpr uint64_t kStartBytes = 16, kBlockBytes = 8 + kClassWarps * 12;
  ClassArguments<Key> arguments;
  arguments.pass = pass;
  arguments.per_row = ceil_div(pass.length, kPerVector) + 1;
  const uint64_t wanted =
      std::min<uint64_t>(ceil_div(arguments.vectors(), ClassShare<Key>::kBatchVectors * kClassWarps), static_cast<uint64_t>(most_blocks));
  const uint64_t room = std::max<uint64_t>((scratch_bytes - kStartBytes) / kBlockBytes, 1);
  const uint32_t blocks = static_cast<uint32_t>(std::min(wanted, room));
  arguments.warps = blocks * kClassWarps;
  arguments.share = ceil_div(ceil_div(arguments.vectors(), arguments.warps), 8) * 8;
  char* at = static_cast<char*>(scratch);
  arguments.starts = reinterpret_cast<uint32_t*>(at);
  at += kStartBytes;
  arguments.block_counts = reinterpret_cast<uint2*>(at);
  at += blocks * 8;
  arguments.warp_counts = reinterpret_cast<uint2*>(at);
  at += arguments.warps * 8;
  arguments.lists = reinterpret_cast<Key*>(at);
  const uint64_t rest = scratch_bytes - std::min<uint64_t>(kStartBytes + blocks * kBlockBytes, scratch_bytes);
  arguments.capacity = static_cast<uint32_t>(std::min<uint64_t>(rest / (arguments.warps * sizeof(Key)), 1u << 30) & ~uint64_t{3});
  arguments.listed = reinterpret_cast<uint32_t*>(at + uint64_t{arguments.warps} * arguments.capacity * sizeof(Key));
  const LaunchShape shape = {blocks + 1, kClassThreads, 0, true};
  const cudaError_t error = launch_after_predecessor<find_classes_kernel<Key>>(arguments, shape, stream);
  if (error != cudaSuccess) return error;
  return launch_after_predecessor<write_classes_kernel<Key>>(arguments, {blocks, kClassThreads, 0, true}, stream);
}

template cudaError_t launch_equal_codes(const PassArguments<uint8_t>&, void*, size_t, int, cudaStream_t);
template cudaError_t launch_equal_codes(const PassArguments<uint16_t>&, void*, size_t, int, cudaStream_t);
template cudaError_t launch_equal_codes(const PassArguments<uint32_t>&, void*, size_t, int, cudaStream_t);
template cudaError_t launch_equal_codes(const PassArguments<uint64_t>&, void*, size_t, int, cudaStream_t);

}  // namespace gpusort
