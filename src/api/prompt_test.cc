#include "api/prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace whippet {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

ModelFiles with_template(const char* source) {
  ModelFiles files;
  files.templates = compile_templates({{"default", "test", source}});
  files.token_spellings = {{"bos_token", "<s>"}};
  return files;
}

TEST(MakePrompt, TakesExactlyOneKind) {
  ModelFiles files;
  Request request;
  EXPECT_THAT(make_prompt(files, request).error().message, HasSubstr("needs one of"));
  request.prompt_token_ids = {1, 2};
  EXPECT_THAT(make_prompt(files, request)->ids, ElementsAre(1, 2));
  EXPECT_FALSE(make_prompt(files, request)->is_chat);
  request.prompt = "text";
  EXPECT_THAT(make_prompt(files, request).error().message, HasSubstr("needs exactly one of"));
}

TEST(MakePrompt, TextWithoutATokenizerIsAnError) {
  ModelFiles files;
  files.tokenizer_problem = "no files";
  Request request;
  request.prompt = "text";
  EXPECT_THAT(make_prompt(files, request).error().message, HasSubstr("token ids only (no files)"));
}

TEST(RenderChat, NamedTemplatesAndTheDefaultOne) {
  ModelFiles files = with_template(
      "{% if messages[0].role != 'system' %}sys {% endif %}{% for m in messages %}"
      "{{ m.content }} {% endfor %}{% if add_generation_prompt %}True{% endif %}");
  TemplateVariables chat = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
  EXPECT_EQ(render_chat(files, chat)->text, "sys Hi True");
  EXPECT_EQ(render_chat(files, chat, "minimal")->text, "Hi True");
  files.default_prompt = "minimal";
  EXPECT_EQ(render_chat(files, chat)->text, "Hi True");
  EXPECT_EQ(render_chat(files, chat, "default")->text, "sys Hi True");
  EXPECT_THAT(render_chat(files, chat, "code").error().message, HasSubstr("there are default, minimal"));
  chat["continue_final_message"] = true;
  EXPECT_EQ(render_chat(files, chat)->text, "Hi");
}

TEST(RenderChat, GivesTheTemplateItsTokensAndDefaults) {
  const ModelFiles files =
      with_template("{{ bos_token }}{{ messages[0].content }}{{ add_generation_prompt }}");
  const TemplateVariables chat = {{"messages", {{{"role", "user"}, {"content", "<s>"}}}}};
  const auto rendered = render_chat(files, chat);
  ASSERT_TRUE(rendered.ok()) << rendered.error().message;
  EXPECT_EQ(rendered->text, "<s><s>True");
  EXPECT_THAT(rendered->user_spans, ElementsAre(TextSpan{3, 6})) << "the user's spelling stays text";
  TemplateVariables more = chat;
  more["add_generation_prompt"] = false;
  EXPECT_EQ(render_chat(files, more)->text, "<s><s>False");
}

TEST(RenderChat, RefusesWhatAreNoMessages) {
  const ModelFiles files = with_template("x");
  const auto message = [&](const char* json) {
    return render_chat(files, TemplateVariables::parse(json)).error().message;
  };
  EXPECT_THAT(message("{}"), HasSubstr("at least one message"));
  EXPECT_THAT(message(R"({"messages": []})"), HasSubstr("at least one message"));
  EXPECT_THAT(message(R"({"messages": "hello"})"), HasSubstr("at least one message"));
  EXPECT_THAT(message(R"({"messages": [{"role": "user"}, {"content": "x"}]})"), HasSubstr("messages[1]"));
  EXPECT_THAT(message(R"({"messages": [5]})"), HasSubstr("messages[0]"));
}

TEST(MakePrompt, MalformedJsonNamesItsPart) {
  const ModelFiles files = with_template("x");
  Request request;
  request.messages_json = "[{";
  auto shared = fs::path(WHIPPET_SOURCE_DIR) / "../shared/data/smollm2";
  if (!fs::exists(shared)) GTEST_SKIP() << shared << " is not there";
  ModelFiles real = std::move(*read_model_files(shared, nullptr, {}));
  EXPECT_THAT(make_prompt(real, request).error().message, HasSubstr("messages: no valid JSON"));
  request.messages_json = R"([{"role": "user", "content": "hi"}])";
  request.template_variables_json = "[]";
  EXPECT_THAT(make_prompt(real, request).error().message,
              HasSubstr("template variables: expected an object"));
}

// Every chat of the golden files, through the same door as the server and the command line.
class GoldenChat : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, GoldenChat,
                         testing::Values("smollm2", "qwen2.5-0.5b-instruct", "qwen3", "internlm2"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

TEST_P(GoldenChat, RendersAndEncodesExactly) {
  const fs::path data = fs::path(WHIPPET_SOURCE_DIR) / "../shared/data" / GetParam();
  if (!fs::exists(data)) GTEST_SKIP() << data << " is not there";
  const auto files = read_model_files(data, nullptr, {});
  ASSERT_TRUE(files.ok()) << files.error().message;
  std::ifstream lines(data / "golden_chat.jsonl");
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    TemplateVariables golden = TemplateVariables::parse(line);
    Request request;
    request.messages_json = golden["messages"].dump();
    const auto text = golden["text"].get<std::string>();
    const auto ids = golden["ids"].get<std::vector<int32_t>>();
    for (const char* key : {"messages", "text", "ids"}) golden.erase(key);
    request.template_variables_json = golden.dump();
    const auto prompt = make_prompt(*files, request);
    ASSERT_TRUE(prompt.ok()) << prompt.error().message;
    EXPECT_TRUE(prompt->is_chat);
    EXPECT_EQ(prompt->text, text);
    EXPECT_EQ(prompt->ids, ids);
  }
  EXPECT_GT(count, 8);
}

}  // namespace
}  // namespace whippet
