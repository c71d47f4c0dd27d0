// Which plan the sort by buckets follows. Pure.
//
// The partition in one launch, where its blocks can be resident all at once, reads the keys once and waits inside. Buckets that pull their
// keys from ordered tiles need no partition, but keys and 64-bit indices as results. The partition in several launches does without
// either; it reads the keys twice, and scatters them. The longest rows of 32-bit keys are cut twice, by a map of their codes.
#pragma once

#include <variant>

#include "bucket_sort_plan.h"
#include "mapped_buckets_plan.h"
#include "one_launch_plan.h"
#include "pulled_buckets_plan.h"
#include "sort_problem.h"

namespace gpusort {

using BucketLaunches = std::variant<OneLaunchPlan, PulledBucketsPlan, BucketSortPlan, MappedBucketsPlan>;

// Up to this many keys one launch is ahead of buckets that pull them. H200, float32 with index: [1, 2^19] 30.9 us (35.7), [1, 2^20] 39.1
// (36.8), [8, 128256] 32.1 (28.8), [32, 32000] 30.7 (27.0), [1, 2^21] 74 (56); int64 [1, 2^19] 43 (47), [1, 2^20] 60.2 (61.1, and 10.3
// bytes of workspace an element instead of 12.0).
constexpr int64_t kOneLaunchMaxNumel = int64_t{3} << 18;

// For a problem that bucket_sort_can_run() takes.
inline BucketLaunches plan_bucket_launches(const SortProblem& problem, const DeviceTraits& traits) {
  const MappedBucketsPlan mapped = plan_mapped_buckets(problem, traits);
  if (mapped.possible) return mapped;
  const OneLaunchPlan one = plan_one_launch(problem, traits);
  const PulledBucketsPlan pulled = plan_pulled_buckets(problem, traits);
  if (one.possible && (!pulled.possible || problem.numel() <= kOneLaunchMaxNumel)) return one;
  if (pulled.possible) return pulled;
  return plan_bucket_sort(problem, traits);
}

}  // namespace gpusort
