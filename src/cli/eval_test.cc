// whippet eval, and --quantization wherever a model is loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing.h"

namespace whippet {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Eval : public testing::Test {
 protected:
  Eval() {
    write_tiny_model(folder_);
    std::string text;
    for (int i = 0; i < 60; ++i) text += "The quick brown fox. ";
    folder_.write("text.txt", text);
  }
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  CommandResult run(std::vector<std::string> more) {
    std::vector<std::string> args = {"eval", folder_.path().string()};
    args.insert(args.end(), more.begin(), more.end());
    return run_whippet(args, {});
  }

  TestFolder folder_;
};

TEST_F(Eval, AModelIsNoDistanceFromItselfAndSomeFromItsRoundedSelf) {
  const CommandResult same =
      run({"--text", file("text.txt"), "--against", folder_.path().string(), "--json"});
  ASSERT_EQ(same.exit_code, 0) << same.err;
  const json report = same.json_lines().at(0);
  EXPECT_GT(report["perplexity"], 1);
  EXPECT_EQ(report["perplexity"], report["reference_perplexity"]);
  EXPECT_NEAR(report["kl_divergence"].get<double>(), 0, 1e-9);
  EXPECT_EQ(report["top1_agreement"], 1);

  double last = 0;
  for (const char* method : {"int8", "int4"}) {
    const CommandResult rounded = run({"--text", file("text.txt"), "--quantization", method, "--json"});
    ASSERT_EQ(rounded.exit_code, 0) << rounded.err;
    const json rounded_report = rounded.json_lines().at(0);
    EXPECT_EQ(rounded_report["reference_perplexity"], report["perplexity"]);
    EXPECT_GT(rounded_report["kl_divergence"], last) << method;
    EXPECT_LT(rounded_report["weight_bytes"], rounded_report["reference_weight_bytes"]);
    last = rounded_report["kl_divergence"];
  }
}

TEST_F(Eval, AnInt8CacheIsMeasuredAgainstTheUsualOne) {
  const CommandResult kept = run({"--text", file("text.txt"), "--kv-cache-dtype", "int8", "--json"});
  ASSERT_EQ(kept.exit_code, 0) << kept.err;
  const json report = kept.json_lines().at(0);
  EXPECT_EQ(report["kv_cache_dtype"], "int8");
  EXPECT_GT(report["kl_divergence"], 0);
  EXPECT_LT(report["kl_divergence"], 0.05);
  EXPECT_EQ(report["weight_bytes"], report["reference_weight_bytes"]);
  const json usual = run({"--text", file("text.txt"), "--json"}).json_lines().at(0);
  EXPECT_EQ(report["reference_perplexity"], usual["perplexity"]);
  EXPECT_THAT(run({"--text", file("text.txt"), "--kv-cache-dtype", "fp8"}).err, HasSubstr("int8"));
}

TEST_F(Eval, WindowsStandAloneAndTheLimitCutsTheText) {
  const json whole = run({"--text", file("text.txt"), "--window", "64", "--json"}).json_lines().at(0);
  const json part =
      run({"--text", file("text.txt"), "--window", "64", "--limit", "65", "--json"}).json_lines().at(0);
  EXPECT_EQ(part["tokens"], 63);  // the second window has one token, which predicts nothing
  EXPECT_GT(whole["tokens"], 500);
  EXPECT_FALSE(whole.contains("kl_divergence"));
}

TEST_F(Eval, QuestionsAreAnsweredByTheLikeliestChoice) {
  folder_.write("questions.jsonl",
                R"({"question": "The quick", "choices": [" brown fox", "zzzz"], "answer": 0})"
                "\n"
                R"({"question": "The quick", "choices": [" brown fox", "zzzz"], "answer": 1})");
  const CommandResult result = run({"--choices", file("questions.jsonl"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json_lines().at(0)["questions"], 2);
  EXPECT_EQ(result.json_lines().at(0)["accuracy"], 0.5);  // the same answer is right once
}

TEST_F(Eval, WhatIsWrongIsNamed) {
  EXPECT_THAT(run({}).err, HasSubstr("--text FILE or --choices FILE is missing"));
  EXPECT_EQ(run({}).exit_code, 2);
  EXPECT_NE(run({"--text", file("none.txt")}).exit_code, 0);
  folder_.write("short.txt", "");
  EXPECT_THAT(run({"--text", file("short.txt")}).err, HasSubstr("it takes 2 to predict one"));
  EXPECT_THAT(run({"--text", file("text.txt"), "--window", "1"}).err, HasSubstr("1"));
  for (const char* line : {R"({"question": "a", "choices": ["b"], "answer": 0})", R"({"question": "a"})",
                           "nonsense", R"({"question": "a", "choices": ["b", "c"], "answer": 2})"}) {
    folder_.write("bad.jsonl", line);
    const CommandResult result = run({"--choices", file("bad.jsonl")});
    EXPECT_EQ(result.exit_code, 1) << line;
    EXPECT_THAT(result.err, HasSubstr("line 1: ")) << line;
  }
}

TEST_F(Eval, AQuantizationThatTheCheckpointDoesNotHaveIsAnError) {
  EXPECT_THAT(run({"--text", file("text.txt"), "--quantization", "gptq"}).err, HasSubstr("stored as dense"));
  EXPECT_THAT(run({"--text", file("text.txt"), "--quantization", "int5"}).err,
              HasSubstr("'int5' is not one of"));
}

}  // namespace
}  // namespace whippet
