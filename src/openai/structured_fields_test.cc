// response_format, structured_outputs and guided_*: what they ask for, and how wrong ones are refused.
#include "openai/structured_fields.h"

#include "openai/testing.h"
#include "whippet/whippet.h"

namespace whippet::openai {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class StructuredFields : public CodecTest {
 protected:
  StructuredOutputs asked(const json& more) {
    const auto outputs = chat_params(more).structured_outputs;
    EXPECT_EQ(completion_params(more).structured_outputs, outputs);
    EXPECT_TRUE(outputs) << more;
    return outputs.value_or(StructuredOutputs{});
  }
};

const json kSchema = {{"type", "object"}, {"properties", {{"b", {{"type", "integer"}}}}}};

json schema_format(const json& described) {
  return {{"response_format", {{"type", "json_schema"}, {"json_schema", described}}}};
}

TEST_F(StructuredFields, ResponseFormatsOfOpenAi) {
  EXPECT_FALSE(chat_params({{"response_format", {{"type", "text"}}}}).structured_outputs);
  EXPECT_TRUE(asked({{"response_format", {{"type", "json_object"}}}}).json_object);
  for (const json& strict : {json(true), json(false), json()}) {
    const auto outputs =
        asked(schema_format({{"name", "x"}, {"description", "d"}, {"strict", strict}, {"schema", kSchema}}));
    EXPECT_EQ(json::parse(outputs.json), kSchema);
  }
  const json tag = {{"type", "structural_tag"}, {"format", {{"type", "any_text"}}}};
  EXPECT_EQ(json::parse(asked({{"response_format", tag}}).structural_tag), tag);
}

TEST_F(StructuredFields, MembersOfASchemaKeepTheirOrder) {
  const std::string body =
      R"({"model":"tiny","prompt":"Hi","response_format":{"type":"json_schema","json_schema":
      {"name":"x","schema":{"properties":{"z":{},"a":{}}}}}})";
  const auto exchange = parsed(parse_completion(context_, body, "id"));
  ASSERT_NE(exchange, nullptr) << error_.message;
  EXPECT_EQ(exchange->requests().front().params.structured_outputs->json,
            R"({"properties":{"z":{},"a":{}}})");
}

TEST_F(StructuredFields, KindsOfVllmAndTheirOlderNames) {
  for (const bool older : {false, true}) {
    const auto body = [&](const char* kind, const json& value) {
      return older ? json{{std::string("guided_") + kind, value}}
                   : json{{"structured_outputs", {{kind, value}}}};
    };
    EXPECT_EQ(json::parse(asked(body("json", kSchema)).json), kSchema);
    EXPECT_EQ(asked(body("json", kSchema.dump())).json, kSchema.dump());
    EXPECT_EQ(asked(body("regex", "a+")).regex, "a+");
    EXPECT_EQ(asked(body("choice", {"a", "b"})).choice, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(asked(body("grammar", "root ::= \"a\"")).grammar, "root ::= \"a\"");
  }
  const auto tight = asked({{"structured_outputs",
                             {{"json_object", true}, {"disable_any_whitespace", true}, {"regex", nullptr}}}});
  EXPECT_TRUE(tight.json_object && tight.disable_any_whitespace);
  EXPECT_FALSE(chat_params({{"structured_outputs", {{"json_object", false}}}}).structured_outputs);
}

TEST_F(StructuredFields, WrongOnesAreRefusedByName) {
  const std::pair<json, const char*> cases[] = {
      {{{"response_format", "json"}}, "400 response_format invalid_type"},
      {{{"response_format", json::object()}}, "400 response_format.type missing"},
      {{{"response_format", {{"type", "xml"}}}}, "400 response_format.type"},
      {{{"response_format", {{"type", "json_schema"}}}}, "400 response_format.json_schema missing"},
      {schema_format(3), "400 response_format.json_schema invalid_type"},
      {schema_format({{"name", "x"}}), "400 response_format.json_schema.schema missing"},
      {schema_format({{"name", 3}, {"schema", kSchema}}),
       "400 response_format.json_schema.name invalid_type"},
      {schema_format({{"strict", "yes"}, {"schema", kSchema}}),
       "400 response_format.json_schema.strict invalid_type"},
      {schema_format({{"schema", "text"}}), "400 response_format.json_schema.schema invalid_type"},
      {{{"structured_outputs", "x"}}, "400 structured_outputs invalid_type"},
      {{{"structured_outputs", {{"jsn", 1}}}}, "400 structured_outputs.jsn"},
      {{{"structured_outputs", {{"json", 1}}}}, "400 structured_outputs.json invalid_type"},
      {{{"structured_outputs", {{"regex", ""}}}}, "400 structured_outputs.regex"},
      {{{"structured_outputs", {{"choice", json::array()}}}}, "400 structured_outputs.choice"},
      {{{"structured_outputs", {{"choice", {1}}}}}, "400 structured_outputs.choice"},
      {{{"structured_outputs", {{"whitespace_pattern", " "}}}}, "400 structured_outputs.whitespace_pattern"},
      {{{"structured_outputs", {{"json", "{}"}, {"regex", "a"}}}}, "400 structured_outputs.regex"},
      {{{"structured_outputs", {{"regex", "a"}, {"disable_any_whitespace", true}}}},
       "400 structured_outputs.disable_any_whitespace"},
      {{{"guided_regex", "a"}, {"guided_json", "{}"}}, "400 guided_regex"},
      {{{"guided_choice", "a"}}, "400 guided_choice invalid_type"},
      {{{"guided_regex", "a"}, {"response_format", {{"type", "json_object"}}}}, "400 guided_regex"},
      {{{"grammar", "root ::= x"}}, "400 grammar unsupported_parameter"}};
  for (const auto& [body, expected] : cases) {
    EXPECT_THAT(chat_error(body), StartsWith(expected)) << body;
    EXPECT_THAT(completion_error(body), StartsWith(expected)) << body;
  }
}

TEST_F(StructuredFields, WhatCannotBeCompiledNamesTheFieldThatAsked) {
  context_.prepare_grammar = [](const StructuredOutputs&) {
    throw Failure("invalid_argument", "structured_outputs.json: JSON schema: 'not' at #: no");
  };
  EXPECT_THAT(chat_error(schema_format({{"schema", kSchema}})),
              HasSubstr("400 response_format.json_schema.schema invalid_value: "
                        "response_format.json_schema.schema: JSON schema: 'not' at #: no"));
  EXPECT_THAT(completion_error({{"guided_json", kSchema}}),
              HasSubstr("guided_json: JSON schema: 'not' at #"));
  context_.prepare_grammar = [](const StructuredOutputs&) {
    throw Failure("unavailable", "structured_outputs: too many");
  };
  EXPECT_THAT(chat_error({{"guided_json", kSchema}}), StartsWith("503"));
}

}  // namespace
}  // namespace whippet::openai
