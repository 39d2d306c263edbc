#include "grammar/grammar_cache.h"

#include <pthread.h>
#include <sys/resource.h>

#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "grammar/grammar_source.h"

namespace whippet::grammar {
namespace {

constexpr int kNiceness = 15;  // of the compiling thread: an engine's threads come first

std::string key_of(const GrammarSource& source) {
  return (source.kind == GrammarSource::Kind::kEbnf ? "e" : "s") + source.text;
}

// One compilation and all who wait for it.
struct Job {
  std::string key;
  GrammarSource source;
  std::optional<Result<CompiledGrammar>> result;
};

}  // namespace

struct GrammarCache::Impl {
  struct Entry {
    std::string key;
    CompiledGrammar grammar;
    size_t bytes;
  };

  Impl(std::function<GrammarVocabulary()> words, Limits bounds)
      : vocabulary(std::move(words)), limits(bounds), thread([this] { run(); }) {}

  void run();
  void keep(const std::string& key, const CompiledGrammar& grammar);

  std::function<GrammarVocabulary()> vocabulary;
  const Limits limits;
  std::mutex mutex;  // guards all below but the thread
  std::condition_variable work, done;
  std::list<Entry> entries;  // the one used last comes first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key;
  size_t bytes = 0;
  std::unordered_map<std::string, std::shared_ptr<Job>> jobs;  // shared by those who wait and the thread
  std::deque<std::shared_ptr<Job>> queue;
  bool stopping = false;
  std::thread thread;
};

void GrammarCache::Impl::run() {
  ::pthread_setname_np(::pthread_self(), "whippet-grammar");
  ::setpriority(PRIO_PROCESS, 0, kNiceness);  // on Linux, of this thread; where it is not allowed, so be it
  std::optional<GrammarBuilder> builder;
  std::unique_lock lock(mutex);
  while (true) {
    work.wait(lock, [this] { return stopping || !queue.empty(); });
    if (stopping) return;
    const std::shared_ptr<Job> job = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    if (!builder) builder.emplace(vocabulary());
    Result<CompiledGrammar> result = builder->compile(job->source);
    lock.lock();
    if (result.ok()) keep(job->key, *result);
    job->result = std::move(result);
    jobs.erase(job->key);
    done.notify_all();
  }
}

void GrammarCache::Impl::keep(const std::string& key, const CompiledGrammar& grammar) {
  entries.push_front({key, grammar, grammar.bytes() + 2 * key.size()});
  by_key[key] = entries.begin();
  bytes += entries.front().bytes;
  while (bytes > limits.bytes && entries.size() > 1) {
    bytes -= entries.back().bytes;
    by_key.erase(entries.back().key);
    entries.pop_back();
  }
}

GrammarCache::GrammarCache(std::function<GrammarVocabulary()> vocabulary, Limits limits)
    : impl_(std::make_unique<Impl>(std::move(vocabulary), limits)) {}

GrammarCache::~GrammarCache() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->work.notify_all();
  impl_->thread.join();
}

Result<CompiledGrammar> GrammarCache::get(const StructuredOutputs& asked) {
  WH_ASSIGN(GrammarSource source, grammar_source(asked));
  std::string key = key_of(source);
  std::unique_lock lock(impl_->mutex);
  if (const auto found = impl_->by_key.find(key); found != impl_->by_key.end()) {
    impl_->entries.splice(impl_->entries.begin(), impl_->entries, found->second);
    return found->second->grammar;
  }
  std::shared_ptr<Job>& slot = impl_->jobs[key];
  if (!slot) {
    if (impl_->queue.size() >= impl_->limits.waiting) {
      impl_->jobs.erase(key);
      return make_error(Code::kUnavailable,
                        "structured_outputs: too many grammars wait to be compiled: try again later");
    }
    slot = std::make_shared<Job>(Job{.key = key, .source = std::move(source), .result = {}});
    impl_->queue.push_back(slot);
    impl_->work.notify_one();
  }
  const std::shared_ptr<Job> job = slot;
  if (!impl_->done.wait_for(lock, impl_->limits.patience, [&] { return job->result.has_value(); }))
    return make_error(Code::kInvalidArgument,
                      "structured_outputs: the grammar was not compiled within {} s: make it smaller",
                      impl_->limits.patience.count() / 1000);
  return *job->result;
}

}  // namespace whippet::grammar
