#include "backend/cpu/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <string>
#include <system_error>

#include "backend/cpu/pause.h"
#include "base/check.h"
#include "base/log.h"

namespace whippet::cpu {
namespace {

// Longer than the serial stretches inside a step, shorter than anybody notices a busy core for.
constexpr std::chrono::microseconds kSpinTime{100};

void futex_wait(std::atomic<uint32_t>& word, uint32_t value) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word, int count) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// Whether done() came true within the spin time.
template <class Done>
bool spin_until(const Done& done) {
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      pause_core();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

ThreadPool::ThreadPool(int32_t num_threads, bool spin) : spin_(spin) {
  WH_CHECK(num_threads >= 1 && num_threads <= static_cast<int32_t>(kInside), "{} threads", num_threads);
  threads_.reserve(num_threads - 1);
  sigset_t all, before;  // signals are for the threads that expect them
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int32_t worker = 1; worker < num_threads; ++worker) {
    try {
      threads_.emplace_back([this, worker] { worker_loop(worker); });
    } catch (const std::system_error& error) {
      log_warning("started {} of {} threads: {}", worker, num_threads, error.what());
      break;
    }
    pthread_setname_np(threads_.back().native_handle(), ("whippet-cpu-" + std::to_string(worker)).c_str());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  gate_.fetch_add(kGeneration);
  futex_wake(gate_, INT_MAX);
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run_job(Job job) {
  job_ = job;
  next_task_.store(0, std::memory_order_relaxed);
  const uint32_t closed = gate_.load(std::memory_order_relaxed);
  gate_.store(closed + kGeneration + kOpen);  // nobody is inside: no update can be lost
  // A worker counts itself a sleeper before the kernel compares the gate: it sees the new gate or is seen
  // here.
  if (sleepers_.load() > 0) futex_wake(gate_, std::min(job.num_tasks - 1, num_threads() - 1));
  work(0);
  gate_.fetch_and(~kOpen);
  wait_until_all_left();
}

void ThreadPool::work(int32_t worker) {
  for (;;) {
    const int32_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= job_.num_tasks) return;
    job_.call(job_.body, task, worker);
  }
}

void ThreadPool::worker_loop(int32_t worker) {
  uint32_t seen = 0;  // generation last worked for
  for (;;) {
    uint32_t gate = wait_for_job(seen);
    if (stop_.load()) return;
    while ((gate & kOpen) != 0 && gate / kGeneration != seen) {
      if (!gate_.compare_exchange_weak(gate, gate + 1)) continue;
      seen = gate / kGeneration;
      work(worker);
      leave();
      gate = gate_.load();
    }
  }
}

// The gate when it is open for a generation other than `seen`, or when the pool stops. (A worker that slept
// through all 2^20 generations takes the new one for the one it saw and sits one job out.)
uint32_t ThreadPool::wait_for_job(uint32_t seen) {
  const auto ready = [&](uint32_t gate) { return (gate & kOpen) != 0 && gate / kGeneration != seen; };
  for (;;) {
    uint32_t gate = gate_.load();
    if (ready(gate) || stop_.load()) return gate;
    if (spin_ &&
        spin_until([&] { return ready(gate = gate_.load(std::memory_order_relaxed)) || stop_.load(); }))
      continue;
    sleepers_.fetch_add(1);
    gate = gate_.load();
    if (!ready(gate) && !stop_.load()) futex_wait(gate_, gate);
    sleepers_.fetch_sub(1);
  }
}

void ThreadPool::leave() {
  const uint32_t gate = gate_.fetch_sub(1) - 1;
  if ((gate & (kOpen | kInside)) == 0 && caller_sleeps_.exchange(0) == 1) futex_wake(caller_sleeps_, 1);
}

void ThreadPool::wait_until_all_left() {
  const auto empty = [&] { return (gate_.load() & kInside) == 0; };
  if (empty() || (spin_ && spin_until(empty))) return;
  do {
    caller_sleeps_.store(1);
    if (empty()) break;
    futex_wait(caller_sleeps_, 1);
  } while (!empty());
  caller_sleeps_.store(0);
}

}  // namespace whippet::cpu
