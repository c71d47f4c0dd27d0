// Threads, injected: csrc/cpu knows tasks, and whoever calls it knows who runs them (csrc/ops passes torch's thread pool).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

namespace gpusort::cpu {

class Parallel {
 public:
  using Body = void (*)(void* context, int64_t task);
  // Calls body(context, t) for every t in [0, tasks), in any order and on any threads, and returns when all have ended.
  using Run = void (*)(int64_t tasks, void* context, Body body);

  Parallel() = default;
  Parallel(int threads, Run run) : threads_(threads < 1 ? 1 : threads), run_(run) {}

  int threads() const { return threads_; }

  // The same calls on the calling thread alone: for work that is one task of many already.
  static Parallel serial() { return {}; }

  // An exception must not cross from one thread to another, so the first one is kept and thrown again here.
  template <class Task>
  void for_each(int64_t tasks, const Task& task) const {
    if (tasks <= 1 || threads_ == 1 || run_ == nullptr) {
      for (int64_t t = 0; t < tasks; ++t) task(t);
      return;
    }
    Guarded<Task> guarded{task};
    run_(tasks, &guarded, [](void* context, int64_t t) { static_cast<Guarded<Task>*>(context)->call(t); });
    if (guarded.error) std::rethrow_exception(guarded.error);
  }

 private:
  template <class Task>
  struct Guarded {
    const Task& task;
    std::atomic<bool> failed{false};
    std::exception_ptr error{};

    void call(int64_t t) noexcept {
      try {
        if (!failed.load(std::memory_order_relaxed)) task(t);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
      }
    }
  };

  int threads_ = 1;
  Run run_ = nullptr;
};

// Part `part` of `parts` nearly equal parts of [0, size).
struct Slice {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

inline Slice slice_of(int64_t size, int64_t parts, int64_t part) {
  const int64_t quotient = size / parts, rest = size % parts;
  const int64_t begin = part * quotient + (part < rest ? part : rest);
  return {begin, begin + quotient + (part < rest ? 1 : 0)};
}

// Calls visit(i) for every i in [0, count), in as many tasks as are worth their start.
template <class Visit>
void for_each_index(int64_t count, const Parallel& parallel, const Visit& visit) {
  constexpr int64_t kWorthATask = int64_t{1} << 14;
  const int64_t tasks = std::min<int64_t>(parallel.threads(), 1 + count / kWorthATask);
  parallel.for_each(tasks, [&](int64_t task) {
    const Slice slice = slice_of(count, tasks, task);
    for (int64_t i = slice.begin; i < slice.end; ++i) visit(i);
  });
}

}  // namespace gpusort::cpu
