// What a forced call, a strict function and a response_format beside tools ask of the answer.
#include "openai/tool_grammar.h"

#include "openai/testing.h"
#include "whippet/whippet.h"

namespace whippet::openai {
namespace {

class ToolGrammar : public CodecTest {
 protected:
  static json two_tools() {
    return json::parse(R"([{"type": "function", "function": {"name": "f",
        "parameters": {"properties": {"a": {"type": "integer"}}}}},
      {"type": "function", "function": {"name": "g"}}])");
  }
  // The format of the structural tag; null: there is none.
  json format_of(json more) {
    if (!more.contains("tools")) more["tools"] = two_tools();
    const SamplingParams params = chat_params(more);
    after_ = params.structured_outputs ? params.structured_outputs->after : "";
    if (!params.structured_outputs) return nullptr;
    const json tag = json::parse(params.structured_outputs->structural_tag);
    EXPECT_EQ(tag["type"], "structural_tag");
    return tag["format"];
  }
  std::string after_;
};

TEST_F(ToolGrammar, ARequiredCallIsOneOrMoreOfTheTools) {
  const json format = format_of({{"tool_choice", "required"}});
  EXPECT_EQ(format["type"], "tags_with_separator");
  EXPECT_EQ(format["at_least_one"], true);
  EXPECT_EQ(format["stop_after_first"], false);
  EXPECT_EQ(format["separator"], "\n");
  ASSERT_EQ(format["tags"].size(), 2u);
  EXPECT_EQ(format["tags"][0], json::parse(R"({"type": "tag",
      "begin": "<tool_call>\n{\"name\": \"f\", \"arguments\": ", "end": "}\n</tool_call>",
      "content": {"type": "json_schema",
                  "json_schema": {"properties": {"a": {"type": "integer"}}, "type": "object"}}})"));
  EXPECT_EQ(format["tags"][1]["content"]["json_schema"],
            json::parse(R"({"type": "object", "properties": {}, "additionalProperties": false})"));
  EXPECT_EQ(format_of({{"tool_choice", "required"}, {"parallel_tool_calls", false}})["stop_after_first"],
            true);
}

TEST_F(ToolGrammar, ANamedFunctionIsTheOnlyOneAndOnce) {
  const json format = format_of({{"tool_choice", {{"type", "function"}, {"function", {{"name", "g"}}}}}});
  ASSERT_EQ(format["tags"].size(), 1u);
  EXPECT_EQ(format["tags"][0]["begin"], "<tool_call>\n{\"name\": \"g\", \"arguments\": ");
  EXPECT_EQ(format["stop_after_first"], true);
}

TEST_F(ToolGrammar, AFreeChoiceIsHeldToNothingUnlessAFunctionIsStrict) {
  EXPECT_EQ(format_of({}), nullptr);
  EXPECT_EQ(format_of({{"tool_choice", "none"}}), nullptr);
  json strict = two_tools();
  strict[0]["function"]["strict"] = true;
  const json format = format_of({{"tools", strict}});
  EXPECT_EQ(format["type"], "triggered_tags");
  EXPECT_EQ(format["triggers"], json::parse(R"(["<tool_call>"])"));
  EXPECT_EQ(format["at_least_one"], false);
  EXPECT_EQ(format["tags"].size(), 2u);
  // A grammar does not see control tokens, and bare objects begin like any other.
  context_ = fake_context("{{ tools | tojson }}<tool_call>", {"<tool_call>"});
  EXPECT_EQ(format_of({{"tools", strict}}), nullptr);
  context_ = fake_context();
  context_.tool_call_parser = "llama3_json";
  EXPECT_EQ(format_of({{"tools", strict}}), nullptr);
}

