// Tools for InternLM2, whose own template does not know them.
#include "api/tool_template.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "api/model_files.h"
#include "api/prompt.h"

namespace whippet {
namespace {

class ToolTemplate : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path folder =
        std::filesystem::path(WHIPPET_SOURCE_DIR) / "../shared/data/internlm2";
    std::error_code failed;
    if (!std::filesystem::exists(folder, failed)) GTEST_SKIP() << "no files of InternLM2 in " << folder;
    auto files = read_model_files(folder, nullptr, {});
    ASSERT_TRUE(files.ok()) << files.error().message;
    files_ = std::move(*files);
  }
  Result<Prompt> prompt(const char* messages, const char* variables = "{}") {
    Request request;
    request.messages_json = messages;
    request.template_variables_json = variables;
    return make_prompt(*files_, request);
  }
  std::string text(const char* messages, const char* variables = "{}") {
    const auto made = prompt(messages, variables);
    return made.ok() ? made->text : made.error().message;
  }
  std::optional<ModelFiles> files_;
};

constexpr const char* kTools =
    R"({"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}},
                                             {"type": "function", "function": {"name": "g"}}]})";

TEST_F(ToolTemplate, ToolsStandBehindTheSystemMessage) {
  EXPECT_EQ(text(R"([{"role": "system", "content": "S"}, {"role": "user", "content": "U"}])", kTools),
            "<s><|im_start|>system\nS<|im_end|>\n<|im_start|>system name=<|plugin|>\n[\n"
            "{\"name\": \"f\", \"parameters\": {}},\n{\"name\": \"g\"}\n]<|im_end|>\n"
            "<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(ToolTemplate, CallsAndResultsAreWrittenAsTheModelKnowsThem) {
  const char* messages = R"([{"role": "user", "content": "U"},
    {"role": "assistant", "content": "A", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
    {"role": "tool", "content": "T<|im_end|>"}])";
  EXPECT_EQ(text(messages),
            "<s><|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|action_start|><|plugin|>\n"
            "{\"name\": \"f\", \"parameters\": {\"a\": 1}}<|action_end|><|im_end|>\n"
            "<|im_start|>environment name=<|plugin|>\nT<|im_end|><|im_end|>\n<|im_start|>assistant\n");
  const std::vector<int32_t> ids = prompt(messages)->ids;
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 92538), 2) << "<|plugin|> is a control token";
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 92542), 3) << "what a tool says is none";
}

TEST_F(ToolTemplate, AChatWithoutToolsIsTheCheckpointsOwn) {
  EXPECT_EQ(text(R"([{"role": "user", "content": "U"}])"),
            "<s><|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n");
  ASSERT_EQ(files_->templates.sources.size(), 2u);
  EXPECT_EQ(files_->templates.sources[1].file, "built in");
}

TEST_F(ToolTemplate, ATemplateThatReadsToolsIsLeftAlone) {
  std::vector<NamedTemplate> templates = {{"default", "x", "{{ tools }}"}};
  add_tool_template(*files_->tokenizer, templates);
  EXPECT_EQ(templates.size(), 1u);
  templates.clear();
  add_tool_template(*files_->tokenizer, templates);
  EXPECT_TRUE(templates.empty());
}

}  // namespace
}  // namespace whippet
