// Sorts a bucket in which values are found often, by counting its keys group by group, stably (counting sort; Seward 1954).
//
// A group is one value when the bucket has few possible ones. Else samples of the bucket are splitters, as in the partition before it
// (Leischner, Osipov, Sanders, "GPU sample sort", 2010): the keys that equal a splitter are one group, those between two splitters another.
// A value that is found often is a splitter almost surely, so its keys are in order once they are counted; whatever else there is is
// divided into groups small enough for ranking, however it is spread over the range.
//   count    a warp takes a stretch of neighbours, 32 keys at a time: ballots tell which lanes hold the same group, so every key gets its
//            number among those of the warp and group. The counts lie group by group, and warp by warp within a group, so one exclusive
//            scan gives each warp the place of its first key of each group
//   scatter  each (key, index) to its place: groups rise, and those of one group are in the order of their indices
//   write    keys that equal a splitter from where they are, each other one to its rank among its group
// A bucket with a group between splitters of more than kMostRanked keys is not sorted: the samples have missed what it holds.
#pragma once

#include <cstdint>

#include "../../core/flat_order.h"
#include "../../core/word_map.h"
#include "bucket_block.cuh"
#include "bucket_records.cuh"
#include "splitter_tree.cuh"

namespace gpusort {

constexpr int kMostCrowdLevels = 8;          // of the tree of splitters: 255 of them
constexpr uint32_t kMostRanked = 512;        // keys of a group; ranking is quadratic in it
constexpr uint32_t kRankedIndex = 1u << 31;  // in the index of a record that stands between splitters; indices are below it

template <class Word>
struct CrowdSplitters {
  Word tree[1 << kMostCrowdLevels];    // at first: the samples
  Word sorted[1 << kMostCrowdLevels];  // from 1 on; 0 is as 1
};

template <class U, int kThreads, int kItems>
struct BucketCrowds {
  using Record = typename BucketRecords<U>::Record;
  using Flat = typename BucketRecords<U>::Flat;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kTogether = 4;  // keys loaded, looked up and numbered at a time
  static_assert(kItems % kTogether == 0, "");

  const BucketSpan<U>& bucket;
  const FlatOrder<U>& order;
  const BucketRecords<U>& records;
  const uint32_t counters;  // shared address of as many as 2^(levels + 1) to a warp, zero
  const bool flat;          // flat forms are in order, so they do; else codes
  const Flat lowest;        // flat form, or code
  const int levels;         // of the tree of splitters; 0: each value is a group
  CrowdSplitters<Flat>& splitters;

  // What is compared.
  __device__ __forceinline__ Flat word(Flat flat_form) const {
    return flat ? flat_form : static_cast<Flat>(bucket.arguments.order.code(order.bits(static_cast<U>(flat_form))));
  }

  __device__ __forceinline__ bool below(const Record& one, const Record& other) const {
    if (flat) return one < other;
    const Flat a = word(one.key), b = word(other.key);
    return one.index != kPadIndex && (a == b ? one.index < other.index : a < b);  // the word of a pad may be any
  }

  // The splitters are keys from places spread over the bucket, about evenly, but not so evenly that a period of the data could meet it.
  __device__ __forceinline__ void choose_splitters() const {
    const uint32_t count = (1u << levels) - 1, width = bucket.size >> levels;
    for (uint32_t i = threadIdx.x; i <= count; i += kThreads) {
      const uint32_t slot = (i * bucket.size >> levels) + __umulhi(i * 0x9e3779b1u, width);
      splitters.tree[i] = i < count ? word(static_cast<Flat>(order.flat(bucket.keys()[slot]))) : static_cast<Flat>(~Flat{0});
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
      const Flat own = splitters.tree[i];
      uint32_t rank = 0;
#pragma unroll 8
      for (uint32_t k = 0; k <= count; ++k) {
        const Flat other = splitters.tree[k];
        rank += other < own || (other == own && k < i) ? 1 : 0;
      }
      splitters.sorted[rank + 1] = own;
      if (rank == 0) splitters.sorted[0] = own;
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x + 1; k <= count; k += kThreads) {
      const int height = __ffs(static_cast<int>(k)) - 1;
      splitters.tree[(1u << (levels - 1 - height)) + (k >> (height + 1))] = splitters.sorted[k];
    }
    __syncthreads();
  }

  // Group 2s: between splitters s and s + 1, counted from 1. Group 2s - 1: splitter s.
  __device__ __forceinline__ void find_groups(const Flat (&words)[kTogether], uint32_t (&groups)[kTogether]) const {
    if (levels == 0) {
#pragma unroll
      for (int k = 0; k < kTogether; ++k) groups[k] = static_cast<uint32_t>(words[k] - lowest);
      return;
    }
    find_leaves(splitters.tree, levels, words, groups);
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const uint32_t before = groups[k] - (1u << levels);
      groups[k] = 2 * before - (splitters.sorted[before] == words[k] ? 1 : 0);
    }
  }

  __device__ __forceinline__ uint32_t rounds() const {
    return (bucket.size + kThreads - 1) / kThreads;
  }
  __device__ __forceinline__ uint32_t own_slot() const {
    return threadIdx.x / 32 * rounds() * 32 + threadIdx.x % 32;
  }
  __device__ __forceinline__ uint32_t own_counter(uint32_t group) const {
    return counters + (group * kWarps + threadIdx.x / 32) * 4;
  }

