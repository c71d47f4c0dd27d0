// Sorts buckets that are pulled from ordered tiles, one to a block: by distribution, as bucket_rows.cuh, whose steps and invariants are
// these. Keys and indices of the bucket come together, and both stay in registers until they are in their bins.
//
// Two kinds of buckets are sorted in other ways there too: those of few runs of equal keys by their runs (bucket_runs.cuh), and those of
// few values by counting them (count_groups). Values are known by their distance to the lowest where the range is small, are looked for
// where neighbours are often alike, and are those of the bins that hold keys where one of these holds too many.
//
// A bucket that is left to bucket_exact.cuh or bucket_rest.cuh is put in a row for them: the keys where the result's will be, the indices
// in the second half of their part of the result.
#pragma once

#include <cstdint>

#include "../primitives/dependent_launch.cuh"
#include "bucket_maps.cuh"
#include "bucket_rows.cuh"
#include "bucket_runs.cuh"
#include "pulled_bucket.cuh"

namespace gpusort {

constexpr uint32_t kMostGroups = 126;         // values that are counted
constexpr int kMostFew = 10;                  // of them, where they are looked for
constexpr int kMostInRuns = 2;                // the same where most keys are like their neighbours, most often runs of many values
constexpr uint32_t kMostPulledPerValue = 24;  // keys to a value, if the bucket's range were full: bucket_exact.cuh would read them again
constexpr uint32_t kFewAlike = 10;            // at most, to a key that is like its neighbour, where it is worth while to look for values

// Keys and 64-bit indices, or keys alone.
template <class U, bool kIndexed>
struct PulledOutput {
  U* keys;
  int64_t* indices;

  __device__ __forceinline__ explicit PulledOutput(const BucketSpan<U>& bucket)
      : keys(bucket.arguments.keys_out + bucket.offset), indices(kIndexed ? bucket.arguments.indices_wide + bucket.offset : nullptr) {}

  __device__ __forceinline__ void store(uint32_t place, U key, uint32_t index) const {
    keys[place] = key;
    if constexpr (kIndexed) indices[place] = index;
  }
};

// For keys alone the slot stands for the index, since it tells equal keys apart as well.
template <class U, int kThreads, int kItems, bool kIndexed>
struct PulledRows : BucketRows<U, kThreads, kItems> {
  using Rows = BucketRows<U, kThreads, kItems>;
  using Flat = typename Rows::Flat;
  using Record = typename Rows::Record;
  using Rows::bin_bounds;
  using Rows::bins;
  using Rows::bucket;
  using Rows::counters;
  using Rows::for_each_item;
  using Rows::kWarps;
  using Rows::notes;
  using Rows::order;
  using Rows::records;
  using Rows::size;
  using Rows::thread;
  static constexpr int kLoads = 4;                     // sources read at a time
  static constexpr bool kCountsBins = sizeof(U) == 4;  // it would take registers that 64-bit keys need

  using Rows::Rows;

  __device__ __forceinline__ void pull(const PulledBucket<U, kThreads>& pulled, Flat (&held)[kItems], uint32_t (&indices)[kItems]) const {
    const U* const keys = pulled.keys();
    const uint16_t* const places = pulled.places();
#pragma unroll
    for (int first = 0; first < kItems; first += kLoads) {
      if (first * kThreads >= size) continue;
      uint32_t source[kLoads];
#pragma unroll
      for (int k = 0; k < kLoads; ++k) {
        const uint32_t slot = (first + k) * kThreads + thread;
        source[k] = load_shared(pulled.sources + (slot < size ? slot : 0) * 4);
      }
#pragma unroll
      for (int k = 0; k < kLoads; ++k) {
        const uint32_t begin = pulled.tile_begin(source[k]), at = begin + (source[k] & 0xffff);
        held[first + k] = keys[at];
        indices[first + k] = kIndexed ? begin + places[at] : (first + k) * kThreads + thread;
      }
    }
  }

