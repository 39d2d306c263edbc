// whippet tokenize, render and logits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cli/testing.h"
#include "model/safetensors.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class TextCommands : public testing::Test {
 protected:
  TextCommands() { write_tiny_model(folder_); }
  CommandResult run(const std::string& command, const std::string& text, std::vector<std::string> more = {}) {
    std::vector<std::string> args = {command, folder_.path().string()};
    args.insert(args.end(), more.begin(), more.end());
    return run_whippet(args, {.text = text});
  }

  TestFolder folder_;
};

TEST_F(TextCommands, TokenizeGoesBothWays) {
  fs::remove(folder_.path() / "model.safetensors");
  fs::remove(folder_.path() / "config.json");
  const CommandResult result =
      run("tokenize", "{\"text\": \"Hi<|im_end|>\"}\n{\"ids\": [72, 105, 257]}\n", {"--jsonl"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto lines = result.json_lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], json::parse(R"({"ids": [72, 105, 257]})"));
  EXPECT_EQ(lines[1], json::parse(R"({"text": "Hi<|im_end|>"})"));
  EXPECT_EQ(run("tokenize", R"({"text": "<|im_end|>"})", {"--jsonl", "--no-parse-special"})
                .json_lines()[0]["ids"]
                .size(),
            10u);
  EXPECT_EQ(
      run("tokenize", R"({"ids": [72, 257]})", {"--jsonl", "--skip-special-tokens"}).json_lines()[0]["text"],
      "H");
}

TEST_F(TextCommands, ABadLineGivesAnErrorInItsPlaceAndTheRestGoesOn) {
  const CommandResult result =
      run("tokenize",
          "{\"text\": \"a\"}\nnonsense\n[1]\n{\"text\": 5}\n{}\n{\"ids\": [-1]}\n"
          "{\"ids\": [99999999999999999999]}\n{\"ids\": \"x\"}\n{\"text\": \"\xff\"}\n\n"
          "{\"text\": \"b\"}",
          {"--jsonl"});
  EXPECT_EQ(result.exit_code, 1);
  const auto lines = result.json_lines();
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_TRUE(lines.front().contains("ids"));
  EXPECT_TRUE(lines.back().contains("ids"));
  for (size_t i = 1; i < 9; ++i) {
    EXPECT_TRUE(lines[i].contains("error")) << lines[i];
    EXPECT_EQ(lines[i]["line"], i + 1);
  }
}

TEST_F(TextCommands, HostileLinesDoNoHarm) {
  const CommandResult result =
      run("tokenize", std::string(1000000, '[') + "\n{\"text\": \"" + std::string(1000000, 'a') + "\"}\n",
          {"--jsonl"});
  const auto lines = result.json_lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0]["error"].get<std::string>(), HasSubstr("nests deeper"));
  EXPECT_EQ(lines[1]["ids"].size(), 1000000u);
  EXPECT_EQ(run("tokenize", R"({"ids": [2147483647, 258]})", {"--jsonl"}).out, "{\"text\":\"\"}\n");
}

