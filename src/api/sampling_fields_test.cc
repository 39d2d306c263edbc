#include "api/sampling_fields.h"

#include <gtest/gtest.h>

namespace whippet {
namespace {

using nlohmann::json;

std::string error_of(const char* name, const json& value) {
  SamplingParams params;
  const Status status = set_sampling_field(params, name, value);
  EXPECT_EQ(params, SamplingParams{}) << "a refused value must change nothing";
  return status.ok() ? "" : status.error().message;
}

TEST(SamplingFields, EachKindIsReadAndWrittenBack) {
  const json values =
      json::parse(R"({"max_tokens": 7, "temperature": 0.7, "top_p": 0.8, "top_k": -1, "min_p": 0.05,
      "repetition_penalty": 1.1, "presence_penalty": -2, "frequency_penalty": 0.5,
      "seed": 18446744073709551615,
      "n": 3, "min_tokens": 2, "stop": ["a", "b"], "stop_token_ids": [1, 2],
      "include_stop_str_in_output": true,
      "ignore_eos": true, "skip_special_tokens": false, "logprobs": 0, "prompt_logprobs": 1,
      "logit_bias": {"5": -100.0}, "allowed_token_ids": [], "banned_token_ids": [9]})");
  SamplingParams params;
  for (const auto& [name, value] : values.items())
    ASSERT_TRUE(set_sampling_field(params, name, value).ok()) << name;
  EXPECT_EQ(params.max_tokens, 7);
  EXPECT_EQ(params.seed, UINT64_MAX);
  EXPECT_EQ(params.logit_bias, (std::vector<std::pair<int32_t, float>>{{5, -100.0f}}));
  EXPECT_TRUE(params.allowed_token_ids.has_value());
  EXPECT_EQ(json(sampling_to_json(params)), values);
}

TEST(SamplingFields, ATestCoversEveryField) { EXPECT_EQ(sampling_field_names().size(), 21u); }

TEST(SamplingFields, NullLeavesAFieldAsItIs) {
  SamplingParams params;
  params.temperature = 0.25f;
  EXPECT_TRUE(set_sampling_field(params, "temperature", nullptr).ok());
  EXPECT_EQ(params.temperature, 0.25f);
}

TEST(SamplingFields, OneStopTextNeedsNoList) {
  SamplingParams params;
  EXPECT_TRUE(set_sampling_field(params, "stop", "END").ok());
  EXPECT_EQ(params.stop, std::vector<std::string>{"END"});
}

TEST(SamplingFields, WrongTypesNameFieldAndValue) {
  EXPECT_EQ(error_of("temperature", "hot"), "temperature: expected a number, found \"hot\"");
  EXPECT_EQ(error_of("temperature", 1e300), "temperature: expected a finite number, found 1e+300");
  EXPECT_EQ(error_of("max_tokens", 1.5), "max_tokens: expected a whole number of 32 bits, found 1.5");
  EXPECT_NE(error_of("max_tokens", 4294967296), "");
  EXPECT_NE(error_of("max_tokens", true), "");
  EXPECT_NE(error_of("seed", "1"), "");
  EXPECT_NE(error_of("ignore_eos", 1), "");
  EXPECT_EQ(error_of("stop", json::array({1})), "stop: expected a text or a list of texts, found 1");
  EXPECT_NE(error_of("stop_token_ids", 5), "");
  EXPECT_NE(error_of("stop_token_ids", json::array({"5"})), "");
  EXPECT_NE(error_of("logit_bias", json::array()), "");
  EXPECT_NE(error_of("logit_bias", json::object({{"x", 1}})), "");
  EXPECT_NE(error_of("logit_bias", json::object({{"-1", 1}})), "");
  EXPECT_LT(error_of("temperature", std::string(1000000, 'x')).size(), 200u);
}

TEST(SamplingFields, AnUnknownFieldNamesTheNearest) {
  EXPECT_EQ(error_of("temprature", 1), "unknown field temprature (did you mean 'temperature'?)");
  EXPECT_FALSE(is_sampling_field("temprature"));
  EXPECT_TRUE(is_sampling_field("temperature"));
}

}  // namespace
}  // namespace whippet
