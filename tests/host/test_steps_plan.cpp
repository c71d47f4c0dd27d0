// Host test of csrc/plan/steps_plan.h and of what the step kernels share with the host: workspace layouts, the bound on a bucket of the
// sample sort on adversarial data, the flip form of the bitonic network at every length, and keys from their codes.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "../../csrc/cuda/bitonic/code_position.h"
#include "../../csrc/plan/steps_plan.h"
#include "check.h"

using namespace gpusort;

static char some_memory[16];

static SortProblem make_problem(int bytes, int64_t rows, int64_t length, bool with_indices) {
  SortProblem problem;
  problem.key.bytes = bytes;
  problem.rows = rows;
  problem.length = length;
  problem.end_bit = bytes * 8;
  problem.keys_in = some_memory;
  problem.keys_out = some_memory;
  problem.indices_out = with_indices ? some_memory : nullptr;
  return problem;
}

struct Slice {
  int64_t begin;
  int64_t bytes;
};

// Slices are 256-byte aligned, lie inside the workspace and do not overlap.
static bool slices_are_apart(std::vector<Slice> slices, int64_t workspace_bytes) {
  std::sort(slices.begin(), slices.end(),
            [](const Slice& a, const Slice& b) { return a.begin < b.begin || (a.begin == b.begin && a.bytes < b.bytes); });
  int64_t end = 0;
  for (const Slice& slice : slices) {
    if (slice.bytes == 0) continue;
    if (slice.begin % 256 != 0 || slice.begin < end) return false;
    end = slice.begin + slice.bytes;
  }
  return end <= workspace_bytes;
}

static void test_radix_plans() {
  for (int bytes : {1, 2, 4, 8}) {
    for (int64_t length : {int64_t{1}, int64_t{255}, int64_t{4096}, int64_t{4097}, int64_t{1} << 20, (int64_t{1} << 32) + 1}) {
      for (int64_t rows : {int64_t{1}, int64_t{3}}) {
        for (bool with_indices : {false, true}) {
          const SortProblem problem = make_problem(bytes, rows, length, with_indices);
          const int64_t keys = rows * length;
          for (int digit_bits : {0, 1, 2, 4, 8}) {  // 0: R1
            for (int keys_per_thread : {1, 4, 8, 16}) {
              const RadixStepsPlan plan =
                  digit_bits == 0 ? plan_radix_scan_scatter(problem) : plan_radix_block(problem, digit_bits, keys_per_thread);
              const int bits = digit_bits == 0 ? 1 : digit_bits;
              CHECK(plan.passes * bits == bytes * 8);
              CHECK(plan.record_index_bytes == (!with_indices ? 0 : length <= (int64_t{1} << 32) ? 4 : 8));
              CHECK(plan.offset_bytes == (keys < (int64_t{1} << 32) ? 4 : 8));
              if (digit_bits != 0) {
                CHECK(plan.tile == 256 * keys_per_thread);
                CHECK(plan.tiles_per_row * plan.tile >= length && (plan.tiles_per_row - 1) * plan.tile < length);
                CHECK(plan.offset_count == (length <= plan.tile ? 0 : rows * plan.tiles_per_row * (1 << digit_bits)));
              } else {
                CHECK(plan.offset_count == keys + 1);
              }
              std::vector<Slice> slices;
              for (int buffer = 0; buffer < std::min(2, plan.passes - 1); ++buffer) {
                slices.push_back({plan.buffer_keys[buffer], keys * bytes});
                slices.push_back({plan.buffer_indices[buffer], keys * plan.record_index_bytes});
              }
              slices.push_back({plan.offsets, plan.offset_count * plan.offset_bytes});
              slices.push_back({plan.scan_totals, (plan.offset_count + kScanTile - 1) / kScanTile * plan.offset_bytes});
              CHECK(slices_are_apart(slices, plan.workspace_bytes));
            }
          }
        }
      }
    }
  }
  SortProblem part = make_problem(4, 1, 1000, true);
  part.begin_bit = 5;
  part.end_bit = 5;
  CHECK(plan_radix_block(part, 8).passes == 1);  // a stable copy
  part.end_bit = 14;
  CHECK(plan_radix_block(part, 8).passes == 2);
  CHECK(plan_radix_block(part, 4).passes == 3);
  CHECK(plan_radix_scan_scatter(part).passes == 9);
}

