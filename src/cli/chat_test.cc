// whippet chat without a terminal: --once, and messages on standard input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cli/testing.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class Chat : public testing::Test {
 protected:
  Chat() { write_tiny_model(folder_); }
  CommandResult run(std::vector<std::string> args, const std::string& text = "") {
    args.insert(args.begin(), {"chat", folder_.path().string(), "--temperature", "0", "--max-tokens", "5"});
    return run_whippet(args, {.text = text});
  }

  TestFolder folder_;
};

TEST_F(Chat, OnceAnswersAndTellsCountsAndTimes) {
  const CommandResult result = run({"--once", "hello", "--stats"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(result.out.empty());
  EXPECT_THAT(result.err, HasSubstr("prompt 24 tokens"));
  EXPECT_THAT(result.err, HasSubstr("answer 5 tokens"));
  EXPECT_THAT(result.err, HasSubstr("tokens/s"));
}

TEST_F(Chat, PipedInputIsOneMessageALineAndKeepsTheConversation) {
  const fs::path saved = folder_.path() / "saved.json";
  const CommandResult result =
      run({}, "hello\n\n/system Be brief.\nfirst\nsecond\\\nline\n\"\"\"a\nb\"\"\"\n/save " + saved.string() +
                  "\n/bye\nx\n");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::ifstream file(saved);
  const json chat = json::parse(file);
  const json& messages = chat["messages"];
  ASSERT_EQ(messages.size(), 7u);
  EXPECT_EQ(messages[0]["role"], "system");
  EXPECT_EQ(messages[0]["content"], "Be brief.");
  EXPECT_EQ(messages[1]["content"], "first");
  EXPECT_EQ(messages[2]["role"], "assistant");
  EXPECT_EQ(messages[3]["content"], "second\nline");
  EXPECT_EQ(messages[5]["content"], "a\nb");
}

TEST_F(Chat, CommandsAreExplainedAndUnknownOnesNamed) {
  const CommandResult result =
      run({}, "/help\n/nonsense\n/think\n/reset\n/stats\n/system\n/save\n/save /nowhere/at/all\n");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("/save FILE"));
  EXPECT_THAT(result.err, HasSubstr("/nonsense is no command"));
  EXPECT_THAT(result.err, HasSubstr("What the model thinks is shown."));
  EXPECT_THAT(result.err, HasSubstr("/nowhere/at/all cannot be written"));
}

TEST_F(Chat, AnEmptyInputLeavesAtOnce) {
  const CommandResult result = run({});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
}

TEST_F(Chat, AFullContextIsSaidAndNothingIsDroppedUnasked) {
  const CommandResult result =
      run({"--ignore-eos"}, std::string(90, 'a') + "\n" + std::string(90, 'b') + "\n");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("the context is full"));
  const CommandResult alone = run({"--once", std::string(400, 'a')});
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_THAT(alone.err, HasSubstr("this message alone takes"));
}

TEST_F(Chat, WithoutATemplateItSaysWhatToDo) {
  fs::remove(folder_.path() / "chat_template.jinja");
  const CommandResult result = run({"--once", "hello"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("--chat-template FILE"));
  EXPECT_EQ(run({"--once", "hello", "--chat-template", "{{ messages[0].content }}"}).exit_code, 0);
}

TEST_F(Chat, AnEmptyMessageIsWrongUsage) {
  const CommandResult result = run({"--once", ""});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("the message is empty"));
  EXPECT_EQ(run({"--once", "hello", "--history", ""}).exit_code, 0);
}

TEST_F(Chat, WrongTemplateVariablesAreWrongUsage) {
  EXPECT_EQ(run({"--once", "hello", "--chat-template-kwargs", "[1]"}).exit_code, 2);
}

}  // namespace
}  // namespace whippet
