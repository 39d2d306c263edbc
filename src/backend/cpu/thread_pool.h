// The workers of the CPU backend. The calling thread is worker 0 and works too; the others spin for a bounded
// time between jobs and then sleep. A job is a number of tasks that workers take one by one, so that a worker
// whose core was taken away delays its own task only. Nothing is allocated after the start.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace whippet::cpu {

class ThreadPool {
 public:
  // num_threads counts the caller. Fewer start where the system refuses; num_threads() says how many.
  // spin: whether idle workers may burn a core for a while; off where there are more workers than cores.
  ThreadPool(int32_t num_threads, bool spin);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int32_t num_threads() const { return static_cast<int32_t>(threads_.size()) + 1; }

  // body(task, worker) for every task < num_tasks, each once, on some worker < num_threads(); returns when
  // all are done. One caller at a time; a body must not call run.
  template <class Body>
  void run(int32_t num_tasks, const Body& body) {
    if (num_tasks <= 1 || threads_.empty()) {
      for (int32_t task = 0; task < num_tasks; ++task) body(task, 0);
      return;
    }
    run_job({num_tasks, &body, [](const void* job_body, int32_t task, int32_t worker) {
               (*static_cast<const Body*>(job_body))(task, worker);
             }});
  }

 private:
  struct Job {
    int32_t num_tasks = 0;
    const void* body = nullptr;
    void (*call)(const void* body, int32_t task, int32_t worker) = nullptr;
  };

  void run_job(Job job);
  void work(int32_t worker);
  void worker_loop(int32_t worker);
  uint32_t wait_for_job(uint32_t seen);
  void leave();
  void wait_until_all_left();

  // gate_: [generation 20][open 1][workers inside 11]. A worker enters by adding 1 while the gate is open, so
  // the caller waits only for those that entered, never for one that is still waking up.
  static constexpr uint32_t kInside = 0x7ff, kOpen = 0x800, kGeneration = 0x1000;

  alignas(64) std::atomic<uint32_t> gate_{0};
  std::atomic<bool> stop_{false};
  Job job_;  // written by the caller while the gate is closed and nobody is inside
  alignas(64) std::atomic<int32_t> next_task_{0};
  alignas(64) std::atomic<uint32_t> sleepers_{0};
  std::atomic<uint32_t> caller_sleeps_{0};
  bool spin_;
  std::vector<std::thread> threads_;
};

}  // namespace whippet::cpu
