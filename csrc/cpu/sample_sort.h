// Sample sort of distinct words, one row, all threads: buckets between splitters, each sorted alone.
//
// A sorted sample of the words gives the splitters; bucket b takes the words that b splitters are at most as large as. Every thread counts
// its slice's words by bucket, the counts are scanned bucket by bucket and slice by slice, and every thread moves its words; buckets are
// then merge sorted, one to a task. Words are distinct (they hold a position), so equal keys are split like all others. A sample that
// misleads makes buckets of unequal length and nothing worse. Cost: two reads and a write of the words, and the buckets' sorts in the
// cache. Source: Frazer and McKellar, "Samplesort" (1970).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "merge_sort.h"
#include "parallel.h"
#include "sort_method.h"

namespace gpusort::cpu {

constexpr int64_t kBucketWords = 1 << 13;  // wanted; a bucket and its scratch stay in the L2 cache
constexpr int64_t kMostBuckets = 1024;
constexpr int64_t kSamplesPerBucket = 16;  // the more, the more even the buckets

// The result lies where the returned pointer says, `words` or `scratch`.
template <class Word>
Word* sample_sort_words(Word* words, Word* scratch, int64_t size, const Parallel& parallel) {
  const int64_t buckets = std::min(size / kBucketWords, kMostBuckets);
  if (buckets < 2) return merge_sort_slice(words, scratch, size);

  std::vector<Word> sample(buckets * kSamplesPerBucket), splitters(buckets - 1);
  const int64_t samples = static_cast<int64_t>(sample.size());
  for (int64_t i = 0; i < samples; ++i) sample[i] = words[slice_of(size, samples, i).begin];
  std::sort(sample.begin(), sample.end());
  for (int64_t b = 1; b < buckets; ++b) splitters[b - 1] = sample[b * kSamplesPerBucket];
  const auto bucket_of = [&splitters](Word word) { return std::upper_bound(splitters.begin(), splitters.end(), word) - splitters.begin(); };

  const int64_t slices = slices_for(size, parallel.threads());
  std::vector<std::vector<int64_t>> places(slices, std::vector<int64_t>(buckets));
  parallel.for_each(slices, [&](int64_t s) {
    const Slice slice = slice_of(size, slices, s);
    for (int64_t i = slice.begin; i < slice.end; ++i) ++places[s][bucket_of(words[i])];
  });
  std::vector<int64_t> starts(buckets + 1, size);
  int64_t place = 0;
  for (int64_t b = 0; b < buckets; ++b) {
    starts[b] = place;
    for (int64_t s = 0; s < slices; ++s) {
      const int64_t count = places[s][b];
      places[s][b] = place;
      place += count;
    }
  }
  parallel.for_each(slices, [&](int64_t s) {
    const Slice slice = slice_of(size, slices, s);
    for (int64_t i = slice.begin; i < slice.end; ++i) scratch[places[s][bucket_of(words[i])]++] = words[i];
  });
  const Parallel team = slices == 1 ? Parallel::serial() : parallel;
  team.for_each(buckets, [&](int64_t b) {
    const int64_t length = starts[b + 1] - starts[b];
    const Word* sorted = merge_sort_slice(scratch + starts[b], words + starts[b], length);
    if (sorted != scratch + starts[b]) std::copy(sorted, sorted + length, scratch + starts[b]);
  });
  return scratch;
}

}  // namespace gpusort::cpu
