#include "engine/engine_core.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <random>
#include <thread>
#include <utility>

#include "engine/active_request.h"
#include "engine/engine_loop.h"
#include "engine/warmup.h"

namespace whippet {
namespace {

struct Command {
  std::unique_ptr<ActiveRequest> request;  // a new one,
  uint64_t cancel = 0;                     // or the id of one to end
};

uint64_t random_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

struct EngineCore::Impl {
  std::unique_ptr<Model> model;  // what the runner refers to; none over a fake runner
  RequestRules rules;
  Metrics metrics;
  EngineLoop loop;  // engine thread only, once it runs
  Mailbox<Command> inbox;
  Mailbox<CoreEvent> outbox;
  std::atomic<uint64_t> next_id = 1;
  std::atomic<bool> stopping = false;
  std::thread thread;

  Impl(std::unique_ptr<Model> owned, Runner runner, RequestRules given)
      : model(std::move(owned)),
        rules(std::move(given)),
        metrics(rules.limits.max_model_len),
        loop(std::move(runner), rules.limits, rules.facts,
             static_cast<int32_t>(rules.usual_frequencies.size()), metrics) {}

  void take_inbox(std::vector<Command>& commands, std::optional<Clock::time_point> until) {
    inbox.take(commands, until);
    for (Command& command : commands) {
      if (command.request) {
        loop.add(std::move(command.request));
      } else {
        loop.cancel(command.cancel);
      }
    }
  }

  void run() {
    std::vector<Command> commands;
    bool idle = false;
    while (!stopping.load(std::memory_order_relaxed)) {
      take_inbox(commands, idle ? loop.wake_time() : Clock::time_point{});
      idle = !loop.step();
      outbox.push_all(loop.events());
    }
    take_inbox(commands, Clock::time_point{});  // what came too late is told so
    loop.cancel_all();
    outbox.push_all(loop.events());
  }
};

Result<std::unique_ptr<EngineCore>> EngineCore::create(Model model, Backend& backend,
                                                       const Tokenizer* tokenizer, const EnginePlan& plan,
                                                       ModelFacts facts) {
  auto owned = std::make_unique<Model>(std::move(model));
  apply_sliding_window(plan.config, owned->spec);
  const CoreLimits limits = core_limits(plan, owned->spec);
  if (facts.vocab_used <= 0 || facts.vocab_used > owned->spec.vocab_size)
    facts.vocab_used = owned->spec.vocab_size;
  // Cached blocks are only good for the same weights, cache type, positions and windows.
  facts.fingerprint += fmt::format("|{}|{}|{}", dtype_name(limits.kv_type), owned->spec.rope.theta,
                                   fmt::join(owned->spec.window_of_layer, ","));
  Runner runner = make_runner(*owned, backend, limits, facts.vocab_used);
  RequestRules rules{.limits = limits, .facts = std::move(facts), .tokenizer = tokenizer};
  rules.seed = limits.seed != 0 ? limits.seed : random_seed();
  rules.frequencies = [&spec = owned->spec](int32_t length) { return rope_frequencies(spec, length); };
  rules.usual_frequencies = rules.frequencies(1);
  return std::unique_ptr<EngineCore>(
      new EngineCore(std::make_unique<Impl>(std::move(owned), std::move(runner), std::move(rules))));
}

std::unique_ptr<EngineCore> EngineCore::create(Runner runner, const CoreLimits& limits,
                                               const Tokenizer* tokenizer, ModelFacts facts) {
  RequestRules rules{.limits = limits, .facts = std::move(facts), .tokenizer = tokenizer};
  rules.seed = limits.seed != 0 ? limits.seed : random_seed();
  rules.frequencies = [](int32_t) { return std::vector<float>(); };
  return std::unique_ptr<EngineCore>(
      new EngineCore(std::make_unique<Impl>(nullptr, std::move(runner), std::move(rules))));
}

EngineCore::EngineCore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

EngineCore::~EngineCore() { stop(); }

void EngineCore::start() {
  std::latch ready(1);
  impl_->thread = std::thread([this, &ready] {
    warm_up(impl_->loop, impl_->rules);
    ready.count_down();
    impl_->run();
  });
  ready.wait();
}

void EngineCore::stop() {
  if (impl_->stopping.exchange(true)) return;
  impl_->inbox.close();
  if (impl_->thread.joinable()) impl_->thread.join();
  impl_->outbox.close();
}

Result<uint64_t> EngineCore::submit(CoreRequest request) {
  const uint64_t id = impl_->next_id.fetch_add(1);
  auto active = make_active_request(std::move(request), id, impl_->rules, Clock::now());
  if (!active.ok()) {
    impl_->metrics.add_rejected();
    return std::move(active).error();
  }
  if (!impl_->inbox.push({.request = std::move(active).value()})) {
    return make_error(Code::kCancelled, "the engine has been stopped");
  }
  return id;
}

void EngineCore::cancel(uint64_t request_id) {
  impl_->inbox.push({.request = nullptr, .cancel = request_id});
}

Mailbox<CoreEvent>& EngineCore::events() { return impl_->outbox; }

EngineStats EngineCore::stats() const { return impl_->metrics.snapshot(Clock::now()); }

std::string EngineCore::prometheus() const { return prometheus_text(stats(), impl_->rules.facts.name); }

void EngineCore::count_rejected() { impl_->metrics.add_rejected(); }

const CoreLimits& EngineCore::limits() const { return impl_->rules.limits; }

}  // namespace whippet
