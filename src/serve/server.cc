#include "serve/server.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <csignal>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/log.h"
#include "serve/acceptor.h"
#include "serve/io_thread.h"
#include "serve/shared.h"
#include "serve/tls.h"
#include "serve/watch.h"
#include "whippet/whippet.h"

namespace whippet::serve {
namespace {

constexpr auto kLook = std::chrono::milliseconds(50);
constexpr uint32_t kManyCores = 8;
constexpr size_t kWorkers = 2;  // threads for templates and tokenizing
constexpr size_t kWaiters = 4;  // the same for requests that may wait until a grammar is compiled

// Every connection takes a descriptor; the usual soft limit is 1024.
void raise_descriptor_limit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

struct Server::Impl {
  explicit Impl(ServerConfig config)
      : shared(std::move(config)),
        watch(
            shared, [this] { abort(); }, [this](bool whole) { finish(whole); }) {}

  Status start();
  void abort();
  void finish(bool whole);
  void look();
  void await_signal();

  Shared shared;
  std::unique_ptr<asio::ssl::context> tls;
  std::unique_ptr<Service> service;
  std::vector<std::unique_ptr<IoThread>> threads;
  std::unique_ptr<asio::thread_pool> workers, waiters;
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<asio::steady_timer> timer;
  std::unique_ptr<asio::signal_set> signals;
  Watch watch;  // the first I/O thread's
  int signals_seen = 0;
  std::promise<bool> drained;
};

Status Server::Impl::start() {
  WH_TRY(Access::check(shared.config));
  WH_ASSIGN(tls, make_tls(shared.config));
  raise_descriptor_limit();
  const int32_t chosen = std::thread::hardware_concurrency() >= kManyCores ? 2 : 1;
  const auto count = static_cast<uint32_t>(shared.config.io_threads > 0 ? shared.config.io_threads : chosen);
  shared.outbox.resize(count);
  for (uint32_t i = 0; i < count; ++i) threads.push_back(std::make_unique<IoThread>(shared, i, tls.get()));
  acceptor = std::make_unique<Acceptor>(shared, threads);
  WH_TRY(acceptor->listen(shared.config.host, shared.config.port));
  workers = std::make_unique<asio::thread_pool>(kWorkers);
  waiters = std::make_unique<asio::thread_pool>(kWaiters);
  shared.run_work = [this](std::function<void()> work) { asio::post(*workers, std::move(work)); };
  shared.run_waiting_work = [this](std::function<void()> work) { asio::post(*waiters, std::move(work)); };
  timer = std::make_unique<asio::steady_timer>(threads.front()->context());
  if (shared.config.handle_signals) {
    signals = std::make_unique<asio::signal_set>(threads.front()->context(), SIGINT, SIGTERM);
    await_signal();
  }
  acceptor->start();
  look();
  for (auto& thread : threads) thread->start();
  return {};
}

void Server::Impl::look() {
  watch.look(Clock::now());
  timer->expires_after(kLook);
  timer->async_wait([this](const error_code& failure) {
    if (!failure) look();
  });
}

void Server::Impl::abort() {
  shared.aborting = true;
  for (auto& thread : threads) asio::post(thread->context(), [&io = *thread] { io.abort_answers(); });
}

void Server::Impl::finish(bool whole) {
  acceptor->close();
  drained.set_value(whole);
}

void Server::Impl::await_signal() {
  signals->async_wait([this](const error_code& failure, int signal) {
    if (failure) return;
    const bool loading = shared.gate.life() == Gate::Life::kLoading;
    if (++signals_seen > 1 || loading) {
      log_warning("stopped at once{}", loading ? ": the model was still being loaded" : "");
      ::_exit(128 + signal);
    }
    shared.gate.drain();
    await_signal();
  });
}

Result<std::unique_ptr<Server>> Server::start(ServerConfig config) {
  auto impl = std::make_unique<Impl>(std::move(config));
  WH_TRY(impl->start());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() { stop(); }

void Server::stop() {
  impl_->workers->join();
  impl_->waiters->join();
  for (auto& thread : impl_->threads) thread->stop();
}

uint16_t Server::port() const { return impl_->acceptor->port(); }

std::string Server::url() const {
  const ServerConfig& config = impl_->shared.config;
  const bool v6 = config.host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", impl_->tls ? "https" : "http", v6 ? "[" : "", config.host,
                     v6 ? "]" : "", port());
}

Status Server::open(Engine& engine) {
  Shared& shared = impl_->shared;
  const ServerConfig& config = shared.config;
  auto service = std::make_unique<Service>();
  service->engine = &engine;
  service->context = openai::make_context(engine);
  openai::Context& context = service->context;
  const auto info = nlohmann::json::parse(engine.model_info_json(), nullptr, false);
  context.served_names = config.served_model_names;
  if (context.served_names.empty()) {
    context.served_names = {engine.config().model};
    const std::string name = info.value("model", "");  // as it was found, where that is another one
    if (!name.empty() && name != context.served_names.front()) context.served_names.push_back(name);
  }
  context.created = ::time(nullptr);
  context.strict_fields = config.strict_fields;
  context.max_timeout_s = config.request_timeout_s;
  context.chat_template_kwargs_json = config.chat_template_kwargs;
  context.auto_tool_choice = config.enable_auto_tool_choice;
  context.tool_call_parser = config.tool_call_parser;
  context.reasoning_parser = config.reasoning_parser;
  service->memory_json = info.value("memory", nlohmann::json::object()).dump();
  engine.set_after_events([this] {
    Shared& all = impl_->shared;
    for (size_t i = 0; i < all.outbox.size(); ++i) impl_->threads[i]->deliver(all.outbox[i]);
  });
  impl_->service = std::move(service);
  shared.service = impl_->service.get();
  const int32_t queued = config.max_queued_requests;
  shared.gate.open(queued > 0 ? engine.config().max_num_seqs + queued : 0);
  return {};
}

void Server::drain() { impl_->shared.gate.drain(); }

bool Server::wait() {
  const bool whole = impl_->drained.get_future().get();
  stop();
  return whole;
}

}  // namespace whippet::serve
