#include "backend/cpu/probe.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "backend/cpu/cores.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/thread_pool.h"
#include "tensor/buffer.h"

namespace whippet::cpu {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;
constexpr int32_t kPasses = 4;

// Well beyond the last cache, within what a second allows.
size_t bytes_to_read() {
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return std::clamp(size_t{4} * static_cast<size_t>(std::max(cache, 0L)), 128 * kMegabyte, 512 * kMegabyte);
}

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

using Burst = double (*)(int64_t rounds, float* sink);

// Operations a second of all threads, in billions, best of some passes.
double burst_rate(Burst burst, const std::string& isa, ThreadPool& pool, std::vector<float>& sinks) {
  const int64_t rounds = isa == "portable" ? 100000 : 1000000;
  std::vector<double> operations(static_cast<size_t>(pool.num_threads()));
  double best = 0;
  for (int32_t pass = 0; pass < kPasses; ++pass) {
    const double seconds = seconds_of([&] {
      pool.run(pool.num_threads(), [&](int32_t task, int32_t) {
        operations[static_cast<size_t>(task)] = burst(rounds, &sinks[static_cast<size_t>(task) * 16]);
      });
    });
    double total = 0;
    for (const double each : operations) total += each;
    best = std::max(best, total / seconds / 1e9);
  }
  return best;
}

}  // namespace

Result<MachineSpeed> measure_machine(int32_t num_threads, const std::string& isa) {
  const Kernels* kernels = nullptr;
  for (const Kernels* each : supported_kernels())
    if (kernels == nullptr && (isa.empty() || isa == each->name)) kernels = each;
  if (kernels == nullptr)
    return make_error(Code::kInvalidArgument, "instruction set '{}' is not available", isa);
  const int32_t cores = usable_cores();
  if (num_threads <= 0) num_threads = cores;
  ThreadPool pool(num_threads, num_threads <= cores);
  num_threads = pool.num_threads();
  std::vector<float> sinks(static_cast<size_t>(num_threads) * 16);

  MachineSpeed speed{.isa = kernels->name, .num_threads = num_threads};
  const Buffer memory = Buffer::host(bytes_to_read());
  std::memset(memory.as<void>(), 1,
              memory.bytes());  // pages that were never written are all one page of zeros
  const auto share = static_cast<int64_t>(memory.bytes() / sizeof(float)) / num_threads;
  for (int32_t pass = 0; pass < kPasses; ++pass) {
    const double seconds = seconds_of([&] {
      pool.run(num_threads, [&](int32_t task, int32_t) {
        kernels->read_burst(memory.as<float>() + task * share, share, &sinks[task * 16]);
      });
    });
    speed.read_gb_per_s = std::max(speed.read_gb_per_s,
                                   static_cast<double>(share) * num_threads * sizeof(float) / seconds / 1e9);
  }
  const auto rate = [&](Burst burst) { return burst_rate(burst, kernels->name, pool, sinks); };
  speed.fma_gflops = rate(kernels->fma_burst);
  speed.dot_gops = rate(kernels->dots.burst);
  if (kernels->pair_burst != nullptr) speed.pair_gflops = rate(kernels->pair_burst);
  return speed;
}

}  // namespace whippet::cpu