  template <class Map>
  __device__ __forceinline__ bool distribute(const Flat (&held)[kItems], const uint32_t (&indices)[kItems], const Map& map) const {
    uint32_t numbers[kItems / 4];
    Rows::count(held, map, numbers);
    if (!Rows::scan(kMostInBin)) return false;
    Rows::set_pads();
    for_each_item([&](int e) {
      const uint32_t counter = counters + map.bin(held[e]) * 4;
      records.set(load_shared(counter) + (numbers[e / 4] >> (e % 4 * 8) & 0xff), Record{held[e], indices[e]});
    });
    __syncthreads();
    Rows::template rank_and_write<Rows::kRankTogether>(PulledOutput<U, kIndexed>(bucket), map, [&](const Record& record, uint32_t) {
      return bin_bounds(counters + map.bin(record.key) * 4);
    });
    return true;
  }

  // Counters of 16 bits. Of a group: one for each round and warp, and one more, so that those of a warp's groups lie in different banks.
  __device__ __forceinline__ uint32_t group_counters() const {
    return (size + kThreads - 1) / kThreads * kWarps + 1;
  }
  // They lie in the place of the bins' counters.
  __device__ __forceinline__ bool can_count(uint32_t groups) const {
    return groups <= kMostGroups && groups * group_counters() <= 2 * Rows::kCapacity;
  }

  // Counts, in the order of groups, rounds and warps, become places. `vectors` of eight counters to a thread.
  __device__ __forceinline__ void scan_groups(uint32_t vectors) const {
    __syncthreads();
    const uint32_t own = counters + thread * vectors * 16, lane = thread % 32, warp = thread / 32;
    uint32_t sum = 0;
    for (uint32_t v = 0; v < vectors; ++v) {
      uint4 pairs;
      load_shared(own + v * 16, pairs);
      const uint32_t both = pairs.x + pairs.y + pairs.z + pairs.w;  // no half overflows
      sum += (both & 0xffff) + (both >> 16);
    }
    const uint32_t inclusive = warp_inclusive_scan(sum);
    if (lane == 31) notes.totals[warp] = inclusive;
    __syncthreads();
    uint32_t begin = inclusive - sum + __reduce_add_sync(~0u, lane < warp ? notes.totals[lane] : 0);
    const auto places_of = [&](uint32_t pair) {
      const uint32_t second = begin + (pair & 0xffff), places = begin | second << 16;
      begin = second + (pair >> 16);
      return places;
    };
    for (uint32_t v = 0; v < vectors; ++v) {
      uint4 pairs;
      load_shared(own + v * 16, pairs);
      pairs.x = places_of(pairs.x);
      pairs.y = places_of(pairs.y);
      pairs.z = places_of(pairs.z);
      pairs.w = places_of(pairs.w);
      store_shared(own + v * 16, pairs);
    }
    __syncthreads();
  }

