// whippet generate and bench, on a model made on the spot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing.h"

namespace whippet {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Generate : public testing::Test {
 protected:
  Generate() { write_tiny_model(folder_); }
  CommandResult run(std::vector<std::string> args, const std::string& text = "") {
    args.insert(args.begin(), {"generate", folder_.path().string(), "--log-level", "warning"});
    return run_whippet(args, {.text = text});
  }

  TestFolder folder_;
};

TEST_F(Generate, APromptComesFromTheFlagOrStandardInput) {
  const CommandResult flag = run({"-p", "Hello", "--temperature", "0", "--max-tokens", "8"});
  EXPECT_EQ(flag.exit_code, 0) << flag.err;
  EXPECT_FALSE(flag.out.empty());
  EXPECT_EQ(flag.err, "");
  EXPECT_EQ(run({"--temperature", "0", "--max-tokens", "8"}, "Hello\n").out, flag.out);
}

TEST_F(Generate, ACompletionHas16TokensWhereNothingIsSaid) {
  const json answer = json::parse(run({"-p", "Hello", "--temperature", "0", "--ignore-eos", "--json"}).out);
  EXPECT_EQ(answer["token_ids"].size(), 16u);
  EXPECT_EQ(answer["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 5);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 16);
  EXPECT_EQ(answer["usage"]["total_tokens"], 21);
}

TEST_F(Generate, APromptInPlaceOfTheModelIsUnderstood) {
  EXPECT_THAT(run_whippet({"generate", "Once upon a time"}, {.text = "x"}).err,
              HasSubstr("a prompt goes behind -p"));
}

TEST_F(Generate, AnEmptyStandardInputIsNoPrompt) {
  const CommandResult result = run({});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("standard input is empty"));
}

TEST_F(Generate, BytesThatAreNoUtf8AreAPromptAndTheAnswerIsUtf8) {
  const CommandResult result = run({"--temperature", "0", "--json"}, "\xff\xfe\x80 caf\xc3");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(json::parse(result.out, nullptr, false).is_discarded());
}

TEST_F(Generate, LinesAreAnsweredInTheirOrderWithErrorsInTheirPlace) {
  const CommandResult result =
      run({"--jsonl", "--temperature", "0", "--max-tokens", "4"},
          "{\"prompt\": \"a\", \"max_tokens\": 40, \"id\": \"first\"}\n"
          "{\"prompt_ids\": [72, 105], \"max_tokens\": 1}\n"
          "nonsense\n"
          "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"max_tokens\": 3}\n"
          "{\"prompt\": \"a\", \"temprature\": 1}\n"
          "{\"prompt\": \"a\", \"top_p\": 0}\n"
          "{\"prompt\": \"a\", \"prompt_ids\": [1]}\n"
          "{\"prompt_ids\": [4000000000]}\n"
          "{\"prompt_ids\": [258]}\n"
          "{\"prompt\": \"\xc3\"}\n"
          "{\"prompt\": \"b\"}\n");
  EXPECT_EQ(result.exit_code, 1);
  const auto lines = result.json_lines();
  ASSERT_EQ(lines.size(), 11u) << result.err;
  EXPECT_EQ(lines[0]["id"], "first");
  EXPECT_EQ(lines[1]["usage"]["prompt_tokens"], 2);
  EXPECT_EQ(lines[1]["token_ids"].size(), 1u);
  EXPECT_THAT(lines[2]["error"].get<std::string>(), HasSubstr("no valid JSON"));
  EXPECT_EQ(lines[2]["line"], 3);
  EXPECT_LE(lines[3]["token_ids"].size(), 3u);
  EXPECT_THAT(lines[4]["error"].get<std::string>(),
              HasSubstr("unknown field 'temprature' (did you mean 'temperature'?)"));
  EXPECT_THAT(lines[5]["error"].get<std::string>(), HasSubstr("top_p"));
  EXPECT_THAT(lines[6]["error"].get<std::string>(), HasSubstr("exactly one of"));
  EXPECT_THAT(lines[7]["error"].get<std::string>(), HasSubstr("no token id"));
  EXPECT_THAT(lines[8]["error"].get<std::string>(), HasSubstr("258"));
  EXPECT_TRUE(lines[9].contains("error"));
  EXPECT_EQ(lines[10]["usage"]["prompt_tokens"], 1);
}

TEST_F(Generate, ALineIsWhatItIsAlone) {
  const std::string one = R"({"prompt": "Once upon", "temperature": 0, "max_tokens": 12})";
  const std::string other = R"({"prompt_ids": [1, 2, 3, 4, 5, 6, 7], "temperature": 0, "max_tokens": 30})";
  const json alone = run({"--jsonl"}, one).json_lines().at(0);
  std::string many;
  for (int i = 0; i < 20; ++i) many += other + "\n" + one + "\n";
  const auto lines = run({"--jsonl"}, many).json_lines();
  ASSERT_EQ(lines.size(), 40u);
  for (size_t i = 1; i < lines.size(); i += 2) {
    EXPECT_EQ(lines[i]["token_ids"], alone["token_ids"]);
    EXPECT_EQ(lines[i]["text"], alone["text"]);
  }
}

TEST_F(Generate, APromptThatDoesNotFitSaysPromptRequestedAndLimit) {
  const std::string prompt(300, 'a');
  const CommandResult result = run({"--jsonl"}, json({{"prompt", prompt}}).dump() + "\n" +
                                                    json({{"prompt", "abc"}, {"max_tokens", 1000}}).dump());
  EXPECT_EQ(result.exit_code, 1);
  const auto lines = result.json_lines();
  ASSERT_EQ(lines.size(), 2u);
  for (const json& line : lines) EXPECT_THAT(line["error"].get<std::string>(), HasSubstr("256"));
  EXPECT_THAT(lines[0]["error"].get<std::string>(), HasSubstr("300"));
  EXPECT_THAT(lines[1]["error"].get<std::string>(), HasSubstr("1000"));
}

TEST_F(Generate, AChatMayUseTheRestOfTheContext) {
  const CommandResult result = run({"--jsonl", "--temperature", "0", "--ignore-eos"},
                                   R"({"messages": [{"role": "user", "content": "hi"}]})");
  const json line = result.json_lines().at(0);
  EXPECT_EQ(line["usage"]["total_tokens"], 256);
  EXPECT_EQ(line["finish_reason"], "length");
}

TEST_F(Generate, FileOfPromptsIsOneALine) {
  const auto file = folder_.write("prompts.txt", "first\n\nsecond one\r\n");
  const CommandResult result = run({"-f", file.string(), "--temperature", "0"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto lines = result.json_lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["usage"]["prompt_tokens"], 10);
  EXPECT_EQ(run({"-f", "/nowhere.txt"}).exit_code, 1);
}

TEST_F(Generate, SeveralAnswersAndLogprobsNeedJson) {
  EXPECT_EQ(run({"-p", "a", "--n", "2"}).exit_code, 2);
  const json answer =
      json::parse(run({"-p", "a", "--n", "2", "--logprobs", "3", "--seed", "5", "--json"}).out);
  ASSERT_EQ(answer["answers"].size(), 2u);
  EXPECT_EQ(answer["answers"][0]["logprobs"].size(), answer["answers"][0]["token_ids"].size());
  EXPECT_EQ(answer["answers"][0]["logprobs"][0]["top"].size(), 3u);
}

TEST_F(Generate, TheSameSeedGivesTheSameAnswer) {
  const std::string line = R"({"prompt": "a", "seed": 5, "max_tokens": 20})";
  const auto lines = run({"--jsonl"}, line + "\n" + line).json_lines();
  EXPECT_EQ(lines.at(0)["token_ids"], lines.at(1)["token_ids"]);
}

TEST_F(Generate, AFullStandardOutputEndsIt) {
  std::string many;
  for (int i = 0; i < 200; ++i) many += "{\"prompt\": \"a\", \"max_tokens\": 200}\n";
  const CommandResult result =
      run_whippet({"generate", folder_.path().string(), "--jsonl", "--log-level", "error"},
                  {.text = many, .out_path = "/dev/full"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "whippet: cannot write to standard output: No space left on device\n");
}

TEST_F(Generate, AModelWithoutATokenizerTakesIds) {
  std::filesystem::remove(folder_.path() / "tokenizer.json");
  const auto lines =
      run({"--jsonl"}, "{\"prompt_ids\": [1, 2], \"temperature\": 0}\n{\"prompt\": \"text\"}\n").json_lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_GT(lines[0]["token_ids"].size(), 0u);
  EXPECT_EQ(lines[0]["text"], "");
  EXPECT_THAT(lines[1]["error"].get<std::string>(), HasSubstr("token ids only"));
}

TEST_F(Generate, TheCheckpointsOwnSamplingHoldsUnlessTurnedOff) {
  folder_.write("generation_config.json", R"({"do_sample": false, "eos_token_id": 257})");
  const std::string line = R"({"prompt": "a", "max_tokens": 20})";
  const json greedy = run({"--jsonl", "--temperature", "0"}, line).json_lines().at(0);
  EXPECT_EQ(run({"--jsonl"}, line).json_lines().at(0)["token_ids"], greedy["token_ids"]);
  EXPECT_NE(
      run({"--jsonl", "--generation-config", "none", "--seed", "1"}, line).json_lines().at(0)["token_ids"],
      greedy["token_ids"]);
}

TEST_F(Generate, BenchLatencyPrintsWhatScriptsRead) {
  const CommandResult result = run_whippet({"bench", "latency", folder_.path().string(), "--prompt-len", "20",
                                            "--output-len", "8", "--batch", "3", "--repeat", "2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json measured = json::parse(result.out);
  for (const char* key :
       {"prefill_tokens_per_s", "decode_tokens_per_s", "ttft_ms", "weight_bytes", "read_bandwidth_share"})
    EXPECT_GT(measured[key].get<double>(), 0) << key;
  EXPECT_EQ(measured["batch"], 3);
  EXPECT_EQ(run_whippet({"bench", "latency", folder_.path().string(), "--batch", "0"}).exit_code, 2);
  EXPECT_EQ(run_whippet({"bench"}).exit_code, 2);
}

}  // namespace
}  // namespace whippet
