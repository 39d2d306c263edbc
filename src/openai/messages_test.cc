// Messages and tools as clients send them, and what the template is given.
#include "openai/testing.h"

namespace whippet::openai {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Messages : public CodecTest {
 protected:
  // The prompt of these messages, with "|" for the end of a turn.
  std::string rendered(const json& messages, json more = json::object()) {
    more["messages"] = messages;
    more["prompt_template"] = "minimal";
    const auto exchange = chat(more);
    if (exchange == nullptr) return shown_error();
    std::string text = prompt_of(exchange.get());
    for (const auto& [mark, sign] : {std::pair("<|im_end|>\n", "|"), std::pair("<|im_start|>", "")})
      for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at))
        text.replace(at, std::strlen(mark), sign);
    return text;
  }
};

TEST_F(Messages, RolesAreThoseThatTemplatesKnow) {
  EXPECT_EQ(rendered({{{"role", "developer"}, {"content", "D"}}, {{"role", "user"}, {"content", "U"}}}),
            "system\nD|user\nU|assistant\n");
  EXPECT_EQ(rendered({{{"role", "user"}, {"content", "U"}},
                      {{"role", "function"}, {"name", "f"}, {"content", "F"}}}),
            "user\nU|tool\nF|assistant\n");
  EXPECT_THAT(
      rendered({{{"role", "critic"}, {"content", "C"}}}),
      StartsWith("400 messages[0].role invalid_value: messages[0]: role is 'critic', but must be one of"));
  EXPECT_THAT(rendered({{{"content", "C"}}}), StartsWith("400 messages[0].role missing_required_parameter"));
  EXPECT_THAT(rendered({{{"role", 5}, {"content", "C"}}}), StartsWith("400 messages[0].role invalid_type"));
}

TEST_F(Messages, ContentIsATextOrPartsOfText) {
  EXPECT_EQ(rendered({{{"role", "user"},
                       {"content",
                        {{{"type", "text"}, {"text", "a"}}, "b", {{"type", "input_text"}, {"text", "c"}}}}}}),
            "user\na\nb\nc|assistant\n");
  EXPECT_EQ(rendered({{{"role", "user"}, {"content", nullptr}}}), "user\n|assistant\n");
  EXPECT_EQ(rendered({{{"role", "user"}, {"content", json::array()}}}), "user\n|assistant\n");
  EXPECT_EQ(rendered({{{"role", "user"}, {"content", "a"}},
                      {{"role", "assistant"}, {"content", {{{"type", "refusal"}, {"refusal", "no"}}}}}}),
            "user\na|assistant\nno|assistant\n");
  EXPECT_THAT(rendered({{{"role", "user"}, {"content", 5}}}),
              StartsWith("400 messages[0].content invalid_type"));
  EXPECT_THAT(rendered({{{"role", "user"}}}),
              StartsWith("400 messages[0].content missing_required_parameter"));
  EXPECT_THAT(rendered({{{"role", "user"}, {"content", {{{"type", "text"}}}}}}),
              StartsWith("400 messages[0].content[0].text missing"));
  EXPECT_THAT(rendered({{{"role", "user"}, {"content", {{{"type", "text"}, {"text", 1}}}}}}),
              StartsWith("400 messages[0].content[0].text invalid_type"));
  EXPECT_THAT(rendered({{{"role", "user"}, {"content", {5}}}}),
              StartsWith("400 messages[0].content[0] invalid_type"));
  EXPECT_THAT(rendered({{{"role", "user"}, {"content", {{{"text", "x"}}}}}}),
              StartsWith("400 messages[0].content[0].type missing"));
}

TEST_F(Messages, ImagesSoundAndFilesAreRefused) {
  for (const char* type : {"image_url", "input_audio", "file", "video_url", "input_image"})
    EXPECT_THAT(
        rendered({{{"role", "user"},
                   {"content",
                    {{{"type", "text"}, {"text", "a"}}, {{"type", type}, {type, {{"url", "data:"}}}}}}}}),
        testing::AllOf(StartsWith("400 messages[0].content[1] unsupported_parameter"), HasSubstr(type)));
  EXPECT_THAT(rendered({{{"role", "assistant"}, {"content", "a"}, {"audio", {{"id", "x"}}}}}),
              StartsWith("400 messages[0].audio unsupported_parameter"));
}

