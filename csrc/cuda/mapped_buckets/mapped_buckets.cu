// Sample sort by a map instead of splitters, in two partitions, for rows too long for one.
//
//   map       sample_map.cuh      samples; no pass over the keys
//   (radix)   radix/              sorts what the samples speak against; its kernels leave at once otherwise
//   spread    spread.cuh          reads the keys, writes records of key and index to the regions
//   order     order_parts.cuh     reads those, writes them ordered by part
//   buckets   mapped_bucket.cuh   reads those, writes the results in place
//   rest      listed_words.cuh
//
// Exact and stable for every input: regions and parts rise with the code, whatever the map is, and a bucket is sorted by code and index.
// The traffic is 4 + 8 + 8 + 8 + 8 + 12 = 48 bytes an element, against 68 of four radix passes, and only the spread scatters. Sources:
// Leischner, Osipov, Sanders, "GPU sample sort" (2010); Stehle, Jacobsen, "A memory bandwidth-efficient hybrid radix sort on GPUs" (2017),
// for most significant digits first and buckets on chip.
#include "mapped_buckets.h"

#include <algorithm>
#include <atomic>

#include "../bucket_sort/sample_seed.h"
#include "../primitives/kernel_setup.h"
#include "../radix/radix_sort.h"
#include "listed_words.cuh"

namespace gpusort {
namespace {

constexpr int kClearBlocks = 64;

template <auto kKernel, bool kEarly = true>
cudaError_t launch(int64_t blocks, int threads, int shared_bytes, const MappedArguments& arguments, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(kKernel, shared_bytes, prepared);
  if (error != cudaSuccess) return error;
  return launch_after_predecessor<kKernel>(arguments, {static_cast<unsigned>(blocks), threads, shared_bytes, kEarly}, stream);
}

}  // namespace

cudaError_t launch_mapped_buckets(const SortProblem& problem, const MappedBucketsPlan& plan, void* workspace, cudaStream_t stream) {
  using namespace mapped_shapes;
  if (!plan.possible) return cudaErrorInvalidValue;
  if (!waits_on_current_device<order_parts_kernel>()) {  // nor can it copy in bulk
    RadixPlan alone = plan.radix;
    alone.cleared_before = false;
    return launch_radix_sort(problem, alone, workspace, stream);
  }
  const MappedArguments arguments = make_mapped_arguments(problem, plan, workspace, fresh_sample_seed());
  const int64_t rows = problem.rows, sms = plan.device.sm_count;
  cudaError_t error = launch<clear_tables_kernel, false>(kClearBlocks, kSampleThreads, 0, arguments, stream);
  const auto then = [&](auto run) {
    if (error == cudaSuccess) error = run();
  };
  const int64_t sample_blocks = (rows << plan.sample_bits) / kBlockSamples, map_blocks = std::max<int64_t>(128 / rows, 1) * rows;
  const int64_t judges = (rows << plan.tested_bits) / kJudgedBins;
  then([&] { return launch<sample_cells_kernel>(sample_blocks, kSampleThreads, 0, arguments, stream); });
  then([&] { return launch<make_map_kernel>(map_blocks, kMapThreads, 0, arguments, stream); });
  then([&] { return launch<judge_map_kernel>(judges, kMapThreads, 0, arguments, stream); });
  then([&] { return launch_radix_sort(problem, plan.radix, workspace, stream); });
  constexpr int kBucketBytes = BucketSequence::Rows::kStorageBytes + kStorageSlack;
  then([&] { return launch<spread_kernel>(kBlocksPerSm * sms, kThreads, sizeof(SpreadShared), arguments, stream); });
  then([&] { return launch<order_parts_kernel>(sms, kOrderThreads, sizeof(OrderShared), arguments, stream); });
  then([&] { return launch<mapped_buckets_kernel>(plan.bucket_blocks(rows), kBucket.threads, kBucketBytes, arguments, stream); });
  then([&] { return launch<listed_words_kernel>(sms, kListedThreads, kListedSharedBytes, arguments, stream); });
  return error;
}

}  // namespace gpusort
