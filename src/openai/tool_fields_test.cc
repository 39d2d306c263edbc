// "tools", "tool_choice" and "parallel_tool_calls": what is taken, what is refused and how.
#include "openai/testing.h"

namespace whippet::openai {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ToolFieldsTest : public CodecTest {
 protected:
  static json tool(const json& function) { return {{"type", "function"}, {"function", function}}; }
  static json tools(std::initializer_list<const char*> names) {
    json list = json::array();
    for (const char* name : names) list.push_back(tool({{"name", name}}));
    return list;
  }
  std::string error_of(const json& function) { return chat_error({{"tools", {tool(function)}}}); }
  std::string shown_tools(json more) {
    more["max_tokens"] = 1;
    return prompt_of(chat(more).get());
  }
};

TEST_F(ToolFieldsTest, ToolsAreShownUnlessNoneMayBeCalled) {
  const json two = tools({"f", "g"});
  EXPECT_THAT(shown_tools({{"tools", two}}), HasSubstr("<|im_start|>tools\n"));
  EXPECT_THAT(shown_tools({{"tools", two}, {"tool_choice", "auto"}}), HasSubstr("tools\n"));
  EXPECT_THAT(shown_tools({{"tools", two}, {"tool_choice", "required"}}), HasSubstr("tools\n"));
  EXPECT_THAT(shown_tools({{"tools", two}, {"tool_choice", "none"}}), Not(HasSubstr("tools")));
  EXPECT_THAT(shown_tools({{"tools", json::array()}}), Not(HasSubstr("tools")));
  EXPECT_THAT(shown_tools({{"tool_choice", "none"}}), StartsWith("<|im_start|>system"));
  EXPECT_THAT(shown_tools({{"tool_choice", "auto"}}), StartsWith("<|im_start|>system"));
}

TEST_F(ToolFieldsTest, ABadToolIsNamed) {
  EXPECT_THAT(chat_error({{"tools", {5}}}), StartsWith("400 tools[0] invalid_type"));
  EXPECT_THAT(chat_error({{"tools", {{{"type", "web_search"}}}}}),
              StartsWith("400 tools[0].type unsupported"));
  EXPECT_THAT(chat_error({{"tools", {{{"type", "function"}}}}}), StartsWith("400 tools[0].function missing"));
  EXPECT_THAT(chat_error({{"tools", {{{"function", {{"name", "f"}}}}}}}),
              StartsWith("400 tools[0].type missing"));
  EXPECT_THAT(error_of(5), StartsWith("400 tools[0].function invalid_type"));
  EXPECT_THAT(error_of(json::object()), StartsWith("400 tools[0].function.name missing"));
  EXPECT_THAT(error_of({{"name", 5}}), StartsWith("400 tools[0].function.name invalid_type"));
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a.b"), std::string("é"),
                                  std::string("a\"b"), std::string(65, 'a')})
    EXPECT_THAT(chat_error({{"tools", {tool({{"name", "f"}}), tool({{"name", name}})}}}),
                StartsWith("400 tools[1].function.name invalid_value"))
        << name;
  EXPECT_EQ(chat_params({{"tools", tools({"get-it_2"})}}).structured_outputs, std::nullopt);
  EXPECT_THAT(chat_error({{"tools", tools({"f", "f"})}}),
              StartsWith("400 tools[1].function.name invalid_value"));
  EXPECT_THAT(error_of({{"name", "f"}, {"description", 5}}),
              StartsWith("400 tools[0].function.description invalid_type"));
  EXPECT_THAT(error_of({{"name", "f"}, {"strict", "yes"}}),
              StartsWith("400 tools[0].function.strict invalid_type"));
  EXPECT_THAT(error_of({{"name", "f"}, {"parameters", {"a"}}}),
              StartsWith("400 tools[0].function.parameters invalid_type"));
  EXPECT_THAT(error_of({{"name", "f"}, {"parameters", {{"type", "array"}}}}),
              StartsWith("400 tools[0].function.parameters.type invalid_value"));
  json many = json::array();
  for (int i = 0; i < 129; ++i) many.push_back(tool({{"name", "f" + std::to_string(i)}}));
  EXPECT_THAT(chat_error({{"tools", many}}), StartsWith("400 tools invalid_value"));
}

TEST_F(ToolFieldsTest, ABadChoiceIsNamed) {
  const auto error = [&](const json& choice) {
    return chat_error({{"tools", tools({"f", "g"})}, {"tool_choice", choice}});
  };
  const auto named = [](const char* name) {
    return json{{"type", "function"}, {"function", {{"name", name}}}};
  };
  EXPECT_THAT(error("sometimes"), StartsWith("400 tool_choice invalid_value"));
  EXPECT_THAT(error(5), StartsWith("400 tool_choice invalid_type"));
  EXPECT_THAT(error(json::object()), StartsWith("400 tool_choice.type missing"));
  EXPECT_THAT(error({{"type", "custom"}}), StartsWith("400 tool_choice.type unsupported"));
  EXPECT_THAT(error({{"type", "function"}}), StartsWith("400 tool_choice.function.name missing"));
  EXPECT_THAT(error(named("h")),
              StartsWith("400 tool_choice.function.name invalid_value: tool_choice: there is "
                         "no \"h\" among the tools (f, g)"));
  EXPECT_THAT(chat_error({{"tool_choice", named("f")}}),
              StartsWith("400 tool_choice.function.name invalid_value"));
  EXPECT_THAT(chat_error({{"tool_choice", "required"}}), StartsWith("400 tool_choice invalid_value"));
  EXPECT_THAT(chat_error({{"tools", tools({"f"})}, {"parallel_tool_calls", 1}}),
              StartsWith("400 parallel_tool_calls invalid_type"));
}

TEST_F(ToolFieldsTest, TheServersFlagsHold) {
  const json one = {{"tools", tools({"f"})}};
  context_.auto_tool_choice = false;
  EXPECT_THAT(chat_error(one),
              AllOf(StartsWith("400 tool_choice unsupported"), HasSubstr("--enable-auto-tool-choice")));
  EXPECT_NE(chat({{"tools", tools({"f"})}, {"tool_choice", "required"}}), nullptr) << error_.message;
  EXPECT_NE(chat({{"tools", tools({"f"})}, {"tool_choice", "none"}}), nullptr);
  EXPECT_NE(chat({}), nullptr);
  context_.auto_tool_choice = true;
  context_.tool_call_parser = "none";
  EXPECT_NE(chat(one), nullptr);
  EXPECT_THAT(chat_error({{"tools", tools({"f"})}, {"tool_choice", "required"}}),
              StartsWith("400 tool_choice unsupported"));
}

}  // namespace
}  // namespace whippet::openai
