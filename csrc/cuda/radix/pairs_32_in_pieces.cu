// Radix passes over 32-bit keys with their indices, which write or read a record buffer in pieces (record_places.cuh). A last slot does
// neither.
#include "pass_launch.cuh"

namespace gpusort {
namespace {

// Two first slots, of which one leaves: both forms in one kernel took 6 us more, at any length (H200).
template <TileClass kClass>
cudaError_t launch(PassKind kind, const PassArguments<uint32_t>& arguments, int grid, cudaStream_t stream) {
  if (kind == PassKind::kMiddle) return launch_one_by_one<PolicyInPieces<PassKind::kMiddle, kClass>>(arguments, grid, stream);
  if (kind != PassKind::kFirst) return cudaErrorInvalidValue;
  const cudaError_t error = launch_policy<PolicyInPieces<PassKind::kFirst, kClass, 0>>(arguments, grid, stream);
  return error != cudaSuccess ? error : launch_policy<PolicyInPieces<PassKind::kFirst, kClass, 1>>(arguments, grid, stream);
}

}  // namespace

cudaError_t launch_pass_in_pieces(PassKind kind, TileClass tile_class, const PassArguments<uint32_t>& arguments, int grid,
                                  cudaStream_t stream) {
  PassArguments<uint32_t> in_pieces = arguments;
  const int tile_items = radix_tile_shape(4, true, tile_class, kind).tile_items();
  for (int i = 0; i < 2; ++i) in_pieces.piece_tiles[i] = piece_tiles(arguments.pieces.begin[i], arguments.length, tile_items);
  return tile_class == TileClass::kMedium ? launch<TileClass::kMedium>(kind, in_pieces, grid, stream)
                                          : launch<TileClass::kLarge>(kind, in_pieces, grid, stream);
}

}  // namespace gpusort
