// /v1/completions: prompts of every kind, and the fields that are its own. /tokenize, /detokenize and
// /v1/models.
#include "openai/testing.h"

namespace whippet::openai {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using CompletionRequest = CodecTest;

TEST_F(CompletionRequest, OnePromptOrMany) {
  const auto prompts = [&](const json& prompt) {
    const auto exchange = completion({{"prompt", prompt}});
    std::vector<std::string> texts;
    if (exchange == nullptr) return std::vector<std::string>{shown_error()};
    for (size_t i = 0; i < exchange->requests().size(); ++i) texts.push_back(prompt_of(exchange.get(), i));
    return texts;
  };
  EXPECT_THAT(prompts("Hi"), ElementsAre("Hi"));
  EXPECT_THAT(prompts({"Hi", "Ho<|im_end|>"}), ElementsAre("Hi", "Ho<|im_end|>"));
  EXPECT_THAT(prompts({72, 105, 257}), ElementsAre("Hi<|im_end|>"));
  EXPECT_THAT(prompts({{72}, {105, 105}}), ElementsAre("H", "ii"));
  EXPECT_THAT(prompts({{72}, "x"}), ElementsAre("H", "x"));
  EXPECT_THAT(prompts(""),
              ElementsAre(StartsWith("400 prompt invalid_value: prompt: there is no token in it")));
  EXPECT_THAT(prompts(json::array()), ElementsAre(StartsWith("400 prompt invalid_value")));
  EXPECT_THAT(prompts(5), ElementsAre(StartsWith("400 prompt invalid_type")));
  EXPECT_THAT(prompts({72, "x"}), ElementsAre(StartsWith("400 prompt[1] invalid_type")));
  EXPECT_THAT(prompts({"x", 72}), ElementsAre(StartsWith("400 prompt[1] invalid_type")));
  EXPECT_THAT(
      prompts({72, 258}),
      ElementsAre(
          "400 prompt[1] invalid_value: prompt[1]: token id 258 is outside the vocabulary (0 to 257)"));
  EXPECT_THAT(prompts({{72}, {-1}}), ElementsAre(StartsWith("400 prompt[1][0] invalid_value")));
  EXPECT_THAT(prompts(std::vector<std::string>(2049, "x")),
              ElementsAre(HasSubstr("prompt has 2049 prompts")));
  EXPECT_THAT(completion_error({{"prompt", nullptr}}), StartsWith("400 prompt missing_required_parameter"));
  EXPECT_THAT(completion_error({{"prompt", nullptr}, {"messages", json::array()}}),
              HasSubstr("/v1/chat/completions"));
  EXPECT_THAT(completion_error({{"prompt", std::vector<std::string>(2048, "x")}, {"n", 5}}),
              StartsWith("400 n "));
}

TEST_F(CompletionRequest, AnswersHaveSixteenTokensWhereTheRequestSaysNothing) {
  EXPECT_EQ(completion_params({}).max_tokens, 16);
  EXPECT_EQ(completion_params({{"prompt", std::string(510, 'x')}}).max_tokens, 2) << "as far as they fit";
  EXPECT_EQ(completion_params({{"min_tokens", 20}}).max_tokens, 20);
  EXPECT_EQ(completion_params({{"max_tokens", 5}}).max_tokens, 5);
  EXPECT_THAT(completion_error({{"max_tokens", 511}}), StartsWith("400 prompt context_length_exceeded"));
  EXPECT_THAT(completion_error({{"max_tokens", 0}}), StartsWith("400 max_tokens invalid_value"));
  EXPECT_THAT(completion_error({{"max_tokens", "5"}}), StartsWith("400 max_tokens invalid_type"));
  EXPECT_THAT(completion_error({{"max_tokens", -1}, {"echo", true}}),
              StartsWith("400 max_tokens invalid_value"));
}

TEST_F(CompletionRequest, LogprobsAreANumber) {
  EXPECT_EQ(completion_params({}).logprobs, std::nullopt);
  EXPECT_EQ(completion_params({{"logprobs", 0}}).logprobs, 0);
  const SamplingParams echoed = completion_params({{"logprobs", 3}, {"echo", true}});
  EXPECT_EQ(echoed.logprobs, 3);
  EXPECT_EQ(echoed.prompt_logprobs, 3) << "the prompt is part of the answer";
  EXPECT_THAT(completion_error({{"logprobs", 21}}), StartsWith("400 logprobs invalid_value"));
  EXPECT_THAT(completion_error({{"logprobs", true}}), StartsWith("400 logprobs invalid_type"));
}

TEST_F(CompletionRequest, WhatCannotBeHonouredIsRefused) {
  EXPECT_THAT(completion_error({{"suffix", "end"}}), StartsWith("400 suffix unsupported_parameter"));
  EXPECT_THAT(completion_error({{"best_of", 2}}), StartsWith("400 best_of unsupported_parameter"));
  EXPECT_THAT(completion_error({{"prompt_embeds", "x"}}),
              StartsWith("400 prompt_embeds unsupported_parameter"));
  EXPECT_THAT(completion_error({{"response_format", {{"type", "yaml"}}}}),
              StartsWith("400 response_format.type"));
  EXPECT_NE(completion({{"suffix", ""}, {"best_of", 1}}), nullptr);
  EXPECT_NE(completion({{"n", 3}, {"best_of", 3}}), nullptr);
}

TEST_F(CompletionRequest, TokenizeIsWhatACompletionOrAChatWouldBe) {
  const auto tokens = [&](const json& body) {
    const auto result = tokenize(context_, body.dump());
    if (const auto* error = std::get_if<ApiError>(&result)) {
      error_ = *error;
      return json(shown_error());
    }
    return json::parse(std::get<0>(result));
  };
  EXPECT_EQ(tokens({{"model", "tiny"}, {"prompt", "Hi"}}),
            json::parse(R"({"count": 2, "max_model_len": 512, "tokens": [72, 105], "token_strs": null})"));
  EXPECT_EQ(tokens({{"prompt", "é<|im_end|>"}, {"return_token_strs", true}})["token_strs"],
            json::parse(R"(["bytes:\\xc3", "bytes:\\xa9", "<|im_end|>"])"));
  const json messages = {{{"role", "user"}, {"content", "Hi"}}};
  for (const json& more :
       {json::object(), json{{"prompt_template", "minimal"}}, json{{"add_generation_prompt", false}}}) {
    json body = more;
    body["messages"] = messages;
    EXPECT_EQ(tokens(body)["tokens"], chat(body)->requests().front().prompt_token_ids);
  }
  EXPECT_THAT(tokens({{"model", "x"}, {"prompt", "Hi"}}), StartsWith("404 model model_not_found"));
  EXPECT_THAT(tokens(json::object()), StartsWith("400 prompt missing"));
  EXPECT_THAT(tokens({{"prompt", "x"}, {"messages", messages}}), HasSubstr("exclude each other"));
  EXPECT_THAT(tokens({{"messages", messages}, {"add_special_tokens", true}}),
              StartsWith("400 add_special_tokens"));
  EXPECT_THAT(tokens({{"prompt", 5}}), StartsWith("400 prompt invalid_type"));
  EXPECT_THAT(tokens({{"prompt", "x"}, {"add_special_tokens", 1}}),
              StartsWith("400 add_special_tokens invalid_type"));
}

TEST_F(CompletionRequest, DetokenizeIsTheOtherWay) {
  const auto prompt = [&](const json& body) {
    const auto result = detokenize(context_, body.dump());
    if (const auto* error = std::get_if<ApiError>(&result)) return error->message;
    return json::parse(std::get<0>(result))["prompt"].get<std::string>();
  };
  EXPECT_EQ(prompt({{"tokens", {72, 105, 257}}}), "Hi<|im_end|>");
  EXPECT_EQ(prompt({{"tokens", json::array()}}), "");
  EXPECT_EQ(prompt({{"tokens", {195}}}), "\xEF\xBF\xBD");
  EXPECT_THAT(prompt({{"tokens", {258}}}), HasSubstr("outside the vocabulary"));
  EXPECT_THAT(prompt({{"tokens", "x"}}), HasSubstr("expected an array"));
  EXPECT_THAT(prompt(json::object()), HasSubstr("is missing"));
}

TEST_F(CompletionRequest, ModelCardsSayHowLongASequenceMayBe) {
  const json models = json::parse(models_body(context_));
  EXPECT_EQ(models["object"], "list");
  ASSERT_EQ(models["data"].size(), 2u);
  EXPECT_EQ(models["data"][1], json::parse(R"({"id": "other", "object": "model", "created": 1700000000,
    "owned_by": "whippet", "root": "tiny", "parent": null, "max_model_len": 512})"));
  EXPECT_EQ(json::parse(std::get<0>(model_body(context_, "other"))), models["data"][1]);
  EXPECT_EQ(std::get<1>(model_body(context_, "gpt")).status, 404);
  EXPECT_EQ(std::get<1>(model_body(context_, "")).status, 404);
  EXPECT_EQ(std::get<1>(model_body(context_, "\xff\"")).status, 404);
}

}  // namespace
}  // namespace whippet::openai
