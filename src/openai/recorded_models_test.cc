// Whole exchanges over the tokenizers and templates of real models, whose answers are played back: what goes
// into the prompt, and what comes out of the tokens.
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "api/fake_engine.h"
#include "api/test_folder.h"
#include "openai/event_testing.h"
#include "openai/testing.h"
#include "whippet/whippet.h"

namespace whippet::openai {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class RecordedModels : public testing::Test {
 protected:
  // The model of ../shared/data; false: it is not there.
  bool load(const char* name) {
    const fs::path folder = fs::path(WHIPPET_SOURCE_DIR) / "../shared/data" / name;
    std::error_code failed;
    if (!fs::exists(folder, failed)) return false;
    engine_ = std::make_unique<Engine>(FakeEngine::make({.model = folder, .on_step = [this](int64_t) {
                                                           const size_t at = next_.fetch_add(1);
                                                           return at < script_.size() ? script_[at] : 0;
                                                         }}));
    context_ = make_context(*engine_);
    context_.served_names = {"model"};
    context_.prepare_grammar = nullptr;
    return true;
  }

  // What the model says to a chat; "<|im_end|>" and its like are control tokens. The prompt goes to prompt_.
  std::string answer(json body, const std::string& says) {
    body["messages"] = body.value("messages", json{{{"role", "user"}, {"content", "How warm is Paris?"}}});
    body["max_tokens"] = body.value("max_tokens", 200);
    auto parsed = parse_chat(context_, body.dump(), "id");
    if (const auto* error = std::get_if<ApiError>(&parsed)) return error->body();
    Exchange& exchange = *std::get<0>(parsed);
    prompt_ = engine_->decode(exchange.requests().front().prompt_token_ids, false);
    params_ = exchange.requests().front().params;
    exchange.requests().front().params.structured_outputs.reset();  // a played answer needs no grammar
    script_ = engine_->encode(says);
    next_ = 0;
    std::mutex mutex;
    std::condition_variable changed;
    std::string out;
    exchange.begin_stream(out);
    engine_->submit(std::move(exchange.requests().front()), [&](const Event& event) {
      const std::lock_guard lock(mutex);
      exchange.on_event(0, event, out);
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return exchange.done(); });
    if (!exchange.stream()) return exchange.error() ? exchange.error()->body() : exchange.body();
    exchange.end_stream(out);
    return out;
  }
  json choice(json body, const std::string& says) {
    return json::parse(answer(std::move(body), says))["choices"][0];
  }
  // Calls as "name(arguments)", content and thinking of a message.
  static std::string shown(const json& message) {
    std::string text = message["content"].is_string() ? message["content"].get<std::string>() : "null";
    for (const json& call : message.value("tool_calls", json::array()))
      text += "|" + call["function"]["name"].get<std::string>() +
              call["function"]["arguments"].get<std::string>();
    return text;
  }

