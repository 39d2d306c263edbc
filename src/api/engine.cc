// The public Engine over EngineCore: checks, prompts, default token limits, and the streamer.
#include <algorithm>
#include <limits>
#include <utility>

#include "api/engine_impl.h"
#include "api/prompt.h"
#include "api/sampling_fields.h"
#include "api/stats_json.h"
#include "base/version.h"

namespace whippet {
namespace {

constexpr int32_t kCompletionTokens = 16;  // of an answer to a raw prompt that sets no max_tokens

[[noreturn]] void raise(const Error& error) { throw Failure(code_name(error.code), error.message); }

template <class T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return std::move(result).value();
}

// What the answer may have where the request does not say: nullopt leaves it to the engine (the rest of the
// context), and a checkpoint's max_new_tokens bounds it without making a long prompt an error.
std::optional<int32_t> default_max_tokens(const LoadedModel& model, const Prompt& prompt) {
  const std::optional<int32_t> asked = model.files.generation.max_new_tokens;
  if (!prompt.is_chat) return kCompletionTokens;
  if (!asked) return std::nullopt;
  const int64_t rest = model.config.max_model_len - static_cast<int64_t>(prompt.ids.size());
  return rest > 0 && *asked > rest ? std::nullopt : asked;
}

}  // namespace

std::string dump_json(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Result<Prompt> Engine::Impl::prepare(const Request& request) const {
  Result<Prompt> prompt = make_prompt(model.files, request);
  if (!prompt.ok()) model.core->count_rejected();
  return prompt;
}

Result<uint64_t> Engine::Impl::submit(Prompt prompt, Request request, EventCallback on_event) {
  CoreRequest core;
  core.params = std::move(request.params);
  if (!core.params.max_tokens) core.params.max_tokens = default_max_tokens(model, prompt);
  core.prompt = std::move(prompt.ids);
  core.priority = request.priority;
  core.timeout_s = request.timeout_s;
  core.cache_salt = std::move(request.cache_salt);
  if (core.params.structured_outputs) {
    WH_TRY(check_sampling_fields(core.params, model.facts.vocab_used));  // before what takes long
    WH_ASSIGN(core.token_mask, make_mask(core.params));
  }
  return streamer->submit(std::move(core), std::move(on_event));
}

// Counts a refusal.
Result<TokenMask> Engine::Impl::make_mask(SamplingParams& params) {
  WH_TRY(require_tokenizer(model.files));
  Result<TokenMask> mask = masks->make(params);
  if (!mask.ok()) model.core->count_rejected();
  return mask;
}

void Engine::Impl::start() {
  const Tokenizer* tokenizer = model.files.tokenizer ? &*model.files.tokenizer : nullptr;
  streamer = std::make_unique<Streamer>(*model.core, tokenizer);
  if (tokenizer != nullptr)
    masks = std::make_unique<TokenMasks>(*tokenizer, model.facts.vocab_used, model.facts.eos_ids);
}

Engine::Engine(const EngineConfig& config) : impl_(std::make_unique<Impl>()) {
  const Status status = load_served_model(config, impl_->model);
  if (!status.ok()) raise(status.error());
  impl_->start();
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Engine::Impl::~Impl() {
  if (model.core) model.core->stop();  // closes the events, so that the streamer ends
}

Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

uint64_t Engine::submit(Request request, std::function<void(const Event&)> on_event) {
  Prompt prompt = value_or_raise(impl_->prepare(request));
  return value_or_raise(impl_->submit(std::move(prompt), std::move(request), std::move(on_event)));
}

void Engine::prepare(const StructuredOutputs& asked) const {
  SamplingParams params;
  params.structured_outputs = asked;
  value_or_raise(impl_->make_mask(params));
}

void Engine::cancel(uint64_t request_id) { impl_->model.core->cancel(request_id); }

void Engine::set_after_events(std::function<void()> after_events) {
  impl_->streamer->set_after_events(std::move(after_events));
}

EngineCounts Engine::counts() const {
  const EngineStats stats = impl_->model.core->stats();
  return {.running = stats.running,
          .waiting = stats.waiting,
          .steps = stats.steps,
          .prompt_tokens = stats.prompt_tokens,
          .generation_tokens = stats.generation_tokens,
          .prefix_queries = stats.prefix_queries,
          .prefix_hits = stats.prefix_hits,
          .kv_usage = stats.kv_usage};
}

const EngineConfig& Engine::config() const { return impl_->model.config; }
std::string Engine::stats_json() const { return dump_json(stats_to_json(impl_->model.core->stats())); }
std::string Engine::metrics() const { return impl_->model.core->prometheus(); }
std::string Engine::model_info_json() const { return dump_json(impl_->model.info); }
int32_t Engine::max_model_len() const { return impl_->model.config.max_model_len; }
SamplingParams Engine::default_sampling_params() const { return impl_->model.files.generation.params; }

std::optional<int32_t> Engine::default_chat_tokens() const {
  return impl_->model.files.generation.max_new_tokens;
}

int32_t Engine::vocab_size() const {
  const LoadedModel& model = impl_->model;
  const auto sizes = model.info.find("sizes");
  const int32_t weights =
      sizes == model.info.end() ? std::numeric_limits<int32_t>::max() : sizes->value("vocab_size", 0);
  return model.files.tokenizer ? std::min(model.files.tokenizer->vocab_size(), weights) : weights;
}

std::vector<int32_t> Engine::encode(const std::string& text, bool parse_special,
                                    bool add_special_tokens) const {
  const Tokenizer* tokenizer = value_or_raise(require_tokenizer(impl_->model.files));
  return tokenizer->encode(text, {.parse_special = parse_special, .add_special_tokens = add_special_tokens});
}

std::string Engine::decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const {
  return value_or_raise(require_tokenizer(impl_->model.files))->decode(ids, skip_special_tokens);
}

std::string Engine::token_bytes(int32_t id) const {
  const std::optional<Tokenizer>& tokenizer = impl_->model.files.tokenizer;
  return tokenizer ? std::string(tokenizer->token_bytes(id)) : "";
}

std::pair<std::string, std::vector<int32_t>> Engine::render(const Request& chat) const {
  Prompt prompt = value_or_raise(make_prompt(impl_->model.files, chat));
  return {std::move(prompt.text), std::move(prompt.ids)};
}

std::string version() { return fmt::format("{} ({})", release(), commit()); }

}  // namespace whippet
