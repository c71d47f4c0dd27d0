// What the kernels of the mapped buckets are given.
//
// Records are (index, key): 27 bits of index, and the key's own bits. In the workspace, where tiles are ordered, the upper five bits of the
// index words hold what blocks need to know while the outputs, where the tables lay, are written:
//
//   bit 27      of the first records of the workspace: 32 of them are a word. Where each region begins, then kAccepted
//   bits 28-31  of a tile's first records: four of them are where a part begins in the tile. In a region's first tile those behind say
//               which buckets are left to listed_words.cuh
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "../../core/key_codec.h"
#include "../../plan/mapped_buckets_plan.h"
#include "../bucket_sort/bucket_arguments.h"

namespace gpusort {

constexpr uint32_t kIndexMask = (1u << mapped_shapes::kIndexBits) - 1;
constexpr int kPlaceShift = 28;             // of the four bits
constexpr uint32_t kLeftBucket = 15;        // in them
constexpr uint32_t kAccepted = 0x9e3779b9;  // the device has decided for this sort
constexpr uint32_t kLeastRegion = 4096;     // records; smaller ones have no table, and are one bucket

// Zeroed before the first kernel.
struct MappedControl {
  uint32_t next_chunk;
  uint32_t judges;     // blocks that have reported
  uint32_t alike;      // samples that equal the next key of the row
  uint32_t falls;      // that are above it
  uint32_t rises;      // that are below it
  uint32_t most;       // samples in a bin
  uint32_t dense;      // cells with too many keys to a code
  uint32_t too_large;  // buckets of more samples than twice the mean
};

struct MappedArguments {
  KeyOrder<uint32_t> order;
  KeyCodec<uint32_t> codec;
  BucketArguments<uint32_t> buckets;  // only outputs and order
  const uint32_t* keys_in = nullptr;
  uint2* chunks[2] = {nullptr, nullptr};  // in the index output, in the key output
  uint32_t first_records = 0;             // of the chunks in the index output
  uint2* ordered = nullptr;               // [row][length], the workspace
  uint32_t* cells = nullptr;
  uint32_t* claims = nullptr;
  unsigned long long* pairs = nullptr;
  MappedControl* control = nullptr;
  uint32_t* bins = nullptr;
  uint32_t* chunk_of = nullptr;
  uint32_t* map = nullptr;
  uint32_t* samples = nullptr;
  uint32_t* radix_tables = nullptr;  // of the radix sort
  uint32_t radix_words = 0;          // of them, and of the tables from `cells` on: those that are zeroed
  uint32_t zeroed_words = 0;
  uint32_t chunks_per_region = 0;
  uint32_t length = 0;
  uint32_t rows = 0;
  uint32_t tiles_per_row = 0;
  uint32_t seed = 0;
  int region_bits = 0, part_bits = 0, sample_bits = 0, tested_bits = 0, chunk_bits = 0;

  GPUSORT_HD uint32_t regions() const { return rows << region_bits; }
};

inline MappedArguments make_mapped_arguments(const SortProblem& problem, const MappedBucketsPlan& plan, void* workspace, uint32_t seed) {
  char* const tables = static_cast<char*>(problem.keys_out);
  const auto words = [&](int64_t offset) { return reinterpret_cast<uint32_t*>(tables + offset); };
  MappedArguments arguments;
  arguments.order = problem.key.order<uint32_t>(problem.descending);
  arguments.codec = make_key_codec(arguments.order);
  arguments.buckets = make_bucket_arguments<uint32_t>(problem);
  arguments.buckets.buckets_per_row = 1 << (plan.region_bits + plan.part_bits);
  arguments.buckets.bucket_capacity = mapped_shapes::kBucket.threads * mapped_shapes::kBucket.items;
  arguments.keys_in = static_cast<const uint32_t*>(problem.keys_in);
  arguments.chunks[0] = static_cast<uint2*>(problem.indices_out);
  arguments.chunks[1] = static_cast<uint2*>(problem.keys_out);
  arguments.first_records = static_cast<uint32_t>(plan.first_chunks << plan.chunk_bits);
  arguments.ordered = static_cast<uint2*>(workspace);
  arguments.cells = words(plan.cells_offset);
  arguments.claims = words(plan.claims_offset);
  arguments.pairs = reinterpret_cast<unsigned long long*>(tables + plan.pairs_offset);
  arguments.control = reinterpret_cast<MappedControl*>(tables + plan.control_offset);
  arguments.bins = words(plan.bins_offset);
  arguments.chunk_of = words(plan.chunk_offset);
  arguments.map = words(plan.map_offset);
  arguments.samples = words(plan.samples_offset);
  arguments.radix_tables = words(plan.radix.lent_offset);
  arguments.radix_words = static_cast<uint32_t>(plan.radix.cleared_bytes / 4);
  arguments.zeroed_words = static_cast<uint32_t>(plan.zeroed_bytes / 4);
  arguments.chunks_per_region = static_cast<uint32_t>(plan.chunks_per_region);
  arguments.length = static_cast<uint32_t>(problem.length);
  arguments.rows = static_cast<uint32_t>(problem.rows);
  arguments.tiles_per_row = static_cast<uint32_t>(plan.tiles_per_row);
  arguments.seed = seed;
  arguments.region_bits = plan.region_bits;
  arguments.part_bits = plan.part_bits;
  arguments.sample_bits = plan.sample_bits;
  arguments.tested_bits = plan.tested_bits;
  arguments.chunk_bits = plan.chunk_bits;
  return arguments;
}

}  // namespace gpusort
