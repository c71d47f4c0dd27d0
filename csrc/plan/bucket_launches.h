// Which plan the sort by buckets follows: the partition in one launch where its blocks can be resident all at once, else in several. Pure.
//
// One launch reads the keys once and waits inside; several read them twice, and wait for each other at the cost of a launch each.
#pragma once

#include <variant>

#include "bucket_sort_plan.h"
#include "one_launch_plan.h"
#include "sort_problem.h"

namespace gpusort {

using BucketLaunches = std::variant<OneLaunchPlan, BucketSortPlan>;

// For a problem that bucket_sort_can_run() takes.
inline BucketLaunches plan_bucket_launches(const SortProblem& problem, const DeviceTraits& traits) {
  const OneLaunchPlan one = plan_one_launch(problem, traits);
  if (one.possible) return one;
  return plan_bucket_sort(problem, traits);
}

}  // namespace gpusort