TEST_F(ToolGrammar, TheFormatsOfOtherModels) {
  context_.tool_call_parser = "llama3_json";
  json tag = format_of({{"tool_choice", "required"}});
  EXPECT_EQ(tag["tags"][0]["begin"], "{\"name\": \"f\", \"parameters\": ");
  EXPECT_EQ(tag["tags"][0]["end"], "}");
  EXPECT_EQ(tag["stop_after_first"], true);
  context_.tool_call_parser = "internlm";
  tag = format_of({{"tool_choice", "required"}});
  EXPECT_EQ(tag["tags"][0]["begin"], "<|action_start|><|plugin|>\n{\"name\": \"f\", \"parameters\": ");
  EXPECT_EQ(tag["tags"][0]["end"], "}");
}

TEST_F(ToolGrammar, AnAnswerInAnAskedForFormIsStillPossible) {
  ToolFields fields;
  const Json tools = Json::parse(two_tools().dump());
  fields = {.choice = ToolChoice::kAuto, .tools = &tools, .names = {"f", "g"}};
  const ToolFormat& hermes = *find_tool_format("hermes");
  SamplingParams params;
  params.structured_outputs.emplace().json = R"({"type": "integer"})";
  add_tool_grammar(fields, hermes, true, params);
  EXPECT_EQ(params.structured_outputs->json, "");
  const json format = json::parse(params.structured_outputs->structural_tag)["format"];
  EXPECT_EQ(format["type"], "or");
  EXPECT_EQ(format["elements"][0]["type"], "tags_with_separator");
  EXPECT_EQ(format["elements"][1],
            json::parse(R"({"type": "json_schema", "json_schema": {"type": "integer"}})"));
  params.structured_outputs.emplace().choice = {"a", "b"};
  add_tool_grammar(fields, hermes, true, params);
  EXPECT_EQ(params.structured_outputs->choice.size(), 2u) << "left as it is";
  fields.choice = ToolChoice::kRequired;
  add_tool_grammar(fields, hermes, true, params);
  EXPECT_TRUE(params.structured_outputs->choice.empty()) << "a forced call leaves no answer";
}

TEST_F(ToolGrammar, AWrongSchemaIsNamed) {
  context_.prepare_grammar = [](const StructuredOutputs& asked) {
    if ((asked.json + asked.structural_tag).find("integer") != std::string::npos)
      throw Failure("invalid_argument", "structured_outputs.json: no integers");
  };
  json tools = two_tools();
  std::swap(tools[0], tools[1]);
  EXPECT_EQ(chat_error({{"tools", tools}, {"tool_choice", "required"}}),
            "400 tools[1].function.parameters invalid_value: tools[1].function.parameters: no integers");
  EXPECT_NE(chat({{"tools", tools}}), nullptr) << "nothing is held to it";
}

TEST_F(ToolGrammar, ItHoldsFromTheEndOfTheThinkingOn) {
  const json required = {{"tool_choice", "required"}};
  EXPECT_NE(format_of(required), nullptr);
  EXPECT_EQ(after_, "");
  const auto with_prompt = [](const char* end) {
    Context context = fake_context(end, {"<think>", "</think>"});
    context.knows_thinking = true;
    return context;
  };
  context_ = with_prompt("{{ tools | tojson }}<think>\n");
  EXPECT_NE(format_of(required), nullptr);
  EXPECT_EQ(after_, "</think>");
  context_ = with_prompt("{{ tools | tojson }}<think>\n\n</think>\n\n");
  EXPECT_NE(format_of(required), nullptr);
  EXPECT_EQ(after_, "") << "there is no thinking to come";
  // A model that may think does, since an answer that began at once would be held to nothing.
  context_ = with_prompt("{{ tools | tojson }}assistant\n");
  EXPECT_NE(format_of(required), nullptr);
  EXPECT_EQ(after_, "</think>");
  json more = required;
  more["tools"] = two_tools();
  EXPECT_THAT(prompt_of(chat(more).get()), testing::EndsWith("assistant<think>\n"));
  context_.reasoning_parser = "none";
  EXPECT_NE(format_of(required), nullptr);
  EXPECT_EQ(after_, "");
}

}  // namespace
}  // namespace whippet::openai
