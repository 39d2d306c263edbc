// Blocking calls over the streaming Engine: submit everything, gather, wait.
#include <condition_variable>
#include <mutex>
#include <utility>

#include "api/engine_impl.h"
#include "api/request_output.h"
#include "base/progress.h"

namespace whippet {
namespace {

// What the caller waits for. The streamer thread notifies under the lock: once the caller sees 0, it is gone.
struct Gathering {
  std::mutex mutex;
  std::condition_variable changed;
  size_t pending = 0;  // requests without their last event

  void one_less() {
    const std::lock_guard lock(mutex);
    --pending;
    changed.notify_one();
  }
};

}  // namespace

LLM::LLM(const EngineConfig& config) : engine_(std::make_unique<Engine>(config)) {}
LLM::~LLM() = default;
LLM::LLM(LLM&&) noexcept = default;
LLM& LLM::operator=(LLM&&) noexcept = default;

Engine& LLM::engine() { return *engine_; }

std::vector<RequestOutput> LLM::generate(std::vector<Request> requests, bool progress) {
  std::vector<RequestOutput> outputs(requests.size());
  Gathering gathering;
  gathering.pending = requests.size();
  Engine::Impl& impl = *engine_->impl_;
  for (size_t i = 0; i < requests.size(); ++i) {
    RequestOutput& output = outputs[i];
    const auto submit = [&]() -> Status {
      WH_ASSIGN(Prompt prompt, impl.prepare(requests[i]));
      output.prompt_token_ids = prompt.ids;
      const auto on_event = [&output, &gathering](const Event& event) {
        append_event(event, output);
        if (event.last) gathering.one_less();
      };
      WH_TRY(impl.submit(std::move(prompt), std::move(requests[i]), on_event));
      return {};
    };
    const Status status = submit();
    if (status.ok()) continue;
    output.error = status.error().message;
    gathering.one_less();
  }
  Progress bar("answers", outputs.size(), Progress::Unit::kCount);
  std::unique_lock lock(gathering.mutex);
  while (gathering.pending > 0) {
    gathering.changed.wait(lock);
    if (progress) bar.set(outputs.size() - gathering.pending);
  }
  return outputs;
}

std::vector<RequestOutput> LLM::generate(const std::vector<std::string>& prompts,
                                         const SamplingParams& params, bool progress) {
  std::vector<Request> requests(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    requests[i].prompt = prompts[i];
    requests[i].params = params;
  }
  return generate(std::move(requests), progress);
}

RequestOutput LLM::chat(const std::vector<Message>& messages, const SamplingParams& params) {
  std::vector<Request> requests(1);
  requests[0].messages = messages;
  requests[0].params = params;
  RequestOutput output = std::move(generate(std::move(requests), false).front());
  if (!output.error.empty()) throw Failure("invalid_argument", output.error);
  return output;
}

}  // namespace whippet
