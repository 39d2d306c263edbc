// Grammars from the public API down to the draws of a small random model, which would write nonsense without
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "api/tiny_model.h"
#include "grammar/compiled_grammar.h"
#include "whippet/whippet.h"

namespace whippet {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;
using testing::MatchesRegex;

class StructuredApi : public testing::Test {
 protected:
  void SetUp() override {
    if (grammar::grammar_library().empty()) GTEST_SKIP() << "built without grammars";
    write_tiny_model(folder_);
  }

  EngineConfig config() const {
    EngineConfig config;
    config.model = folder_.path().string();
    config.max_num_seqs = 8;
    config.threads = 1;
    return config;
  }

  static Request asking(StructuredOutputs asked, uint64_t seed = 1) {
    Request request;
    request.prompt = "Hello";
    request.params.max_tokens = 120;
    request.params.seed = seed;
    request.params.structured_outputs = std::move(asked);
    return request;
  }
  static StructuredOutputs choice(std::vector<std::string> texts) {
    StructuredOutputs asked;
    asked.choice = std::move(texts);
    return asked;
  }
  static StructuredOutputs regex(std::string expression) {
    StructuredOutputs asked;
    asked.regex = std::move(expression);
    return asked;
  }
  static Completion answer(LLM& llm, Request request) {
    std::vector<Request> requests;
    requests.push_back(std::move(request));
    RequestOutput output = std::move(llm.generate(std::move(requests), false).front());
    EXPECT_EQ(output.error, "");
    return output.outputs.empty() ? Completion{} : output.outputs.front();
  }

  static void requests_error_is(LLM& llm, Request request, const char* why) {
    std::vector<Request> requests;
    requests.push_back(std::move(request));
    EXPECT_THAT(llm.generate(std::move(requests), false).front().error, HasSubstr(why));
  }

  TestFolder folder_;
};

TEST_F(StructuredApi, AnswersAreWhatTheGrammarSaysAndEndThere) {
  LLM llm(config());
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Completion one = answer(llm, asking(choice({"yes", "no", "maybe"}), seed));
    EXPECT_THAT(one.text, AnyOf("yes", "no", "maybe"));
    EXPECT_EQ(one.finish_reason, "stop");
    seen.insert(one.text);
  }
  EXPECT_GT(seen.size(), 1u);
  EXPECT_THAT(answer(llm, asking(regex("[a-f]{3}-[0-9]{2}"))).text, MatchesRegex("[a-f]{3}-[0-9]{2}"));
  StructuredOutputs schema;
  schema.json = R"({"type":"object","properties":{"on":{"type":"boolean"},"n":{"type":"integer","minimum":0,
                    "maximum":999}},"required":["on","n"]})";
  const json read = json::parse(answer(llm, asking(schema)).text);
  EXPECT_TRUE(read["on"].is_boolean());
  EXPECT_LT(read["n"], 1000);
}

TEST_F(StructuredApi, EveryAnswerOfARequestIsHeldToItOnItsOwn) {
  LLM llm(config());
  Request request = asking(regex("[ab]{12}"));
  request.params.n = 5;
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  std::set<std::string> seen;
  const RequestOutput output = std::move(llm.generate(std::move(requests), false).front());
  ASSERT_EQ(output.outputs.size(), 5u);
  for (const Completion& one : output.outputs) {
    EXPECT_THAT(one.text, MatchesRegex("[ab]{12}"));
    seen.insert(one.text);
  }
  EXPECT_GT(seen.size(), 1u);
}

TEST_F(StructuredApi, TokensWithoutAChoiceAreThoseThatADrawGives) {
  StructuredOutputs schema;
  schema.json = R"({"type":"object","properties":{"temperature":{"enum":["warm","cold"]}},
                    "required":["temperature"],"additionalProperties":false})";
  for (const char* overlap : {"off", "on"}) {
    EngineConfig with = config();
    with.overlap = overlap;
    LLM llm(with);
    for (const StructuredOutputs& asked :
         {schema, choice({"yes", "no", "maybe"}), regex("[a-f]{2}-fixed-[0-9]")})
      for (uint64_t seed = 1; seed < 5; ++seed) {
        Request drawn = asking(asked, seed);
        drawn.params.logprobs = 0;  // which only a draw can give
        const Completion one = answer(llm, drawn);
        EXPECT_EQ(answer(llm, asking(asked, seed)).token_ids, one.token_ids) << one.text;
        EXPECT_EQ(one.logprobs.size(), one.token_ids.size());
      }
  }
}