  static json with_tools(json more = json::object()) {
    more["tools"] = json::parse(R"([{"type": "function", "function": {"name": "weather",
      "description": "The weather",
      "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
                     "required": ["city"]}}}])");
    return more;
  }
  static json second_turn() {
    return with_tools({{"messages", json::parse(R"([{"role": "user", "content": "How warm is Paris?"},
      {"role": "assistant", "content": null, "reasoning_content": "Ask.",
       "tool_calls": [{"id": "call_1", "type": "function",
                       "function": {"name": "weather", "arguments": "{\"city\": \"Paris\"}"}}]},
      {"role": "tool", "tool_call_id": "call_1", "content": "21 degrees"}])")}});
  }

  std::unique_ptr<Engine> engine_;
  Context context_;
  std::string prompt_;
  SamplingParams params_;
  std::vector<int32_t> script_;
  std::atomic<size_t> next_ = 0;
};

TEST_F(RecordedModels, Qwen25CallsAndReadsResults) {
  if (!load("qwen2.5-0.5b-instruct")) GTEST_SKIP() << "no files of the model";
  const json got = choice(with_tools(),
                          "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}\n"
                          "</tool_call><|im_end|>");
  EXPECT_EQ(shown(got["message"]), "null|weather{\"city\":\"Paris\"}");
  EXPECT_EQ(got["finish_reason"], "tool_calls");
  EXPECT_THAT(prompt_, HasSubstr("\"name\": \"weather\""));
  EXPECT_FALSE(got["message"].contains("reasoning")) << "it has no token for thinking";
  EXPECT_EQ(shown(choice(second_turn(), "It is 21 degrees.<|im_end|>")["message"]), "It is 21 degrees.");
  EXPECT_THAT(
      prompt_,
      HasSubstr("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>"));
  EXPECT_THAT(prompt_, HasSubstr("<tool_response>\n21 degrees\n</tool_response>"));
  choice(with_tools({{"tool_choice", "none"}}), "No.<|im_end|>");
  EXPECT_THAT(prompt_, Not(HasSubstr("weather")));
}

TEST_F(RecordedModels, AStreamCutAtEveryTokenGivesTheSameCall) {
  if (!load("qwen2.5-0.5b-instruct")) GTEST_SKIP() << "no files of the model";
  const std::string call =
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"N\\u00eemes "
      "\xE4\xBD\xA0\"}}\n</tool_call>";
  const json whole = choice(with_tools(), "I look.\n" + call + "<|im_end|>");
  EXPECT_EQ(shown(whole["message"]), "I look.|weather{\"city\":\"Nîmes 你\"}");
  std::string content, arguments, name;
  for (const json& event :
       events_of(answer(with_tools({{"stream", true}}), "I look.\n" + call + "<|im_end|>"))) {
    if (!event.is_object()) continue;
    const json& delta = event["choices"][0]["delta"];
    content += delta.value("content", "");
    for (const json& piece : delta.value("tool_calls", json::array())) {
      name += piece["function"].value("name", "");
      arguments += piece["function"].value("arguments", "");
    }
  }
  EXPECT_EQ(content + "|" + name + arguments, shown(whole["message"]));
  // At every limit: the call as it was, or all of it as text.
  const size_t tokens = engine_->encode("I look.\n" + call).size();
  for (size_t limit = 1; limit <= tokens; ++limit) {
    const json got = choice(with_tools({{"max_tokens", limit}}), "I look.\n" + call + "<|im_end|>");
    EXPECT_EQ(got["finish_reason"], "length");
    const std::string text = shown(got["message"]);
    if (text == shown(whole["message"])) continue;
    EXPECT_TRUE(("I look.\n" + call).starts_with(text) && !got["message"].contains("tool_calls")) << text;
  }
}

TEST_F(RecordedModels, Qwen3ThinksAndCalls) {
  if (!load("qwen3")) GTEST_SKIP() << "no files of the model";
  const std::string says =
      "<think>\nI need the weather.\n</think>\n\n<tool_call>\n{\"name\": \"weather\", \"arguments\": "
      "{\"city\": \"Paris\"}}\n</tool_call><|im_end|>";
  const json body = json::parse(answer(with_tools(), says));
  const json& got = body["choices"][0];
  EXPECT_EQ(shown(got["message"]), "null|weather{\"city\":\"Paris\"}");
  EXPECT_EQ(got["message"]["reasoning"], "I need the weather.");
  const auto thought = engine_->encode("<think>\nI need the weather.\n</think>").size();
  EXPECT_EQ(body["usage"]["completion_tokens_details"]["reasoning_tokens"], thought);
  EXPECT_EQ(shown(choice(second_turn(), "<think>\n\n</think>\n\n21.<|im_end|>")["message"]), "21.");
  EXPECT_THAT(prompt_, HasSubstr("<think>\nAsk.\n</think>\n\n<tool_call>"))
      << "between calls this template reads it";
}

TEST_F(RecordedModels, Qwen3NeedNotThink) {
  if (!load("qwen3")) GTEST_SKIP() << "no files of the model";
  for (const json& off :
       {json{{"reasoning_effort", "none"}}, json{{"chat_template_kwargs", {{"enable_thinking", false}}}}}) {
    const json got = choice(off, "21.<|im_end|>");
    EXPECT_THAT(prompt_, EndsWith("<think>\n\n</think>\n\n"));
    EXPECT_EQ(got["message"]["reasoning"], nullptr);
    EXPECT_EQ(shown(got["message"]), "21.");
  }
  choice({{"reasoning_effort", "low"}}, "21.<|im_end|>");
  EXPECT_THAT(prompt_, EndsWith("<|im_start|>assistant\n"));
  const json history = {{{"role", "user"}, {"content", "a"}},
                        {{"role", "assistant"}, {"content", "b"}, {"reasoning_content", "secret"}},
                        {{"role", "user"}, {"content", "c"}}};
  choice({{"messages", history}}, "d<|im_end|>");
  EXPECT_THAT(prompt_, Not(HasSubstr("secret"))) << "thinking of earlier turns is not sent back";
}

TEST_F(RecordedModels, Qwen3ThinksBeforeItIsHeldToAnything) {
  if (!load("qwen3")) GTEST_SKIP() << "no files of the model";
  const json got = choice(
      with_tools({{"tool_choice", "required"}}),
      "Hm.\n</think>\n\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {}}\n</tool_call><|im_end|>");
  EXPECT_THAT(prompt_, EndsWith("<|im_start|>assistant\n<think>\n"));
  EXPECT_EQ(params_.structured_outputs.value().after, "</think>");
  EXPECT_EQ(got["message"]["reasoning"], "Hm.");
  EXPECT_EQ(shown(got["message"]), "null|weather{}");
  choice(with_tools({{"tool_choice", "required"}, {"reasoning_effort", "none"}}), "x<|im_end|>");
  EXPECT_EQ(params_.structured_outputs.value().after, "");
}

TEST_F(RecordedModels, InternLM2CallsThroughControlTokens) {
  if (!load("internlm2")) GTEST_SKIP() << "no files of the model";
  const json got =
      choice(with_tools(),
             "I look.<|action_start|><|plugin|>\n{\"name\": \"weather\", \"parameters\": {\"city\": "
             "\"Paris\"}}<|action_end|>nothing more");
  EXPECT_EQ(shown(got["message"]), "I look.|weather{\"city\":\"Paris\"}");
  EXPECT_EQ(got["finish_reason"], "tool_calls");
  EXPECT_EQ(got["stop_reason"], nullptr);
  EXPECT_THAT(prompt_, HasSubstr("<|im_start|>system name=<|plugin|>\n[\n{\"description\": \"The weather\""));
  choice(second_turn(), "21.<|im_end|>");
  EXPECT_THAT(prompt_, HasSubstr("<|action_start|><|plugin|>\n{\"name\": \"weather\", \"parameters\": "
                                 "{\"city\": \"Paris\"}}<|action_end|>"));
  EXPECT_THAT(prompt_, HasSubstr("<|im_start|>environment name=<|plugin|>\n21 degrees<|im_end|>"));
  // Without tools control tokens are not shown, and nothing is looked for.
  EXPECT_EQ(shown(choice(json::object(), "a<|action_start|><|plugin|>b</s>")["message"]), "ab");
}

TEST_F(RecordedModels, Llama3CallsWithABareObject) {
  if (!load("qwen2.5-0.5b-instruct")) GTEST_SKIP() << "no files of the model";
  // Llama's template over this tokenizer: what matters is the text.
  const fs::path folder = fs::path(WHIPPET_SOURCE_DIR) / "../shared/data";
  TestFolder copy;
  fs::copy(folder / "qwen2.5-0.5b-instruct/tokenizer.json", copy.path() / "tokenizer.json");
  fs::copy(folder / "chat_templates/meta-llama-Llama-3.2-3B-Instruct.jinja",
           copy.path() / "chat_template.jinja");
  copy.write("tokenizer_config.json", R"({"bos_token": "<|begin_of_text|>", "eos_token": "<|im_end|>"})");
  engine_.reset();
  engine_ = std::make_unique<Engine>(FakeEngine::make({.model = copy.path(), .on_step = [this](int64_t) {
                                                         const size_t at = next_.fetch_add(1);
                                                         return at < script_.size() ? script_[at] : 0;
                                                       }}));
  context_ = make_context(*engine_);
  context_.served_names = {"model"};
  const json got =
      choice(with_tools(), "{\"name\": \"weather\", \"parameters\": {\"city\": \"Paris\"}}<|im_end|>");
  EXPECT_EQ(shown(got["message"]), "null|weather{\"city\":\"Paris\"}");
  choice(second_turn(), "21.<|im_end|>");
  EXPECT_THAT(prompt_, HasSubstr("{\"name\": \"weather\", \"parameters\": {\"city\": \"Paris\"}}<|eot_id|>"));
  EXPECT_THAT(prompt_, HasSubstr("ipython"));
}

TEST_F(RecordedModels, SmolLM2IsToldInWords) {
  if (!load("smollm2")) GTEST_SKIP() << "no files of the model";
  const json got = choice(
      with_tools(),
      "<tool_call>[{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}]</tool_call><|im_end|>");
  EXPECT_EQ(shown(got["message"]), "null|weather{\"city\":\"Paris\"}");
  EXPECT_THAT(prompt_, testing::StartsWith("<|im_start|>system\nYou can call functions."));
  choice(second_turn(), "21.<|im_end|>");
  EXPECT_THAT(prompt_,
              HasSubstr("<|im_start|>user\n<tool_response>\n21 degrees\n</tool_response><|im_end|>"));
}

}  // namespace
}  // namespace whippet::openai
