// See leading_digits.h. Ways, of which the first that fits is taken:
//
//   two leading digits     when three would do, and two leave groups of at most some hundred keys, all of much the same size: a last step
//                          orders these (window_closer.cuh)
//   three leading digits   when equal keys are rare, and keys that differ in the other digits alone few enough for groups of at most some
//                          dozen: a last step orders these (close_groups.cuh)
//   the high word          when equal keys are as many as you like, but different keys hardly ever share their high word: those few are
//                          mended (high_word_ties.cu)
//   four leading digits    as three
//
// Keys at random positions are entered in a table by a hash of these digits, and compared with what stands there in the end: another key of
// the same digits is a tie, an equal one a twin. With s samples of n keys that have t such partners each on average, s * s * t / (2 * n)
// meetings are expected, some fewer since slots are shared: with s = 2 * sqrt(n) two for each partner. Positions are independent, not
// spread evenly: neighbours that share their digits would never meet otherwise. Of random keys more than kMostTies share their high word
// with a chance of 3 %.
#include "leading_digits.h"

#include <cuda_runtime.h>

#include <atomic>

#include "../../core/key_codec.h"
#include "../primitives/kernel_setup.h"
#include "radix_control.cuh"

namespace gpusort {
namespace {

constexpr int kThreads = 1024;
constexpr int kMostSamples = kMostHighWordSamples;
constexpr uint32_t kSlots = 2 * kMostSamples;
constexpr int kSharedBytes = kMostSamples * 8 + kSlots * 4;

constexpr uint32_t kMostTies = 1;            // of the high word
constexpr uint32_t kMostTwins = 8;           // where groups are to be small; some are one key that was sampled twice
constexpr uint64_t kMostEvenPartners = 16;   // of a key, if the live bits are evenly filled
constexpr uint64_t kMostPartners = 20;       // as the samples tell
constexpr uint64_t kLeastMostGroupTies = 8;  // two are expected of even keys at least, however long
constexpr uint64_t kMostEasyGroup = 8;       // that window_closer.cuh does not do better
constexpr uint64_t kMostEvenGroup = 384;     // by two digits, which are to be evenly filled

struct LeadingDigitsArguments {
  KeyCodec<uint64_t> codec;
  const uint64_t* keys;
  uint64_t length;
  uint32_t samples;
  const uint32_t* called_off;  // null, or not 0: the keys may not be there
  uint4* tables;               // the control words lie at their start
  uint32_t cleared_vectors;
};

struct Meetings {
  uint32_t ties, twins;
};

__device__ __forceinline__ uint64_t position_of(uint32_t sample, uint64_t length) {
  uint32_t hash = (sample + 1) * 0x9e3779b1u;
  hash = (hash ^ hash >> 15) * 0x85ebca77u;
  hash = (hash ^ hash >> 13) * 0xc2b2ae3du;
  hash ^= hash >> 16;
  return hash * length >> 32;
}

__device__ __forceinline__ uint32_t slot_of(uint64_t leading) {
  const uint32_t folded = static_cast<uint32_t>(leading ^ leading >> 32);
  return ((folded ^ folded >> 15) * 0x9e3779b1u >> 5) % kSlots;
}

// The samples that are the same from bit `shift` on as the last one in their slot. All threads call.
__device__ __forceinline__ Meetings meet(const uint64_t* codes, uint32_t* slots, uint32_t* words, uint32_t samples, uint32_t shift) {
  for (uint32_t slot = threadIdx.x; slot < kSlots; slot += kThreads) slots[slot] = 0;
  if (threadIdx.x < 2) words[threadIdx.x] = 0;
  __syncthreads();
  for (uint32_t sample = threadIdx.x; sample < samples; sample += kThreads) atomicMax(slots + slot_of(codes[sample] >> shift), sample);
  __syncthreads();
  Meetings met = {0, 0};
  for (uint32_t sample = threadIdx.x; sample < samples; sample += kThreads) {
    const uint64_t code = codes[sample];
    const uint32_t last = slots[slot_of(code >> shift)];
    const uint64_t other = codes[last];
    if (last == sample || (code ^ other) >> shift != 0) continue;
    if (code == other)
      ++met.twins;
    else
      ++met.ties;
  }
  met = {__reduce_add_sync(~0u, met.ties), __reduce_add_sync(~0u, met.twins)};
  if (threadIdx.x % 32 == 0) {
    atomicAdd(words, met.ties);
    atomicAdd(words + 1, met.twins);
  }
  __syncthreads();
  met = {words[0], words[1]};
  __syncthreads();
  return met;
}

// Do digits from bit `shift` on leave groups of much the same size, as window_closer.cuh can keep? Of the pairs of even samples that agree
// in them a tenth is not met. All threads call.
__device__ __forceinline__ bool evenly_filled(const LeadingDigitsArguments& arguments, const uint64_t* codes, uint32_t* slots,
                                              uint32_t* words, uint64_t live_bits, uint32_t shift) {
  const int bits = __popcll(live_bits >> shift);
  if (arguments.length >> bits > kMostEvenGroup) return false;
  const uint32_t samples = arguments.samples, pairs = samples * samples >> (bits + 1);
  const Meetings met = meet(codes, slots, words, samples, shift);
  return met.ties + met.twins <= pairs + pairs / 2 + kLeastMostGroupTies;
}

__global__ void __launch_bounds__(kThreads, 1) leading_digits_kernel(const __grid_constant__ LeadingDigitsArguments arguments) {
  extern __shared__ __align__(16) uint64_t codes[];
  uint32_t* slots = reinterpret_cast<uint32_t*>(codes + kMostSamples);
  __shared__ uint32_t words[2];
  __shared__ unsigned long long live;
  constexpr int kEach = kMostSamples / kThreads;
  const uint32_t samples = arguments.samples;
  for (uint32_t i = threadIdx.x; i < arguments.cleared_vectors; i += kThreads) arguments.tables[i] = make_uint4(0, 0, 0, 0);
  if (arguments.called_off != nullptr && *arguments.called_off != 0) return;
  if (threadIdx.x == 0) live = 0;
  const uint64_t first = arguments.codec.code(arguments.keys[0]);
  uint64_t key[kEach];
  key[0] = arguments.keys[position_of(threadIdx.x, arguments.length)];
  // One high word: those integers are sorted by their low words, unless others are rare and nearly all keys equal.
  const uint64_t difference = arguments.codec.code(key[0]) ^ first;
  if (__syncthreads_or(difference >> 32 != 0) == 0 && __syncthreads_count(difference != 0) > kThreads / 2) return;
#pragma unroll
  for (int k = 1; k < kEach; ++k) {
    const uint32_t sample = k * kThreads + threadIdx.x;
    if (sample < samples) key[k] = arguments.keys[position_of(sample, arguments.length)];
  }
  uint64_t differences = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const uint32_t sample = k * kThreads + threadIdx.x;
    if (sample >= samples) continue;
    const uint64_t code = arguments.codec.code(key[k]);
    codes[sample] = code;
    differences |= code ^ first;
  }
  const uint32_t low = __reduce_or_sync(~0u, static_cast<uint32_t>(differences));
  const uint32_t high = __reduce_or_sync(~0u, static_cast<uint32_t>(differences >> 32));
  if (threadIdx.x % 32 == 0) atomicOr(&live, static_cast<unsigned long long>(high) << 32 | low);
  __syncthreads();
  const uint64_t live_bits = live;
  if (live_bits >> 32 == 0) return;
  uint32_t digits = 0;
  for (int digit = 0; digit < kMaxRadixPasses; ++digit)
    digits |= (live_bits >> digit * kRadixBits & (kRadixBins - 1)) != 0 ? 1u << digit : 0;
  const uint64_t most_group_ties = max(kLeastMostGroupTies, kMostPartners * samples * samples / (2 * arguments.length));

#pragma unroll 1
  for (int way = 0; way < 3; ++way) {
    const bool groups = way != 1;
    uint32_t shift = 32, two_digits_shift = 32;
    if (groups) {
      const int leading = way == 0 ? 3 : 4;
      uint32_t highest = digits;
      for (int all = __popc(digits); all > leading; --all) highest &= highest - 1;
      shift = (__ffs(static_cast<int>(highest)) - 1) * kRadixBits;
      two_digits_shift = (__ffs(static_cast<int>(highest & (highest - 1))) - 1) * kRadixBits;
      if (__popc(digits) <= leading || arguments.length >> __popcll(live_bits >> shift) > kMostEvenPartners) continue;
    }
    const Meetings met = meet(codes, slots, words, samples, shift);
    const bool fits = groups ? met.twins <= kMostTwins && met.ties <= most_group_ties : met.ties <= kMostTies;
    if (!fits) continue;
    // H200, last step at 2^26 (four keys a group): by records 573 us, by windows 676; at 2^28 (16) 3124 and 2797.
    SmallGroups small_groups = !groups                                                             ? SmallGroups::kNone
                               : arguments.length >> __popcll(live_bits >> shift) > kMostEasyGroup ? SmallGroups::kByWindows
                                                                                                   : SmallGroups::kByRecords;
    if (way == 0 && met.ties <= kLeastMostGroupTies && evenly_filled(arguments, codes, slots, words, live_bits, two_digits_shift)) {
      shift = two_digits_shift;
      small_groups = SmallGroups::kByWindows;
    }
    if (threadIdx.x == 0) {
      RadixControl* control = reinterpret_cast<RadixControl*>(arguments.tables);
      control->sorted_from = shift;
      control->small_groups = static_cast<uint32_t>(small_groups);
    }
    return;
  }
}

}  // namespace

cudaError_t launch_leading_digits(const SortProblem& problem, const RadixPlan& plan, void* tables, cudaStream_t stream) {
  static std::atomic<uint64_t> prepared{0};
  const cudaError_t error = allow_shared_memory(leading_digits_kernel, kSharedBytes, prepared);
  if (error != cudaSuccess) return error;
  LeadingDigitsArguments arguments;
  arguments.codec = make_key_codec(problem.key.order<uint64_t>(problem.descending));
  arguments.keys = static_cast<const uint64_t*>(problem.keys_in);
  arguments.length = static_cast<uint64_t>(problem.length);
  arguments.samples = static_cast<uint32_t>(plan.high_word_samples);
  arguments.called_off = problem.called_off;
  arguments.tables = static_cast<uint4*>(tables);
  arguments.cleared_vectors = static_cast<uint32_t>(plan.cleared_bytes / 16);
  leading_digits_kernel<<<1, kThreads, kSharedBytes, stream>>>(arguments);
  return cudaGetLastError();
}

}  // namespace gpusort
