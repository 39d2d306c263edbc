// Every field of a chat, with good and bad values.
#include "openai/testing.h"

namespace whippet::openai {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

using ChatRequest = CodecTest;

TEST_F(ChatRequest, APlainChatIsRenderedAndGetsTheRestOfTheContext) {
  const auto exchange = chat({});
  ASSERT_NE(exchange, nullptr) << error_.message;
  ASSERT_EQ(exchange->requests().size(), 1u);
  const Request& request = exchange->requests().front();
  EXPECT_EQ(
      prompt_of(exchange.get()),
      "<|im_start|>system\nBe nice.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_FALSE(request.prompt);
  EXPECT_EQ(request.params.max_tokens, 512 - static_cast<int32_t>(request.prompt_token_ids.size()));
  EXPECT_FALSE(exchange->stream());
  EXPECT_EQ(exchange->model(), "tiny");
  EXPECT_THAT(exchange->ignored_fields(), IsEmpty());
}

TEST_F(ChatRequest, SamplingFieldsBecomeParameters) {
  const SamplingParams params = chat_params({{"temperature", 0.5},
                                             {"top_p", 0.9},
                                             {"top_k", 40},
                                             {"min_p", 0.1},
                                             {"repetition_penalty", 1.1},
                                             {"presence_penalty", -1},
                                             {"frequency_penalty", 2},
                                             {"seed", -7},
                                             {"n", 3},
                                             {"min_tokens", 2},
                                             {"max_tokens", 9},
                                             {"stop", {"a", "b"}},
                                             {"stop_token_ids", {5}},
                                             {"include_stop_str_in_output", true},
                                             {"ignore_eos", true},
                                             {"skip_special_tokens", false},
                                             {"prompt_logprobs", 1},
                                             {"logit_bias", {{"65", -100}}},
                                             {"allowed_token_ids", {65, 66}},
                                             {"banned_token_ids", {67}}});
  SamplingParams expected;
  expected.temperature = 0.5f;
  expected.top_p = 0.9f;
  expected.top_k = 40;
  expected.min_p = 0.1f;
  expected.repetition_penalty = 1.1f;
  expected.presence_penalty = -1;
  expected.frequency_penalty = 2;
  expected.seed = static_cast<uint64_t>(-7);
  expected.n = 3;
  expected.min_tokens = 2;
  expected.max_tokens = 9;
  expected.stop = {"a", "b"};
  expected.stop_token_ids = {5};
  expected.include_stop_str_in_output = true;
  expected.ignore_eos = true;
  expected.skip_special_tokens = false;
  expected.prompt_logprobs = 1;
  expected.logit_bias = {{65, -100.f}};
  expected.allowed_token_ids = {65, 66};
  expected.banned_token_ids = {67};
  EXPECT_EQ(params, expected);
}

TEST_F(ChatRequest, TheServersDefaultsHoldWhereTheRequestSaysNothingOrNull) {
  context_.default_sampling.temperature = 0.7f;
  context_.default_sampling.top_k = 20;
  const SamplingParams params = chat_params({{"top_k", 5}, {"temperature", nullptr}});
  EXPECT_EQ(params.temperature, 0.7f);
  EXPECT_EQ(params.top_k, 5);
}

TEST_F(ChatRequest, WrongTypesAreRefusedByName) {
  const json text = "text";
  for (const char* name : {"temperature",
                           "top_p",
                           "top_k",
                           "min_p",
                           "repetition_penalty",
                           "presence_penalty",
                           "frequency_penalty",
                           "seed",
                           "n",
                           "min_tokens",
                           "max_tokens",
                           "max_completion_tokens",
                           "stop_token_ids",
                           "include_stop_str_in_output",
                           "ignore_eos",
                           "skip_special_tokens",
                           "prompt_logprobs",
                           "logit_bias",
                           "allowed_token_ids",
                           "banned_token_ids",
                           "logprobs",
                           "messages",
                           "stream",
                           "stream_options",
                           "echo",
                           "best_of",
                           "tools",
                           "response_format",
                           "modalities",
                           "continue_final_message",
                           "add_generation_prompt",
                           "add_special_tokens",
                           "chat_template_kwargs",
                           "documents",
                           "truncate_prompt_tokens",
                           "return_tokens_as_token_ids",
                           "return_token_ids",
                           "priority",
                           "timeout",
                           "store",
                           "metadata",
                           "parallel_tool_calls",
                           "prediction"})
    EXPECT_THAT(
        chat_error({{name, text}}),
        testing::AllOf(StartsWith("400 " + std::string(name) + " invalid_type: " + name + ": expected "),
                       HasSubstr("found \"text\"")));
  for (const char* name : {"model", "stop", "user", "service_tier", "prompt_cache_key", "safety_identifier",
                           "cache_salt", "prompt_template", "reasoning_effort"})
    EXPECT_THAT(chat_error({{name, 5}}), StartsWith("400 " + std::string(name) + " invalid_type: ")) << name;
  EXPECT_THAT(chat_error({{"stop", {"a", 5}}}), StartsWith("400 stop invalid_type: stop: expected a text"));
  EXPECT_THAT(chat_error({{"n", 1.5}}), HasSubstr("expected a whole number of 32 bits, found 1.5"));
  EXPECT_THAT(chat_error({{"seed", 1e30}}), StartsWith("400 seed invalid_type"));
  EXPECT_THAT(chat_error({{"top_logprobs", "x"}, {"logprobs", true}}),
              StartsWith("400 top_logprobs invalid_type"));
  EXPECT_THAT(chat_error({{"max_tokens", 99999999999}}), StartsWith("400 max_tokens invalid_type"));
}

TEST_F(ChatRequest, ValuesOutOfRangeAreRefusedByNameAndNumber) {
  const std::vector<std::pair<const char*, json>> wrong = {{"temperature", -1},
                                                           {"top_p", 0},
                                                           {"top_p", 1.5},
                                                           {"top_k", -2},
                                                           {"min_p", 2},
                                                           {"n", 0},
                                                           {"n", 1000},
                                                           {"repetition_penalty", 0},
                                                           {"presence_penalty", 3},
                                                           {"max_tokens", 0},
                                                           {"max_tokens", -5},
                                                           {"min_tokens", -1},
                                                           {"frequency_penalty", -3},
                                                           {"stop", {""}},
                                                           {"prompt_logprobs", 99},
                                                           {"stop_token_ids", {258}},
                                                           {"logit_bias", {{"5", 101}}},
                                                           {"allowed_token_ids", json::array()},
                                                           {"banned_token_ids", {-1}},
                                                           {"max_completion_tokens", 0},
                                                           {"priority", 1001},
                                                           {"timeout", 0},
                                                           {"timeout", -1},
                                                           {"truncate_prompt_tokens", 0}};
  for (const auto& [name, value] : wrong)
    EXPECT_THAT(chat_error({{name, value}}),
                StartsWith("400 " + std::string(name) + " invalid_value: " + name))
        << value;
  EXPECT_THAT(chat_error({{"temperature", -1}}),
              HasSubstr("temperature is -1, but must be 0 (greedy) or more"));
  EXPECT_THAT(chat_error({{"stop", std::vector<std::string>(65, "x")}}), HasSubstr("stop has 65 strings"));
}

TEST_F(ChatRequest, MaxCompletionTokensIsMaxTokens) {
  EXPECT_EQ(chat_params({{"max_completion_tokens", 7}}).max_tokens, 7);
  EXPECT_EQ(chat_params({{"max_completion_tokens", 7}, {"max_tokens", 7}}).max_tokens, 7);
  EXPECT_THAT(chat_error({{"max_completion_tokens", 7}, {"max_tokens", 8}}),
              HasSubstr("they mean the same, send one"));
}

TEST_F(ChatRequest, WithoutMaxTokensTheCheckpointsLengthHoldsAsFarAsItFits) {
  context_.default_max_tokens = 20;
  EXPECT_EQ(chat_params({}).max_tokens, 20);
  EXPECT_EQ(chat_params({{"min_tokens", 30}}).max_tokens, 30);
  context_.default_max_tokens = 5000;
  EXPECT_LT(chat_params({}).max_tokens, 512);
}

TEST_F(ChatRequest, WhatDoesNotFitIsRefusedWithItsNumbers) {
  EXPECT_EQ(
      chat_error({{"max_tokens", 500}}),
      "400 messages context_length_exceeded: This model's maximum context length is 512 tokens, but the "
      "request "
      "takes 539: 39 in the prompt and 500 for the answer. Shorten the prompt or ask for fewer tokens.");
  const json longer = {{{"role", "user"}, {"content", std::string(600, 'x')}}};
  EXPECT_THAT(chat_error({{"messages", longer}}),
              HasSubstr("637 in the prompt and 1 for the answer at least. Shorten the prompt."));
  EXPECT_EQ(chat_params({{"max_tokens", 473}}).max_tokens, 473) << "exactly full";
  EXPECT_THAT(chat_error({{"max_tokens", 474}}), HasSubstr("takes 513"));
}

TEST_F(ChatRequest, LogprobsAndTopLogprobs) {
  EXPECT_EQ(chat_params({}).logprobs, std::nullopt);
  EXPECT_EQ(chat_params({{"logprobs", false}, {"top_logprobs", 0}}).logprobs, std::nullopt);
  EXPECT_EQ(chat_params({{"logprobs", true}}).logprobs, 0);
  EXPECT_EQ(chat_params({{"logprobs", true}, {"top_logprobs", 5}}).logprobs, 5);
  EXPECT_THAT(chat_error({{"top_logprobs", 5}}),
              StartsWith("400 top_logprobs invalid_value: top_logprobs: only with"));
  EXPECT_THAT(chat_error({{"logprobs", true}, {"top_logprobs", 21}}),
              StartsWith("400 top_logprobs invalid_value: top_logprobs is 21, but must be between 0 and 20"));
  EXPECT_THAT(chat_error({{"logprobs", 5}}), StartsWith("400 logprobs invalid_type"));
}

TEST_F(ChatRequest, PromptLogprobsDoNotGoWithAStream) {
  EXPECT_THAT(chat_error({{"prompt_logprobs", 1}, {"stream", true}}), StartsWith("400 prompt_logprobs"));
}

TEST_F(ChatRequest, AModelThatIsNotServedIsA404ThatListsTheServed) {
  EXPECT_EQ(chat_error({{"model", "gpt-4"}}),
            "404 model model_not_found: the model 'gpt-4' does not exist here; this server has tiny, other");
  EXPECT_EQ(chat({{"model", "other"}})->model(), "other");
  EXPECT_EQ(chat({{"model", nullptr}})->model(), "tiny");
}

TEST_F(ChatRequest, StreamOptionsAreOfStreamsOnly) {
  EXPECT_NE(chat({{"stream", true}, {"stream_options", {{"include_usage", true}}}}), nullptr);
  EXPECT_NE(chat({{"stream_options", nullptr}}), nullptr);
  EXPECT_THAT(chat_error({{"stream_options", {{"include_usage", true}}}}), StartsWith("400 stream_options"));
  EXPECT_THAT(chat_error({{"stream", true}, {"stream_options", {{"include_usage", 1}}}}),
              StartsWith("400 stream_options.include_usage invalid_type"));
  const auto exchange =
      chat({{"stream", true}, {"stream_options", {{"new_thing", 1}, {"include_obfuscation", false}}}});
  EXPECT_THAT(exchange->ignored_fields(), ElementsAre("stream_options.new_thing"));
}

TEST_F(ChatRequest, FieldsWithoutMeaningAreAcceptedAndUnknownOnesReported) {
  const json known = {{"user", "me"},
                      {"store", true},
                      {"metadata", {{"a", "b"}}},
                      {"service_tier", "auto"},
                      {"prompt_cache_key", "k"},
                      {"safety_identifier", "s"},
                      {"parallel_tool_calls", false}};
  EXPECT_THAT(chat(known)->ignored_fields(), IsEmpty());
  EXPECT_THAT(chat({{"top_q", 1}, {"zeta", nullptr}, {"a b\n,\"é", {}}})->ignored_fields(),
              ElementsAre("a?b?????", "top_q", "zeta"));
  json many = json::object();
  for (int i = 0; i < 100; ++i) many["unknown" + std::to_string(i)] = 1;
  EXPECT_EQ(chat(many)->ignored_fields().size(), 32u);
  context_.strict_fields = true;
  EXPECT_NE(chat(known), nullptr);
  EXPECT_EQ(chat_error({{"top_q", 1}}),
            "400 top_q unknown_parameter: there is no field 'top_q' here (did you mean 'top_p'?)");
}

TEST_F(ChatRequest, WhatCannotBeHonouredIsAlwaysRefused) {
  const std::vector<std::pair<const char*, json>> fields = {{"audio", {{"voice", "x"}}},
                                                            {"functions", {{{"name", "f"}}}},
                                                            {"function_call", "auto"},
                                                            {"web_search_options", {{"a", 1}}},
                                                            {"chat_template", "{{ x }}"},
                                                            {"logits_processors", {"x"}},
                                                            {"bad_words", {"x"}},
                                                            {"use_beam_search", true},
                                                            {"best_of", 3},
                                                            {"modalities", {"text", "audio"}},
                                                            {"add_special_tokens", true}};
  for (const auto& [name, value] : fields)
    EXPECT_THAT(chat_error({{name, value}}),
                StartsWith("400 " + std::string(name) + " unsupported_parameter: " + name));
  for (const json& neutral :
       {json{{"bad_words", json::array()}}, json{{"use_beam_search", false}}, json{{"guided_json", nullptr}},
        json{{"best_of", 1}}, json{{"modalities", {"text"}}}, json{{"response_format", {{"type", "text"}}}},
        json{{"add_special_tokens", false}}})
    EXPECT_NE(chat(neutral), nullptr) << neutral << error_.message;
}

TEST_F(ChatRequest, PriorityDeadlineAndSaltReachTheEngine) {
  const auto exchange = chat({{"priority", -3}, {"timeout", 2.5}, {"cache_salt", "mine"}});
  const Request& request = exchange->requests().front();
  EXPECT_EQ(request.priority, -3);
  EXPECT_EQ(request.timeout_s, 2.5);
  EXPECT_EQ(request.cache_salt, "mine");
  EXPECT_EQ(chat({})->requests().front().timeout_s, 0);
  context_.max_timeout_s = 60;
  EXPECT_EQ(chat({})->requests().front().timeout_s, 60);
  EXPECT_THAT(chat_error({{"timeout", 61}}),
              HasSubstr("timeout is 61 seconds, but must be more than 0 and at most 60"));
}

TEST_F(ChatRequest, PromptTemplatesAreNamed) {
  EXPECT_EQ(prompt_of(chat({{"prompt_template", "minimal"}}).get()),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(
      chat_error({{"prompt_template", "code"}}),
      "400 prompt_template invalid_value: prompt_template: there is no \"code\"; there are default, minimal");
}

TEST_F(ChatRequest, TemplateVariablesOfTheRequestStandOverTheServers) {
  context_.chat_template_kwargs_json = R"({"thinking": "server"})";
  EXPECT_THAT(prompt_of(chat({}).get()), HasSubstr("<think>server"));
  EXPECT_THAT(prompt_of(chat({{"chat_template_kwargs", {{"thinking", "request"}}}}).get()),
              HasSubstr("<think>request"));
  for (const char* name : {"bos_token", "messages", "tools", "add_generation_prompt"})
    EXPECT_THAT(chat_error({{"chat_template_kwargs", {{name, "x"}}}}),
                StartsWith(std::string("400 chat_template_kwargs.") + name));
}

TEST_F(ChatRequest, WhatTheTemplateRefusesIsA400WithItsLine) {
  EXPECT_THAT(chat_error({{"chat_template_kwargs", {{"forbidden", true}}}}),
              testing::AllOf(StartsWith("400 messages invalid_value: chat template, line "),
                             HasSubstr("that is forbidden")));
}

TEST_F(ChatRequest, AnAnswerBeginsOrGoesOn) {
  EXPECT_FALSE(prompt_of(chat({{"add_generation_prompt", false}}).get()).ends_with("assistant\n"));
  const json messages = {{{"role", "user"}, {"content", "Hi"}},
                         {{"role", "assistant"}, {"content", "Hello, "}}};
  for (const json& more : {json{{"continue_final_message", true}},
                           json{{"continue_final_message", true}, {"add_generation_prompt", false}}}) {
    json body = more;
    body["messages"] = messages;
    EXPECT_TRUE(prompt_of(chat(body).get()).ends_with("<|im_start|>assistant\nHello, "));
  }
  EXPECT_THAT(chat_error({{"continue_final_message", true}, {"add_generation_prompt", true}}),
              StartsWith("400 continue_final_message invalid_value"));
}

TEST_F(ChatRequest, PromptsAreTruncatedAtTheirBeginning) {
  EXPECT_EQ(prompt_of(chat({{"truncate_prompt_tokens", 11}}).get()), "<|im_start|>assistant\n");
  EXPECT_TRUE(prompt_of(chat({}).get()).ends_with(prompt_of(chat({{"truncate_prompt_tokens", 11}}).get())));
  EXPECT_EQ(chat({{"truncate_prompt_tokens", 11}})->requests().front().prompt_token_ids.size(), 11u);
  const json longer = {{{"role", "user"}, {"content", std::string(600, 'x')}}};
  EXPECT_EQ(chat({{"messages", longer}, {"truncate_prompt_tokens", -1}, {"max_tokens", 12}})
                ->requests()
                .front()
                .prompt_token_ids.size(),
            500u);
}

TEST_F(ChatRequest, BrokenBodiesAreRefusedBeforeAnythingElse) {
  EXPECT_EQ(parsed(parse_chat(context_, "{\"model\": ", "id")), nullptr);
  EXPECT_THAT(shown_error(), StartsWith("400  invalid_json: the body is no valid JSON at byte 11"));
}

}  // namespace
}  // namespace whippet::openai
