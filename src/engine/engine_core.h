// The engine: takes requests from any thread, runs them all together on its own, and pushes events.
// Used by the api, which adds text (templates, tokenizing, streaming decode). Read run() in engine_core.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "base/mailbox.h"
#include "engine/event.h"
#include "engine/limits.h"
#include "engine/memory.h"
#include "engine/metrics.h"
#include "engine/model_facts.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "model/loader.h"
#include "text/tokenizer.h"

namespace whippet {

class EngineCore {
 public:
  // Takes all memory. plan comes from plan_engine for this model's spec. The backend and the tokenizer must
  // outlive the engine; without a tokenizer, stop strings are refused.
  static Result<std::unique_ptr<EngineCore>> create(Model model, Backend& backend, const Tokenizer* tokenizer,
                                                    const EnginePlan& plan, ModelFacts facts);
  // The same over any runner: tests of the policy without a model.
  static std::unique_ptr<EngineCore> create(Runner runner, const CoreLimits& limits,
                                            const Tokenizer* tokenizer, ModelFacts facts);
  ~EngineCore();  // stop()

  // Warms up and starts the engine thread; returns when the first request will be as quick as the tenth.
  void start();
  // Ends all requests with "abort", joins the thread and closes events(). Idempotent.
  void stop();

  // Any thread. Errors name the field and the value, or prompt, requested and limit in tokens.
  Result<uint64_t> submit(CoreRequest request);
  // Any thread: "abort" within one step. Unknown and finished ids are ignored.
  void cancel(uint64_t request_id);

  // For one streamer thread: take() blocks for the next events, false after stop().
  Mailbox<CoreEvent>& events();

  // Any thread.
  EngineStats stats() const;
  std::string prometheus() const;
  void count_rejected();  // a request that the api refused before it came here

  const CoreLimits& limits() const;

 private:
  struct Impl;
  explicit EngineCore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace whippet