  // Sorts a bucket of few values by counting them stably (Seward 1954): for each value, round and warp how many lanes hold it, in this
  // order. So the exclusive sums are places, and neither ranks nor records are needed. group_of(key) rises with the keys.
  // `doubtful`: groups may have several values. If one has, false, for all threads, and nothing is written.
  template <class GroupOf>
  __device__ __forceinline__ bool count_groups(const Flat (&held)[kItems], const uint32_t (&indices)[kItems], uint32_t groups,
                                               bool doubtful, GroupOf group_of) const {
    __shared__ Flat values[kMostGroups];
    const uint32_t stride = group_counters(), vectors = (groups * stride + 8 * kThreads - 1) / (8 * kThreads), lane = thread % 32;
    for (uint32_t v = 0; v < vectors; ++v) clear_shared_16_bytes(counters + (v * kThreads + thread) * 16);
    if (thread < groups) values[thread] = static_cast<Flat>(~Flat{0});
    __syncthreads();
    uint16_t* const own = bin_counters() + thread / 32;
    const uint32_t below = lanes_below(), last = groups - 1;
    uint32_t found[kItems / 2];  // group << 5 | lanes of the same before, 16 bits to each
    bool wrong = false;
#pragma unroll
    for (int e = 0; e < kItems; ++e) {
      if (e * kThreads >= size) continue;
      const bool here = e * kThreads + thread < size;
      const uint32_t group = here ? group_of(held[e]) : 0;
      uint32_t peers = __ballot_sync(~0u, here);
#pragma unroll 1
      for (uint32_t bit = 1; bit <= last; bit *= 2) {
        const bool set = (group & bit) != 0;
        const uint32_t votes = __ballot_sync(~0u, set);
        peers &= set ? votes : ~votes;
      }
      const uint32_t before = __popc(peers & below);
      if (here && before == 0) own[group * stride + e * kWarps] = static_cast<uint16_t>(__popc(peers));
      if (doubtful) {
        const Flat first = __shfl_sync(~0u, held[e], here ? __ffs(static_cast<int>(peers)) - 1 : static_cast<int>(lane));
        wrong |= here && first != held[e];
        if (here && before == 0) lower(values + group, held[e]);
      }
      found[e / 2] = e % 2 == 0 ? group << 5 | before : found[e / 2] | (group << 5 | before) << 16;
    }
    scan_groups(vectors);
    if (doubtful) {
      for_each_item([&](int e) {
        const uint32_t both = found[e / 2] >> (e % 2 * 16) & 0xffff;
        if ((both & 31) == 0) wrong |= values[both >> 5] != held[e];
      });
      if (__syncthreads_or(wrong)) return false;
    }
    for_each_item([&](int e) {
      const uint32_t both = found[e / 2] >> (e % 2 * 16) & 0xffff;
      records.set(own[(both >> 5) * stride + e * kWarps] + (both & 31), Record{held[e], indices[e]});
    });
    __syncthreads();
    const PulledOutput<U, kIndexed> output(bucket);
#pragma unroll 4
    for (uint32_t place = thread; place < size; place += kThreads) {
      const Record record = records.get(place);
      output.store(place, order.bits(static_cast<U>(record.key)), record.index);
    }
    return true;
  }

  __device__ __forceinline__ uint16_t* bin_counters() const {
    extern __shared__ uint4 shared_memory[];
    return reinterpret_cast<uint16_t*>(shared_memory + 1);  // a word stands before them
  }

  __device__ __forceinline__ static void lower(uint32_t* word, uint32_t value) {
    atomicMin(word, value);
  }
  __device__ __forceinline__ static void lower(uint64_t* word, uint64_t value) {
    atomicMin(reinterpret_cast<unsigned long long*>(word), static_cast<unsigned long long>(value));
  }

  // Notes the values of a bucket, one after the other. Returns how many, the same for all threads, or 0 when there are more than `most`.
  __device__ __forceinline__ uint32_t find_few(const Flat (&held)[kItems], Flat low, Flat high, int most, Flat* values) const {
    Flat value = low;
    int count = 1;
    while (true) {
      if (thread == 0) values[count - 1] = value;
      if (value == high) break;
      if (count == most) return 0;
      Flat next = high;
      for_each_item([&](int e) { next = held[e] > value ? min(next, held[e]) : next; });
      Flat unused = next;
      __syncthreads();
      Rows::reduce_range(next, unused);
      value = next;
      ++count;
    }
    __syncthreads();
    return count;
  }

  __device__ __forceinline__ uint32_t bin_numbers() const {
    return counters - 16 + bucket_counter_bytes(kThreads, kItems);
  }

