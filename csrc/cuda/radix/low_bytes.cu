// See low_bytes.h.
#include "low_bytes.h"

#include <cuda_runtime.h>

#include <atomic>

#include "../primitives/dependent_launch.cuh"
#include "../primitives/kernel_setup.h"
#include "borrowed_indices.cuh"
#include "byte_scatter.cuh"
#include "radix_control.cuh"

namespace gpusort {
namespace {

template <class Key>
struct LowByteArguments {
  ByteSortArguments bytes;
  PassArguments<Key> keys;
};

template <class Key>
__global__ void __launch_bounds__(kByteSortThreads, kByteSortBlocksPerSm)
    scatter_low_bytes_kernel(const __grid_constant__ LowByteArguments<Key> arguments) {
  start_after_predecessor();
  extern __shared__ __align__(16) uint8_t memory[];
  const PassArguments<Key>& keys = arguments.keys;
  if (!sorted_by_low_bytes(keys.control, keys.spacing)) return;
  WideKeys<Key> wide;
  wide.flip = keys.codec.flip;
  wide.high = (keys.keys_in[0] ^ wide.flip) & ~Key{0xff};
  wide.keys_out = keys.keys_out;
  wide.borrowed_begin = borrowed_begin_in_row(keys, 0);
  ScatterBlock<int64_t, kMostByteSortRounds / 4, 0, Key>(arguments.bytes, shared_address(memory), wide).run();
}

}  // namespace

template <class Key>
cudaError_t launch_low_bytes(const PassArguments<Key>& keys, const RadixPlan& plan, cudaStream_t stream) {
  const ByteSortPlan& tiles = plan.low_bytes;
  LowByteArguments<Key> arguments;
  arguments.keys = keys;
  ByteSortArguments& bytes = arguments.bytes;
  bytes.order = make_key_order<uint8_t>(KeyKind::kUnsigned, false, 0);
  bytes.keys_in = keys.low_bytes.bytes;
  bytes.indices_out = keys.indices_out;
  bytes.length = keys.length;
  bytes.rounds = static_cast<uint32_t>(tiles.rounds);
  bytes.halo_warps = static_cast<uint32_t>(tiles.halo_warps);
  bytes.tile_items = static_cast<uint32_t>(tiles.tile_items);
  bytes.tiles = static_cast<uint32_t>(tiles.tiles);
  bytes.tiles_per_group = static_cast<uint32_t>(tiles.tiles_per_group);
  bytes.groups = static_cast<uint32_t>(tiles.groups);
  bytes.tile_tables = keys.low_bytes.tile_tables;
  bytes.group_tables = keys.low_bytes.group_tables;
  bytes.bins = keys.low_bytes.bins;
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(scatter_low_bytes_kernel<Key>, byte_sort_shared_bytes(kMostByteSortRounds), prepared);
  if (error != cudaSuccess) return error;
  const LaunchShape shape = {bytes.groups, kByteSortThreads, byte_sort_shared_bytes(tiles.rounds), keys.dependent_launch()};
  return launch_after_predecessor<scatter_low_bytes_kernel<Key>>(arguments, shape, stream);
}

template cudaError_t launch_low_bytes(const PassArguments<uint32_t>&, const RadixPlan&, cudaStream_t);
template cudaError_t launch_low_bytes(const PassArguments<uint64_t>&, const RadixPlan&, cudaStream_t);

}  // namespace gpusort