static void test_sample_plans() {
  std::mt19937_64 random(1);
  std::vector<int64_t> lengths = {1,
                                  2,
                                  4096,
                                  4097,
                                  8192,
                                  8193,
                                  16384,
                                  16385,
                                  1 << 17,
                                  (1 << 17) + 1,
                                  1 << 20,
                                  (1 << 20) - 1,
                                  (1 << 20) + 1,
                                  1 << 22,
                                  1 << 26,
                                  (int64_t{1} << 31) + 7,
                                  int64_t{1} << 32,
                                  (int64_t{1} << 34) + 3};
  for (int i = 0; i < 2000; ++i) lengths.push_back(1 + static_cast<int64_t>(random() >> (30 + random() % 30)));
  for (int64_t length : lengths) {
    for (int bytes : {1, 4, 8}) {
      const SortProblem problem = make_problem(bytes, 2, length, true);
      const SamplePlan plan = plan_sample_sort(problem);
      CHECK(plan.packed == (bytes <= 4 && length < (int64_t{1} << 32)));
      CHECK(plan.tile == (plan.packed ? 8192 : 4096));
      int64_t bound = length;
      int64_t segments = 2;
      std::vector<Slice> slices;
      bool sound = true;
      for (const SampleLevel& level : plan.levels) {
        sound = sound && bound > plan.tile && level.segment_bound == bound && level.segments == segments;
        sound = sound && level.buckets >= 2 && level.buckets <= 256 && level.sample_gap * level.buckets == plan.tile;
        sound = sound && level.tiles_per_segment == (bound + plan.tile - 1) / plan.tile;
        sound = sound && level.bucket_bound < bound;
        segments *= level.buckets;
        bound = level.bucket_bound;
        slices.push_back({level.starts, (segments + 1) * 8});
      }
      CHECK(sound);
      CHECK(bound <= plan.tile);
      CHECK(plan.levels.size() <= 4);
      if (plan.levels.empty()) continue;
      const int64_t pair_bytes = plan.packed ? 8 : 16;
      int64_t most = 0;
      for (const SampleLevel& level : plan.levels) most = std::max(most, level.segments * level.buckets * level.tiles_per_segment);
      for (int64_t pairs : plan.pairs) slices.push_back({pairs, 2 * length * pair_bytes});
      slices.push_back({plan.samples, most * pair_bytes});
      slices.push_back({plan.counts, most * 8});
      slices.push_back({plan.scan_totals, (most + kScanTile - 1) / kScanTile * 8});
      CHECK(slices_are_apart(slices, plan.workspace_bytes));
    }
  }
  CHECK(plan_sample_sort(make_problem(4, 1, 8192, true)).levels.empty());
  CHECK(plan_sample_sort(make_problem(4, 1, 1 << 20, true)).levels.size() == 1);
  CHECK(plan_sample_sort(make_problem(4, 1, 1 << 26, true)).levels.size() == 2);
}

// Regular sampling on any data keeps every bucket within the bound of the plan: tiles of `tile`, `buckets` samples each, as the kernels do.
static int64_t largest_bucket(const std::vector<uint32_t>& words, int64_t tile, int buckets) {
  const int64_t gap = tile / buckets;
  const int64_t length = static_cast<int64_t>(words.size());
  std::vector<uint32_t> samples;
  for (int64_t begin = 0; begin < length; begin += tile) {
    std::vector<uint32_t> sorted(words.begin() + begin, words.begin() + std::min(length, begin + tile));
    std::sort(sorted.begin(), sorted.end());
    for (size_t place = gap - 1; place < sorted.size(); place += gap) samples.push_back(sorted[place]);
  }
  std::sort(samples.begin(), samples.end());
  std::vector<uint32_t> splitters;
  for (int bucket = 1; bucket < buckets; ++bucket) splitters.push_back(samples[bucket * samples.size() / buckets]);
  std::vector<int64_t> sizes(buckets, 0);
  for (uint32_t word : words) ++sizes[std::upper_bound(splitters.begin(), splitters.end(), word) - splitters.begin()];
  return *std::max_element(sizes.begin(), sizes.end());
}

static void test_bucket_bound() {
  std::mt19937 random(2);
  const int64_t tile = 256;
  bool bound_is_near = false;
  for (int64_t length : {257, 500, 512, 1000, 4096, 10000, 20001}) {
    for (int buckets : {2, 4, 16, 64, 256}) {
      const int64_t tiles = (length + tile - 1) / tile;
      const int64_t bound = sample_bucket_bound(length, tiles, buckets, tile / buckets);
      for (int shape = 0; shape < 5; ++shape) {
        std::vector<uint32_t> words(length);  // distinct, as (code, position) pairs are
        for (int64_t i = 0; i < length; ++i) words[i] = static_cast<uint32_t>(i);
        if (shape == 1) std::reverse(words.begin(), words.end());
        if (shape == 2) std::shuffle(words.begin(), words.end(), random);
        if (shape == 3) {  // tiles interleave: every tile has the same distribution
          for (int64_t i = 0; i < length; ++i) words[i] = static_cast<uint32_t>((i % tile) * tiles + i / tile);
        }
        if (shape == 4) {  // each tile gathers just short of one gap below all samples of the others
          const int64_t gap = tile / buckets;
          for (int64_t i = 0; i < length; ++i) words[i] = static_cast<uint32_t>(i % tile < gap - 1 ? i : 1000000 + i);
        }
        const int64_t largest = largest_bucket(words, tile, buckets);
        CHECK(largest <= bound);
        bound_is_near = bound_is_near || (bound < length && largest * 10 > bound * 8);
      }
    }
  }
  CHECK(bound_is_near);  // else the bound would prove little
}