  // Marks the lanes that hold the same group, of those in `peers`. Only bits in which groups differ are voted on: few where keys repeat,
  // none within a run.
  __device__ __forceinline__ void find_peers(const uint32_t (&groups)[kTogether], uint32_t (&peers)[kTogether]) const {
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      uint32_t differing = __reduce_or_sync(~0u, groups[k]) & ~__reduce_and_sync(~0u, groups[k]);
#pragma unroll 1
      for (; differing != 0; differing &= differing - 1) {
        const bool set = (groups[k] & differing & (0u - differing)) != 0;
        const uint32_t votes = __ballot_sync(~0u, set);
        peers[k] &= set ? votes : ~votes;
      }
    }
  }

  // found: group << 16 | number in the warp's part of the group.
  __device__ __forceinline__ void count(uint32_t (&found)[kItems]) const {
    const U* const keys = bucket.keys();
    const uint32_t used = rounds(), own = own_slot(), lanes_before = (1u << threadIdx.x % 32) - 1;
#pragma unroll
    for (int first = 0; first < kItems; first += kTogether) {
      if (first < used) {
        Flat words[kTogether];
        uint32_t groups[kTogether], peers[kTogether];
        U key[kTogether];
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          const uint32_t slot = own + (first + k) * 32;
          const bool valid = first + k < used && slot < bucket.size;
          key[k] = keys[valid ? slot : 0];
          peers[k] = __ballot_sync(~0u, valid);
        }
#pragma unroll
        for (int k = 0; k < kTogether; ++k) words[k] = word(static_cast<Flat>(order.flat(key[k])));
        find_groups(words, groups);
        find_peers(groups, peers);
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          const uint32_t counter = own_counter(groups[k]), before = load_shared(counter), peers_before = __popc(peers[k] & lanes_before);
          __syncwarp();
          if (peers_before == 0 && own + (first + k) * 32 < bucket.size && first + k < used)
            store_shared(counter, before + __popc(peers[k]));
          __syncwarp();
          found[first + k] = groups[k] << 16 | (before + peers_before);
        }
      }
    }
  }

  // The counts have become begins. Is a group between splitters too large to be ranked, as far as this thread looks?
  __device__ __forceinline__ bool finds_large_group() const {
    if (levels == 0) return false;
    bool large = false;
    for (uint32_t before = threadIdx.x; before < 1u << levels; before += kThreads) {
      const uint2 group = bounds_between(before);
      large |= group.y - group.x > kMostRanked;
    }
    return large;
  }

  // x: begin, y: end of the group that has `before` splitters before it.
  __device__ __forceinline__ uint2 bounds_between(uint32_t before) const {
    const uint32_t begin = counters + 2 * before * kWarps * 4;
    return make_uint2(load_shared(begin), load_shared(begin + kWarps * 4));
  }

  __device__ __forceinline__ void scatter(const uint32_t (&found)[kItems]) const {
    const U* const keys = bucket.keys();
    const uint32_t* const indices = bucket.indices();
    const uint32_t used = rounds(), own = own_slot();
#pragma unroll
    for (int first = 0; first < kItems; first += kTogether) {
      if (first < used) {
        U key[kTogether];
        uint32_t index[kTogether];
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          const uint32_t slot = own + (first + k) * 32;
          if (first + k < used && slot < bucket.size) {
            key[k] = keys[slot];
            index[k] = indices ? indices[slot] : slot;
          }
        }
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          if (first + k < used && own + (first + k) * 32 < bucket.size) {
            const uint32_t group = found[first + k] >> 16;
            const bool between = levels != 0 && group % 2 == 0;
            records.set(load_shared(own_counter(group)) + (found[first + k] & 0xffff),
                        Record{static_cast<Flat>(order.flat(key[k])), index[k] | (between ? kRankedIndex : 0)});
          }
        }
      }
    }
    __syncthreads();
  }

  // Of the records of its group, which other records follow in rising groups.
  __device__ __forceinline__ uint32_t rank_of(const Record& mine) const {
    const Flat words[1] = {word(mine.key)};
    uint32_t leaf[1];
    find_leaves(splitters.tree, levels, words, leaf);
    const uint2 group = bounds_between(leaf[0] - (1u << levels));
    uint32_t rank = group.x;
#pragma unroll 1
    for (uint32_t other = group.x; other < group.y; other += 2) {
      const Record one = records.get(other), two = records.get(other + 1);
      rank += below(one, mine);
      rank += below(two, mine);
    }
    return rank;
  }

  __device__ __forceinline__ void write() const {
    const BucketOutput<U> output(bucket);
#pragma unroll 2
    for (uint32_t place = threadIdx.x; place < bucket.size; place += kThreads) {
      const Record record = records.get(place);
      const uint32_t rank = (record.index & kRankedIndex) != 0 ? rank_of(record) : place;
      output.store(rank, order.bits(static_cast<U>(record.key)), record.index & ~kRankedIndex);
    }
  }
};

}  // namespace gpusort
