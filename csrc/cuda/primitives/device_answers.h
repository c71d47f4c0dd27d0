// A question that every device answers once, as one process may have devices of several kinds: the answers are remembered, a bit each.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace gpusort {

// Safe from several threads: a device that two of them ask at once gives both the same answer.
class DeviceAnswers {
 public:
  // ask() gives a bool, or nothing where the device could not tell; then, and by devices from 64 on, it is asked again the next time.
  template <class Ask>
  bool of(int device, const Ask& ask) {
    const uint64_t bit = device >= 0 && device < 64 ? uint64_t{1} << device : 0;
    if ((asked_.load(std::memory_order_acquire) & bit) != 0) return (yes_.load(std::memory_order_relaxed) & bit) != 0;
    const std::optional<bool> answer = ask();
    if (!answer) return false;
    if (*answer) yes_.fetch_or(bit, std::memory_order_relaxed);
    asked_.fetch_or(bit, std::memory_order_release);  // after the answer itself
    return *answer;
  }

 private:
  std::atomic<uint64_t> asked_{0};
  std::atomic<uint64_t> yes_{0};
};

}  // namespace gpusort