TEST_F(StructuredApi, NeitherMinTokensNorIgnoreEosGoesBeyondTheEnd) {
  LLM llm(config());
  Request request = asking(regex("a{3}"));
  request.params.min_tokens = 50;
  request.params.ignore_eos = true;
  const Completion short_one = answer(llm, request);
  EXPECT_EQ(short_one.text, "aaa");
  EXPECT_EQ(short_one.finish_reason, "stop");
  request = asking(regex("a*"));
  request.params.min_tokens = 30;
  EXPECT_GE(answer(llm, request).token_ids.size(), 30u);
}

TEST_F(StructuredApi, WhereNothingIsLeftTheAnswerEndsWithAReason) {
  LLM llm(config());
  Request request = asking(regex("ab"));
  request.params.allowed_token_ids = {'a', 'c'};
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  requests.push_back(asking(choice({"fine"})));
  const auto outputs = llm.generate(std::move(requests), false);
  EXPECT_EQ(outputs[0].outputs[0].text, "a");
  EXPECT_EQ(outputs[0].outputs[0].finish_reason, "error");
  EXPECT_THAT(outputs[0].error, HasSubstr("no token could be drawn"));
  EXPECT_EQ(outputs[1].outputs[0].text, "fine");
}

TEST_F(StructuredApi, AfterAControlTokenMeansNothingHoldsBeforeIt) {
  LLM llm(config());
  StructuredOutputs asked = choice({"{}"});
  asked.after = "<|im_start|>";
  Request request = asking(asked);
  request.params.logit_bias = {{'x', 100.0F}};
  request.params.max_tokens = 10;
  EXPECT_EQ(answer(llm, request).text, "xxxxxxxxxx") << "the control token never came";
  request.params.logit_bias = {{256, 100.0F}};
  EXPECT_EQ(answer(llm, request).text, "{}");
  asked.after = "</none>";
  requests_error_is(llm, asking(asked), "structured_outputs.after");
}

TEST_F(StructuredApi, ABadGrammarIsRefusedByItselfAlsoAfterAGoodOne) {
  LLM llm(config());
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(answer(llm, asking(choice({"good"}))).text, "good");
    StructuredOutputs bad;
    bad.json = R"({"type":"array","uniqueItems":true})";
    requests_error_is(llm, asking(bad), "'uniqueItems' at #");
    requests_error_is(llm, asking(StructuredOutputs{}), "exactly one");
  }
}

TEST_F(StructuredApi, PreparingFindsWhatIsWrong) {
  Engine engine(config());
  EXPECT_NO_THROW(engine.prepare(choice({"a"})));
  EXPECT_THROW(engine.prepare(regex("(?=a)")), Failure);
}

TEST_F(StructuredApi, ConstrainedAnswersAreTheSameAloneAndTogetherAndPreempted) {
  const auto requests = [] {
    std::vector<Request> all;
    for (uint64_t i = 0; i < 12; ++i) {
      all.push_back(asking(regex(i % 2 == 0 ? "[a-z ]{40,60}" : "([0-9]{2}:)*end"), i));
      if (i % 3 == 0) all.back().params.structured_outputs.reset();
    }
    return all;
  };
  std::vector<std::string> alone;
  EngineConfig roomy = config();
  {
    LLM llm(roomy);
    for (Request& request : requests()) alone.push_back(answer(llm, std::move(request)).text);
  }
  EngineConfig tight = config();
  tight.kv_cache_memory.bytes = 16 << 10;
  for (const EngineConfig& one : {roomy, tight}) {
    LLM llm(one);
    const auto outputs = llm.generate(requests(), false);
    for (size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(outputs[i].outputs[0].text, alone[i]) << i;
    const int preempted = json::parse(llm.engine().stats_json())["preemptions"];
    EXPECT_EQ(preempted > 0, one.kv_cache_memory.bytes > 0) << preempted;
  }
}

}  // namespace
}  // namespace whippet