TEST_F(Messages, ThereMustBeOne) {
  EXPECT_THAT(rendered(json::array()),
              StartsWith("400 messages invalid_value: messages: there must be at least one"));
  EXPECT_THAT(rendered({5}), StartsWith("400 messages[0] invalid_type"));
  EXPECT_THAT(chat_error({{"messages", nullptr}}), StartsWith("400 messages missing_required_parameter"));
}

TEST_F(Messages, ExtraKeysReachTheTemplate) {
  EXPECT_EQ(rendered({{{"role", "user"}, {"content", "a"}, {"mood", "happy"}, {"name", "Ann"}}}),
            "user\na(happy)|assistant\n");
}

TEST_F(Messages, ToolCallsCarryTheirArgumentsAsAnObject) {
  const auto call = [](const json& arguments) {
    return json{{"id", "1"}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", arguments}}}};
  };
  const auto turn = [&](const json& arguments) {
    return rendered({{{"role", "user"}, {"content", "a"}},
                     {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {call(arguments)}}},
                     {{"role", "tool"}, {"tool_call_id", "1"}, {"content", "result"}}});
  };
  EXPECT_EQ(turn(R"({"city": "Paris", "b": 1})"),
            "user\na|assistant\n<call>{\"city\": \"Paris\", \"b\": 1}</call>|tool\nresult|assistant\n");
  EXPECT_THAT(turn(""), HasSubstr("<call>{}</call>"));
  EXPECT_THAT(turn("not JSON"), HasSubstr("<call>\"not JSON\"</call>"));
  EXPECT_THAT(turn(json{{"a", 1}}), HasSubstr("<call>{\"a\": 1}</call>"));
  EXPECT_EQ(rendered({{{"role", "assistant"}, {"tool_calls", {call("{}")}}}}),
            "assistant\n<call>{}</call>|assistant\n");
  for (const json& empty : {json(nullptr), json::array()})
    EXPECT_EQ(rendered({{{"role", "assistant"}, {"content", "a"}, {"tool_calls", empty}}}),
              "assistant\na|assistant\n");
  EXPECT_THAT(rendered({{{"role", "assistant"}, {"tool_calls", 5}}}),
              StartsWith("400 messages[0].tool_calls invalid_type"));
  EXPECT_THAT(rendered({{{"role", "assistant"}, {"tool_calls", {5}}}}),
              StartsWith("400 messages[0].tool_calls[0] invalid_type"));
  EXPECT_THAT(rendered({{{"role", "assistant"}, {"tool_calls", {json::object()}}}}),
              StartsWith("400 messages[0].tool_calls[0].function missing"));
}

TEST_F(Messages, ToolsReachTheTemplateInTheOrderOfTheirKeys) {
  const std::string body = R"({"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function",
    "function": {"name": "f", "description": "d", "parameters": {"z": 1, "a": 2}}}]})";
  EXPECT_THAT(
      prompt_of(parsed(parse_chat(context_, body, "id")).get()),
      HasSubstr(
          R"({"type": "function", "function": {"name": "f", "description": "d", "parameters": {"z": 1, "a": 2}}})"));
}

TEST_F(Messages, ReasoningIsForTemplatesThatReadIt) {
  const auto turn = [&](const json& more) {
    json message = {{"role", "assistant"}, {"content", "b"}};
    message.update(more);
    return rendered({{{"role", "user"}, {"content", "a"}}, message});
  };
  EXPECT_EQ(turn({{"reasoning", "deep"}}), "user\na|assistant\nb|assistant\n") << "this template does not";
  context_ = fake_context("{% for m in messages %}{{ m.reasoning_content }}{{ m.content }}|{% endfor %}");
  EXPECT_EQ(turn({{"reasoning", "deep"}}), "a|deepb|");
  EXPECT_EQ(turn({{"reasoning_content", "deep"}}), "a|deepb|");
  EXPECT_EQ(turn({{"reasoning", nullptr}, {"reasoning_content", "deep"}}), "a|deepb|");
  EXPECT_THAT(turn({{"reasoning", 5}}), StartsWith("400 messages[1].reasoning invalid_type"));
  EXPECT_THAT(turn({{"reasoning_content", {"a"}}}),
              StartsWith("400 messages[1].reasoning_content invalid_type"));
}

TEST_F(Messages, TheIdOfACallIsAText) {
  EXPECT_THAT(rendered({{{"role", "tool"}, {"content", "a"}, {"tool_call_id", 5}}}),
              StartsWith("400 messages[0].tool_call_id invalid_type"));
}

}  // namespace
}  // namespace whippet::openai