// The network of bitonic_network.cuh on a row without stored padding, comparators written down from the definition.
static void bitonic_sort_any_length(std::vector<uint64_t>& row) {
  const int64_t length = static_cast<int64_t>(row.size());
  auto compare = [&](int64_t lower, int64_t upper) {
    if (upper < length && row[upper] < row[lower]) std::swap(row[lower], row[upper]);
  };
  for (int64_t span = 2; span < 2 * length; span *= 2) {
    for (int64_t i = 0; i < length; ++i) {
      if ((i & (span / 2)) == 0) compare(i, i ^ (span - 1));
    }
    for (int64_t distance = span / 4; distance > 0; distance /= 2) {
      for (int64_t i = 0; i < length; ++i) {
        if ((i & distance) == 0) compare(i, i + distance);
      }
    }
  }
}

static void test_network() {
  std::mt19937_64 random(3);
  for (int64_t length = 1; length <= 300; ++length) {
    std::vector<uint64_t> row(length);
    for (uint64_t& word : row) word = random() % 64;
    std::vector<uint64_t> expected = row;
    std::sort(expected.begin(), expected.end());
    bitonic_sort_any_length(row);
    CHECK(row == expected);
  }
  for (int length = 1; length <= 13; ++length) {  // the zero-one principle: all inputs of zeros and ones prove the network
    bool sorted = true;
    for (int bits = 0; bits < 1 << length; ++bits) {
      std::vector<uint64_t> row(length);
      for (int i = 0; i < length; ++i) row[i] = bits >> i & 1;
      bitonic_sort_any_length(row);
      sorted = sorted && std::is_sorted(row.begin(), row.end());
    }
    CHECK(sorted);
  }
}

template <class U>
static void test_keys_of_codes(KeyKind kind, uint64_t infinity) {
  for (bool descending : {false, true}) {
    const KeyOrder<U> order = make_key_order<U>(kind, descending, static_cast<U>(infinity));
    bool right = true;
    int fetched = 0;
    for (uint32_t bits = 0; bits < (1u << (8 * sizeof(U))); ++bits) {
      const U input[2] = {0, static_cast<U>(bits)};
      const U wrong[2] = {0, static_cast<U>(~bits)};
      right = right && key_of_code<U>(order, order.code(input[1]), input, 1) == input[1];
      if (key_of_code<U>(order, order.code(input[1]), wrong, 1) != input[1]) ++fetched;
    }
    CHECK(right);
    // Only NaNs, zeros, Trues and the largest integer are read from the input.
    if (kind == KeyKind::kUnsigned || kind == KeyKind::kSigned) CHECK(fetched == 1);
    if (kind == KeyKind::kFloat && sizeof(U) == 2) CHECK(fetched < 1 << 12);
  }
}

static void test_pairs() {
  CHECK(PackedPair::make(3, 5).code() == 3 && PackedPair::make(3, 5).position() == 5);
  CHECK(PackedPair::make(0xffffffffu, 0xfffffffeu).less(PackedPair::last()));
  CHECK(PackedPair::make(1, 9).less(PackedPair::make(2, 0)) && PackedPair::make(1, 0).less(PackedPair::make(1, 1)));
  CHECK(!PackedPair::make(1, 1).less(PackedPair::make(1, 1)));
  CHECK(WidePair::make(~uint64_t{0}, 7).less(WidePair::last()));
  CHECK(WidePair::make(1, 9).less(WidePair::make(2, 0)) && WidePair::make(1, 0).less(WidePair::make(1, 1)));
  CHECK(!WidePair::make(1, 1).less(WidePair::make(1, 1)) && !WidePair::make(2, 0).less(WidePair::make(1, 9)));
  test_keys_of_codes<uint8_t>(KeyKind::kBool, 0);
  test_keys_of_codes<uint8_t>(KeyKind::kUnsigned, 0);
  test_keys_of_codes<uint8_t>(KeyKind::kSigned, 0);
  test_keys_of_codes<uint8_t>(KeyKind::kFloat, 0x7c);
  test_keys_of_codes<uint8_t>(KeyKind::kFloatNoInf, 0x7e);
  test_keys_of_codes<uint16_t>(KeyKind::kUnsigned, 0);
  test_keys_of_codes<uint16_t>(KeyKind::kSigned, 0);
  test_keys_of_codes<uint16_t>(KeyKind::kFloat, 0x7c00);
  test_keys_of_codes<uint16_t>(KeyKind::kFloat, 0x7f80);
}

static void test_bitonic_plans() {
  CHECK(plan_bitonic_sort(make_problem(4, 5, 8192, true)).workspace_bytes == 0);
  CHECK(plan_bitonic_sort(make_problem(4, 5, 8193, true)).workspace_bytes >= 5 * 8193 * 8);
  CHECK(plan_bitonic_sort(make_problem(8, 5, 4096, true)).workspace_bytes == 0);
  CHECK(plan_bitonic_sort(make_problem(8, 5, 4097, true)).workspace_bytes >= 5 * 4097 * 16);
  CHECK(!plan_bitonic_sort(make_problem(1, 1, int64_t{1} << 32, true)).packed);
}

int main() {
  test_radix_plans();
  test_bitonic_plans();
  test_sample_plans();
  test_bucket_bound();
  test_network();
  test_pairs();
  return report();
}
