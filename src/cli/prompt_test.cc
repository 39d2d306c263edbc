// whippet prompt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing.h"

namespace whippet {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class PromptCommand : public testing::Test {
 protected:
  PromptCommand() {
    write_tiny_model(folder_);
    folder_.write("chat_template.jinja",
                  "{% if messages[0].role != 'system' %}<|im_start|>system\nBe nice.<|im_end|>\n{% endif %}"
                  "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
                  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}");
  }
  CommandResult run(std::vector<std::string> more, const std::string& text = "") {
    more.insert(more.begin(), {"prompt", folder_.path().string()});
    return run_whippet(more, {.text = text});
  }
  TestFolder folder_;
};

TEST_F(PromptCommand, ComparesTheTokensOfAllTemplates) {
  folder_.write("prompts/code.txt", "Code only.");
  const std::string dir = (folder_.path() / "prompts").string();
  const std::string chats =
      "Hi\n{\"prompt\": \"Hi\"}\n{\"messages\": [{\"role\": \"system\", \"content\": \"S\"}]}\n";
  const CommandResult result =
      run({"--compare", "--prompts", "-", "--prompt-template-dir", dir, "--json"}, chats);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json found = result.json_lines().at(0);
  EXPECT_EQ(found["chats"], 3);
  ASSERT_EQ(found["templates"].size(), 3u);
  // 18 tokens of the default system message in two of the three chats; a token is a byte.
  EXPECT_EQ(found["templates"][1]["name"], "minimal");
  EXPECT_EQ(found["templates"][1]["saved"], 36);
  EXPECT_EQ(found["templates"][1]["saved_per_chat"], 12.0);
  EXPECT_EQ(found["templates"][1]["tokens"].get<int>() + 36, found["templates"][0]["tokens"].get<int>());
  EXPECT_EQ(found["templates"][2]["saved"], -4) << "two bytes longer than the default message";
}

TEST_F(PromptCommand, PrintsATableOrAList) {
  const CommandResult table = run({"--compare"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("1 chat\nTEMPLATE"));
  EXPECT_THAT(table.out, HasSubstr("minimal"));
  EXPECT_THAT(run({}).out,
              HasSubstr("minimal           the model's chat template without its default system message"));
}

TEST_F(PromptCommand, WhatIsWrongIsSaidWithItsLine) {
  EXPECT_THAT(run({"--compare", "--prompts", "-"}, "Hi\n{\"x\": 1}\n").err, HasSubstr("-, line 2: expected"));
  EXPECT_THAT(run({"--compare", "--prompts", "-"}, "\n").err, HasSubstr("has no lines"));
  EXPECT_EQ(run({"--prompts", "-"}, "Hi\n").exit_code, 2);
  folder_.write("prompts/bad.jinja", "{{ raise_exception('no') }}");
  const CommandResult failed =
      run({"--compare", "--prompt-template-dir", (folder_.path() / "prompts").string()});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.out, HasSubstr("error: chat template, line 1: no"));
}

}  // namespace
}  // namespace whippet
