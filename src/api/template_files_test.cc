#include "api/template_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_folder.h"

namespace whippet {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string render(const ChatTemplate& chat) { return chat.render({{"messages", json::array()}})->text; }

TEST(TemplateFiles, TheJinjaFileBeatsTheTokenizerConfigBeatsTheOldFile) {
  TestFolder folder;
  const json config = {{"chat_template", "from config"}};
  EXPECT_TRUE(read_template_files(folder.path(), {})->empty());
  folder.write("chat_template.json", R"({"chat_template": "from the old file"})");
  EXPECT_EQ(read_template_files(folder.path(), {})->front().source, "from the old file");
  EXPECT_EQ(read_template_files(folder.path(), config)->front().source, "from config");
  folder.write("chat_template.jinja", "from the file");
  EXPECT_EQ(read_template_files(folder.path(), config)->front().source, "from the file");
  EXPECT_EQ(read_template_files(folder.path(), config)->front().file, "chat_template.jinja");
}

TEST(TemplateFiles, AListOfNamedOnesGivesTheDefaultAndTheOneForTools) {
  TestFolder folder;
  const json config = json::parse(R"({"chat_template": [{"name": "tool_use", "template": "tools"},
                                                        {"name": "default", "template": "plain"}, 5,
      {"name": 1}]})");
  const auto templates = compile_templates(*read_template_files(folder.path(), config));
  EXPECT_EQ(render(**templates.choose(false)), "plain");
  EXPECT_EQ(render(**templates.choose(true)), "tools");
}

TEST(TemplateFiles, AdditionalJinjaFilesAreNamedAfterTheFile) {
  TestFolder folder;
  folder.write("chat_template.jinja", "plain");
  folder.write("additional_chat_templates/tool_use.jinja", "tools");
  const auto templates = compile_templates(*read_template_files(folder.path(), {}));
  EXPECT_EQ(render(**templates.choose(false)), "plain");
  EXPECT_EQ(render(**templates.choose(true)), "tools");
}

TEST(TemplateFiles, GgufMetadataMayNameSeveral) {
  const auto found = gguf_templates({{"tokenizer.chat_template", "plain"},
                                     {"tokenizer.chat_template.tool_use", "tools"},
                                     {"tokenizer.chat_templates", json::array({"tool_use"})},
                                     {"general.name", "x"}});
  const auto templates = compile_templates(found);
  EXPECT_EQ(templates.sources.size(), 2u);
  EXPECT_EQ(render(**templates.choose(false)), "plain");
  EXPECT_EQ(render(**templates.choose(true)), "tools");
  EXPECT_TRUE(gguf_templates(nullptr).empty());
}

TEST(TemplateFiles, TheOptionIsAFileOrTheTemplateItself) {
  TestFolder folder;
  const auto file = folder.write("my.jinja", "mine");
  EXPECT_EQ(template_from_option(file.string())->front().source, "mine");
  EXPECT_EQ(template_from_option("{{ 1 }}")->front().source, "{{ 1 }}");
  EXPECT_THAT(template_from_option("absent.jinja").error().message, HasSubstr("neither a file nor"));
}

TEST(TemplateFiles, WithoutAUsableTemplateTheReasonIsSaid) {
  EXPECT_THAT(compile_templates({}).choose(false).error().message, HasSubstr("has no chat template"));
  const auto broken = compile_templates({{"default", "it.jinja", "{% for %}"}});
  EXPECT_THAT(broken.choose(false).error().message, HasSubstr("it.jinja cannot be used: "));
}

}  // namespace
}  // namespace whippet
