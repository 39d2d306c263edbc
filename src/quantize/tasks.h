// Splits work into tasks that threads take one by one. Used by the quantizer's linear algebra, whose tasks
// take milliseconds, so that starting threads costs nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace whippet {

// body(task) for every task < num_tasks, on up to num_threads threads, the caller's among them.
template <class Body>
void run_tasks(int32_t num_tasks, int32_t num_threads, const Body& body) {
  std::atomic<int32_t> next{0};
  const auto work = [&] {
    for (int32_t task = next.fetch_add(1); task < num_tasks; task = next.fetch_add(1)) body(task);
  };
  std::vector<std::jthread> threads;
  for (int32_t i = 1; i < std::min(num_tasks, num_threads); ++i) threads.emplace_back(work);
  work();
}

}  // namespace whippet