  // Numbers the bins that hold keys, in the place of the records. Returns how many there are, the same for all threads.
  __device__ __forceinline__ uint32_t number_bins() const {
    const uint32_t own = counters + thread * Rows::vectors * 16, lane = thread % 32, warp = thread / 32;
    uint32_t used = 0;
    for (uint32_t v = 0; v < Rows::vectors; ++v) {
      uint4 counts;
      load_shared(own + v * 16, counts);
      used += (counts.x != 0) + (counts.y != 0) + (counts.z != 0) + (counts.w != 0);
    }
    const uint32_t inclusive = warp_inclusive_scan(used);
    if (lane == 31) notes.totals[warp] = inclusive;
    __syncthreads();
    const uint32_t of_warp = lane < kWarps ? notes.totals[lane] : 0;
    uint32_t number = inclusive - used + __reduce_add_sync(~0u, lane < warp ? of_warp : 0);
    for (uint32_t v = 0; v < Rows::vectors; ++v) {
      uint4 counts;
      load_shared(own + v * 16, counts);
      const uint32_t second = number + (counts.x != 0), third = second + (counts.y != 0), fourth = third + (counts.z != 0);
      store_shared(own + (bin_numbers() - counters) + v * 16, make_uint4(number, second, third, fourth));
      number = fourth + (counts.w != 0);
    }
    __syncthreads();
    return __reduce_add_sync(~0u, of_warp);
  }

  // False, for all threads, when there are too many runs. The counters stay clear.
  __device__ __forceinline__ bool sort_runs(const Flat (&held)[kItems], const uint32_t (&indices)[kItems]) const {
    using Runs = BucketRuns<U, kThreads, kItems>;
    extern __shared__ uint4 shared_memory[];
    auto* const words = reinterpret_cast<typename Runs::Words*>(shared_memory + bucket_counter_bytes(kThreads, kItems) / 16);
    return Runs{bucket, order, *words, notes}.sort(held, indices, PulledOutput<U, kIndexed>(bucket));
  }

  // As BucketRows::sort().
  __device__ __forceinline__ BucketFate sort_held(Flat (&held)[kItems], const uint32_t (&indices)[kItems]) const {
    Flat low = ~Flat{0}, high = 0;
    for_each_item([&](int e) {
      held[e] = order.flat(static_cast<U>(held[e]));
      low = min(low, held[e]);
      high = max(high, held[e]);
    });
    Rows::note_runs(thread < size ? held[0] : Flat{0});
    Rows::reduce_range(low, high);
    const bool flat = order.right_between(static_cast<U>(low), static_cast<U>(high));
    const uint32_t alike = Rows::alike_neighbours(), all = min(size, static_cast<uint32_t>(kThreads));
    const bool has_runs = alike > all / 2;
    if (alike > all / 4 * 3 && sort_runs(held, indices)) return BucketFate::kSorted;
    // How a key's group is found: by its distance to the lowest, among values that were looked for, or by its bin.
    enum class Grouping { kNone, kDistance, kValue, kBin, kNumberBin };
    __shared__ Flat values[kMostFew];
    Grouping grouping = Grouping::kNone;
    uint32_t groups = 0;
    // Of a range of at least one, so that it can be made for equal keys too.
    const FlatMap<U> flat_map(low, low + max(static_cast<Flat>(high - low), Flat{1}), bins());
    if (flat && high - low < kMostGroups && can_count(static_cast<uint32_t>(high - low) + 1)) {
      grouping = Grouping::kDistance;
      groups = static_cast<uint32_t>(high - low) + 1;
    } else if (flat && alike > all / kFewAlike) {
      groups = find_few(held, low, high, has_runs ? kMostInRuns : kMostFew, values);
      if (groups != 0) grouping = Grouping::kValue;
    }
    BucketFate fate = BucketFate::kNotFlat;
    if (grouping == Grouping::kNone) {
      if (high - low < size / kMostPulledPerValue || low == high) return BucketFate::kNotFlat;
      if (flat && !Rows::many_magnitudes(low, high)) {
        if (has_runs) return BucketFate::kCrowded;
        if (distribute(held, indices, flat_map)) return BucketFate::kSorted;
        fate = BucketFate::kCrowded;
        if constexpr (kCountsBins) {
          groups = number_bins();
          if (can_count(groups)) grouping = Grouping::kBin;
        }
      } else {
        const NumberMap<U> map(bucket.arguments, order, low, high, bins());
        if (bucket.arguments.is_float && map.possible && !has_runs && !order.may_hold_nan(static_cast<U>(low), static_cast<U>(high)) &&
            !Rows::holds_negative_zero(held)) {
          if (distribute(held, indices, map)) return BucketFate::kSorted;
          if constexpr (kCountsBins) {
            groups = number_bins();
            if (can_count(groups)) grouping = Grouping::kNumberBin;
          }
        }
      }
    }
    if (grouping == Grouping::kNone) return fate;
    const auto group_of = [&](Flat key) {
      if (grouping == Grouping::kDistance) return static_cast<uint32_t>(key - low);
      if constexpr (kCountsBins) {
        if (grouping == Grouping::kBin) return load_shared(bin_numbers() + flat_map.bin(key) * 4);
        if (grouping == Grouping::kNumberBin) {
          return load_shared(bin_numbers() + NumberMap<U>(bucket.arguments, order, low, high, bins()).bin(key) * 4);
        }
      }
      uint32_t group = 0;
#pragma unroll 1
      for (uint32_t k = 1; k < groups; ++k) group += key >= values[k] ? 1 : 0;
      return group;
    };
    const bool doubtful = kCountsBins && (grouping == Grouping::kBin || grouping == Grouping::kNumberBin);
    return count_groups(held, indices, groups, doubtful, group_of) ? BucketFate::kSorted : fate;
  }

