// csrc/cuda/primitives/device_answers.h: each device is asked once and keeps its own answer, whatever order they come in; one that could
// not tell is asked again, and so is one beyond the 64 that are remembered. Threads that ask at once get the same answers.
#include "../../csrc/cuda/primitives/device_answers.h"

#include <array>
#include <atomic>
#include <initializer_list>
#include <thread>
#include <vector>

#include "check.h"

namespace {

using namespace gpusort;

void check_each_device_has_its_own() {
  DeviceAnswers answers;
  std::array<int, 64> asked{};
  const auto ask = [&](int device, bool answer) {
    return answers.of(device, [&]() -> std::optional<bool> {
      ++asked[device];
      return answer;
    });
  };
  for (int round = 0; round < 3; ++round) {
    for (const int device : {0, 5, 1, 63, 31, 32}) CHECK(ask(device, device % 2 == 1) == (device % 2 == 1));
  }
  for (const int device : {0, 5, 1, 63, 31, 32}) CHECK(asked[device] == 1);
  CHECK(ask(5, false) && asked[5] == 1);  // as it said first
  CHECK(!ask(0, true) && asked[0] == 1);
}

void check_what_is_not_remembered() {
  DeviceAnswers answers;
  int asked = 0;
  const auto ask = [&](int device, std::optional<bool> answer) {
    return answers.of(device, [&] {
      ++asked;
      return answer;
    });
  };
  CHECK(!ask(3, std::nullopt) && asked == 1);
  CHECK(ask(3, true) && asked == 2);
  CHECK(ask(3, std::nullopt) && asked == 2);
  CHECK(ask(64, true) && !ask(64, false) && ask(1000, true) && !ask(-1, false) && asked == 6);
  CHECK(!ask(0, false) && asked == 7);  // devices out of range left no bit behind
  CHECK(!ask(36, false) && asked == 8);
}

void check_threads_at_once() {
  for (int round = 0; round < 200; ++round) {
    DeviceAnswers answers;
    std::atomic<int> wrong{0}, ready{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        ++ready;
        while (ready.load() < 4) std::this_thread::yield();
        for (int device = 0; device < 8; ++device) {
          const bool expected = device % 3 == 0;
          if (answers.of(device, [&] { return std::optional<bool>(expected); }) != expected) ++wrong;
          if (answers.of(device, [&] { return std::optional<bool>(!expected); }) != expected) ++wrong;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(wrong.load() == 0);
  }
}

}  // namespace

int main() {
  check_each_device_has_its_own();
  check_what_is_not_remembered();
  check_threads_at_once();
  return report();
}
