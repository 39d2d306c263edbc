#include "backend/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace whippet::cpu {
namespace {

class Pool : public ::testing::TestWithParam<bool> {};

TEST_P(Pool, RunsEveryTaskOnce) {
  for (int32_t threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads, GetParam());
    EXPECT_EQ(pool.num_threads(), threads);
    for (int32_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<int32_t> times(tasks, 0);  // plain: a task that ran twice or unseen is a race for TSan
      pool.run(tasks, [&](int32_t task, int32_t worker) {
        EXPECT_TRUE(worker >= 0 && worker < threads);
        ++times[task];
      });
      EXPECT_EQ(times, std::vector<int32_t>(tasks, 1)) << threads << " threads";
    }
  }
}

TEST_P(Pool, SeesWhatTheCallerAndEarlierJobsWrote) {
  ThreadPool pool(3, GetParam());
  std::vector<int64_t> values(64, 0);
  for (int64_t round = 1; round <= 3000; ++round) {
    values[0] += 1;
    pool.run(63, [&](int32_t task, int32_t) { values[task + 1] += values[0]; });
  }
  for (size_t i = 1; i < values.size(); ++i) EXPECT_EQ(values[i], 3000 * 3001 / 2);
}

TEST_P(Pool, GivesEachWorkerItsOwnNumber) {
  ThreadPool pool(4, GetParam());
  std::vector<std::thread::id> owner(4);
  std::vector<int32_t> scratch(4, 0);  // plain: two threads with one number are a race
  for (int32_t round = 0; round < 500; ++round) {
    std::atomic<int32_t> sum{0};
    pool.run(16, [&](int32_t, int32_t worker) {
      if (owner[worker] == std::thread::id()) owner[worker] = std::this_thread::get_id();
      EXPECT_EQ(owner[worker], std::this_thread::get_id());
      ++scratch[worker];
      ++sum;
    });
    EXPECT_EQ(sum, 16);
  }
  EXPECT_EQ(owner[0], std::this_thread::get_id());
  EXPECT_EQ(scratch[0] + scratch[1] + scratch[2] + scratch[3], 500 * 16);
}

TEST_P(Pool, WakesWorkersThatWentToSleep) {
  ThreadPool pool(3, GetParam());
  for (int32_t round = 0; round < 20; ++round) {
    // Long enough for spinning workers to fall asleep; whether they did changes nothing below.
    std::this_thread::sleep_for(std::chrono::microseconds(round % 2 == 0 ? 400 : 0));
    std::atomic<int32_t> inside{0};
    std::atomic<bool> met{false};
    pool.run(2, [&](int32_t, int32_t) {  // ends only when two workers are in it at once
      if (inside.fetch_add(1) == 1) met.store(true);
      while (!met.load()) std::this_thread::yield();
    });
    EXPECT_TRUE(met);
  }
}

TEST_P(Pool, ServesOneCallerAfterAnother) {
  ThreadPool pool(2, GetParam());
  int64_t sum = 0;
  for (int32_t i = 0; i < 20; ++i)
    std::thread([&] {
      std::vector<int64_t> parts(10, 0);
      pool.run(10, [&](int32_t task, int32_t) { parts[task] = task; });
      for (int64_t part : parts) sum += part;
    }).join();
  EXPECT_EQ(sum, 20 * 45);
}

TEST_P(Pool, StopsWhetherOrNotItEverWorked) {
  for (int32_t i = 0; i < 50; ++i) {
    ThreadPool pool(1 + i % 5, GetParam());
    if (i % 2 == 0) pool.run(3, [](int32_t, int32_t) {});
  }
}

INSTANTIATE_TEST_SUITE_P(Spin, Pool, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "Spinning" : "Sleeping"; });

}  // namespace
}  // namespace whippet::cpu