  __device__ __forceinline__ BucketFate sort(const PulledBucket<U, kThreads>& pulled) const {
    Flat held[kItems];
    uint32_t indices[kItems];
    Rows::clear_counters();
    pull(pulled, held, indices);
    const BucketFate fate = sort_held(held, indices);
    if (fate != BucketFate::kSorted) {
      U* const keys_to = bucket.arguments.keys_out + bucket.offset;
      uint32_t* const indices_to = kIndexed ? const_cast<uint32_t*>(bucket.indices()) : nullptr;
      for_each_item([&](int e) {
        keys_to[e * kThreads + thread] = order.bits(static_cast<U>(held[e]));
        if constexpr (kIndexed) indices_to[e * kThreads + thread] = indices[e];
      });
    }
    return fate;
  }
};

template <class U, int kThreads, int kItems, bool kIndexed>
__global__ void __launch_bounds__(kThreads, bucket_blocks_per_sm(sizeof(U), kThreads, kItems))
    pulled_rows_kernel(const __grid_constant__ PulledArguments<U> all) {
  using Rows = PulledRows<U, kThreads, kItems, kIndexed>;
  start_after_predecessor();
  extern __shared__ uint4 shared_memory[];
  __shared__ BucketNotes<typename Rows::Flat> notes;
  __shared__ PulledNotes pulled_notes;
  const uint32_t storage = shared_address(shared_memory);
  PulledBucket<U, kThreads> pulled(all, storage + bucket_counter_bytes(kThreads, kItems), Rows::kCapacity, pulled_notes);
  pulled.find();
  if (pulled.size == 0) return;
  const BucketSpan<U> bucket(all.buckets, blockIdx.x, pulled.size, pulled.all_equal, pulled.row * all.buckets.length + pulled.begin);
  if (bucket.all_equal) {
    const PulledOutput<U, kIndexed> output(bucket);
    pulled.template for_each<kIndexed>(Rows::kCapacity, [&](uint32_t slot, U key, uint32_t index) { output.store(slot, key, index); });
  } else if (bucket.size > Rows::kCapacity) {
    U* const keys_to = bucket.arguments.keys_out + bucket.offset;
    uint32_t* const indices_to = kIndexed ? const_cast<uint32_t*>(bucket.indices()) : nullptr;
    pulled.template for_each<kIndexed>(Rows::kCapacity, [&](uint32_t slot, U key, uint32_t index) {
      keys_to[slot] = key;
      if constexpr (kIndexed) indices_to[slot] = index;
    });
    if (threadIdx.x == 0) note_for_rest(all.buckets, bucket.number);
  } else {
    pulled.find_sources(0, bucket.size);
    const BucketFate fate = Rows(bucket, storage, notes).sort(pulled);
    if (fate != BucketFate::kSorted && threadIdx.x == 0) note_for_exact(all.buckets, bucket.number, fate);
  }
}

}  // namespace gpusort
