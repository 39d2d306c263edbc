// A conversation with a model that thinks, whose answers are played back.
#include "cli/chat_session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <optional>

#include "api/fake_engine.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;

SamplingParams up_to(int32_t max_tokens) {
  SamplingParams params;
  params.max_tokens = max_tokens;
  return params;
}

class ThinkingChat : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path folder = fs::path(WHIPPET_SOURCE_DIR) / "../shared/data/qwen3";
    std::error_code failed;
    if (!fs::exists(folder, failed)) GTEST_SKIP() << "no files of Qwen3 in " << folder;
    engine_.emplace(FakeEngine::make({.model = folder, .on_step = [this](int64_t) {
                                        const size_t at = next_.fetch_add(1);
                                        return at < script_.size() ? script_[at] : 0;
                                      }}));
  }
  Result<ChatAnswer> ask(ChatSession& session, const char* says) {
    script_ = engine_->encode(says);
    next_ = 0;
    text_.clear();
    thinking_.clear();
    const auto append_to = [](std::string& all) {
      return [&all](const std::string& piece) {
        all += piece;
        return Status();
      };
    };
    return session.ask("Hi", {.on_text = append_to(text_), .on_thinking = append_to(thinking_)},
                       [] { return false; });
  }

  std::optional<Engine> engine_;
  std::vector<int32_t> script_;
  std::atomic<size_t> next_ = 0;
  std::string text_, thinking_;
};

TEST_F(ThinkingChat, TellsThinkingFromTheAnswerAndKeepsTheAnswerAlone) {
  ChatSession session(*engine_, up_to(50), "", "");
  const auto answer = ask(session, "<think>\nHm.\n</think>\n\nHello!<|im_end|>");
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->thinking, "Hm.");
  EXPECT_EQ(answer->text, "Hello!");
  EXPECT_EQ(thinking_, "Hm.");
  EXPECT_EQ(text_, "Hello!");
  EXPECT_EQ(session.to_json(),
            R"({"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello!"}]})"
            "\n");
}

TEST_F(ThinkingChat, ThinkingThatIsCutOffLeavesNoAnswer) {
  ChatSession session(*engine_, up_to(4), "", "");
  const auto answer = ask(session, "<think>\nHm. I wonder whether this ends");
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->text, "");
  EXPECT_EQ(answer->finish_reason, "length");
  EXPECT_FALSE(thinking_.empty());
}

TEST_F(ThinkingChat, WhatTheTemplateClosesIsNoThinking) {
  ChatSession session(*engine_, up_to(50), "", R"({"enable_thinking": false})");
  const auto answer = ask(session, "a <think> b<|im_end|>");
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(text_, "a <think> b");
  EXPECT_EQ(thinking_, "");
}

}  // namespace
}  // namespace whippet
