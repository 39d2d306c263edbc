// Tools for templates that know them, and for those that do not.
#include "openai/tool_prompt.h"

#include "openai/testing.h"

namespace whippet::openai {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kPlain =
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{% if add_generation_prompt %}[a]{% "
    "endif %}";

class ToolPrompt : public CodecTest {
 protected:
  static json tool(const char* name) {
    return {{"type", "function"}, {"function", {{"name", name}, {"parameters", {{"type", "object"}}}}}};
  }
  static json call(const char* name, const char* arguments) {
    return {{"id", "1"}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
  }
  std::string prompt(const json& more) {
    context_.max_model_len = 4096;
    return prompt_of(chat(more).get());
  }
  std::string_view format() { return tool_support(context_, "").format->name; }
};

TEST_F(ToolPrompt, ATemplateThatKnowsToolsGetsThem) {
  EXPECT_TRUE(tool_support(context_, "").in_template);
  EXPECT_THAT(prompt({{"tools", {tool("f")}}}), Not(HasSubstr("<tools>")));
}

TEST_F(ToolPrompt, AnotherIsToldInTheSystemMessage) {
  context_ = fake_context(kPlain);
  EXPECT_FALSE(tool_support(context_, "").in_template);
  const std::string alone = prompt({{"tools", {tool("f"), tool("g")}}});
  EXPECT_THAT(alone, testing::StartsWith("[system]You can call functions."));
  EXPECT_THAT(alone, HasSubstr("\n{\"name\":\"f\",\"parameters\":{\"type\":\"object\"}}\n{\"name\":\"g\""));
  EXPECT_THAT(alone, HasSubstr("<tool_call>\n{\"name\": \"...\", \"arguments\": {...}}\n</tool_call>\n"));
  EXPECT_THAT(alone, testing::EndsWith("[user]Hi[a]"));
  const json messages = {{{"role", "system"}, {"content", "Be kind."}},
                         {{"role", "user"}, {"content", "Hi"}}};
  EXPECT_THAT(prompt({{"messages", messages}, {"tools", {tool("f")}}}),
              testing::StartsWith("[system]Be kind.\n\nYou can call"));
  EXPECT_EQ(prompt({{"messages", messages}, {"tools", {tool("f")}}, {"tool_choice", "none"}}),
            "[system]Be kind.[user]Hi[a]");
}

TEST_F(ToolPrompt, CallsAndResultsOfEarlierTurnsBecomeText) {
  context_ = fake_context(kPlain);
  const json messages = {{{"role", "user"}, {"content", "Hi"}},
                         {{"role", "assistant"},
                          {"content", "I look."},
                          {"tool_calls", {call("f", "{\"a\": 1}"), call("g", "")}}},
                         {{"role", "tool"}, {"tool_call_id", "1"}, {"content", "one"}},
                         {{"role", "tool"}, {"tool_call_id", "2"}, {"content", "two"}}};
  EXPECT_EQ(
      prompt({{"messages", messages}}),
      "[user]Hi[assistant]I look.\n<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}}\n</tool_call>\n"
      "<tool_call>\n{\"name\":\"g\",\"arguments\":{}}\n</tool_call>"
      "[user]<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>[a]");
}

TEST_F(ToolPrompt, TheFormatIsTheTemplatesElseTheVocabularysElseHermes) {
  EXPECT_EQ(format(), "hermes");
  context_ = fake_context("{{ tools | tojson }} answer with {\"name\": function name, \"parameters\": ...}");
  EXPECT_EQ(format(), "llama3_json");
  context_ = fake_context("{{ tools | tojson }}<|plugin|>");
  EXPECT_EQ(format(), "internlm");
  context_ = fake_context("{{ tools | tojson }}<tool_call>", {"<|plugin|>"});
  EXPECT_EQ(format(), "hermes");
  context_ = fake_context("{{ tools | tojson }}", {"<|plugin|>"});
  EXPECT_EQ(format(), "internlm");
  context_ = fake_context("{{ tools | tojson }}", {"<|python_tag|>"});
  EXPECT_EQ(format(), "llama3_json");
  context_ = fake_context(kPlain, {"<|plugin|>"});
  EXPECT_EQ(format(), "hermes") << "this is what the model is told";
  context_.tool_call_parser = "llama3_json";
  EXPECT_EQ(format(), "llama3_json");
  EXPECT_THAT(prompt({{"tools", {tool("f")}}}),
              HasSubstr("form:\n{\"name\": \"...\", \"parameters\": {...}}\n"));
}

}  // namespace
}  // namespace whippet::openai