TEST_F(TextCommands, EmptyInputGivesEmptyOutput) {
  for (const char* command : {"tokenize", "render"}) {
    const CommandResult result = run(command, "", {"--jsonl"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(TextCommands, PlainTokenizeShowsIdsWithTheirSpelling) {
  EXPECT_EQ(run("tokenize", "", {"--text", "H\n"}).out, "      72  \"H\"\n      10  \"\\n\"\n");
}

TEST_F(TextCommands, RenderGivesTextAndIds) {
  const CommandResult result =
      run("render",
          R"({"messages": [{"role": "user", "content": "<|im_end|>"}], "add_generation_prompt": false})",
          {"--jsonl"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json line = result.json_lines().at(0);
  EXPECT_EQ(line["text"], "<|im_start|>user\n<|im_end|><|im_end|>\n");
  EXPECT_EQ(line["ids"].size(), 1u + 5 + 10 + 1 + 1) << "what the user spelled stays text";
  EXPECT_EQ(run("render", R"({"messages": [{"role": "user", "content": "a"}]})").out,
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(TextCommands, RenderReportsTemplateErrors) {
  const CommandResult result =
      run("render", "{\"messages\": []}\n{\"messages\": [{\"role\": \"user\"}]}\n",
          {"--jsonl", "--chat-template", "{{ raise_exception('no ' + messages[0].role) }}"});
  EXPECT_EQ(result.exit_code, 1);
  const auto lines = result.json_lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0]["error"].get<std::string>(), HasSubstr("at least one message"));
  EXPECT_THAT(lines[1]["error"].get<std::string>(), HasSubstr("no user"));
}

TEST_F(TextCommands, LogitsAreWrittenLineByLine) {
  const fs::path out = folder_.path() / "out.safetensors";
  std::string ids = "[1";
  for (int i = 0; i < 99; ++i) ids += ", " + std::to_string(i);
  const CommandResult result = run("logits", "{\"input_ids\": [1, 2, 3]}\n{\"input_ids\": " + ids + "]}\n",
                                   {"--jsonl", "--dtype", "float32", "--out", out.string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::ifstream file(out, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const auto tensors = parse_safetensors(std::as_bytes(std::span(bytes)), "out");
  ASSERT_TRUE(tensors.ok()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 2u);
  for (const TensorView& tensor : *tensors)
    EXPECT_EQ(tensor.shape, (std::vector<int64_t>{tensor.name == "logits_0" ? 3 : 100, 258}));
  EXPECT_EQ(result.json_lines()[1]["tokens"], 100);
}

TEST_F(TextCommands, LogitsOfAWrongLineLeaveNoFile) {
  const fs::path out = folder_.path() / "out.safetensors";
  for (const char* line : {R"({"input_ids": [1, 258]})", R"({"input_ids": []})", "{}", "x"}) {
    const CommandResult result = run("logits", line, {"--jsonl", "--out", out.string()});
    EXPECT_EQ(result.exit_code, 1) << line;
    EXPECT_NE(result.err, "") << line;
    EXPECT_FALSE(fs::exists(out)) << line;
  }
  EXPECT_EQ(run("logits", "{\"input_ids\": [1]}", {"--jsonl"}).exit_code, 2) << "--out is missing";
  EXPECT_EQ(run("logits", "{\"input_ids\": [1]}", {"--jsonl", "--out", "/nowhere/out"}).exit_code, 1);
}

// Every golden text and chat, through the command as a script uses it.
class GoldenText : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, GoldenText,
                         testing::Values("smollm2", "qwen2.5-0.5b-instruct", "qwen3", "internlm2"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

void compare(const std::string& command, const fs::path& model, const std::string& file) {
  std::ifstream lines(model / file);
  std::string input, line;
  std::vector<json> golden;
  while (std::getline(lines, line)) {
    golden.push_back(json::parse(line));
    input += line + "\n";
  }
  const CommandResult result = run_whippet({command, model.string(), "--jsonl"}, {.text = input});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto answers = result.json_lines();
  ASSERT_EQ(answers.size(), golden.size());
  for (size_t i = 0; i < golden.size(); ++i) {
    EXPECT_EQ(answers[i]["ids"], golden[i]["ids"]) << golden[i]["text"];
    if (command == "render") {
      EXPECT_EQ(answers[i]["text"], golden[i]["text"]);
    }
  }
}

TEST_P(GoldenText, TokenizeAndRenderAgreeExactly) {
  const fs::path model = fs::path(WHIPPET_SOURCE_DIR) / "../shared/data" / GetParam();
  if (!fs::exists(model)) GTEST_SKIP() << model << " is not there";
  compare("tokenize", model, "golden_encode.jsonl");
  compare("render", model, "golden_chat.jsonl");
}

}  // namespace
}  // namespace whippet
