// What Jinja2 renders, case by case: tools/make_template_goldens.py wrote the files in tests/data.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "text/chat_template.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const fs::path kSource = WHIPPET_SOURCE_DIR;
const fs::path kShared = kSource / "../shared/data";
// The clock of the golden files: 2024-07-26 12:34:56.
constexpr std::chrono::sys_seconds kNow{std::chrono::seconds(1721997296)};

std::vector<Json> read_lines(const fs::path& path) {
  std::ifstream file(path);
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// What a template gives, or its error.
std::string outcome(const std::string& source, const Json& variables) {
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) return "error: " + parsed.error().message;
  const auto text = parsed->render(variables, kNow);
  return text.ok() ? "text: " + text->text : "error: " + text.error().message;
}

void expect_golden(const std::string& source, const Json& variables, const Json& golden) {
  const std::string found = outcome(source, variables);
  if (golden.contains("error")) {
    EXPECT_TRUE(found.starts_with("error: chat template, ")) << source << "\ngives " << found;
  } else {
    EXPECT_EQ(found, "text: " + golden["text"].get<std::string>()) << source;
  }
}

TEST(TemplateGolden, SnippetsRenderAsInJinja) {
  const std::vector<Json> lines = read_lines(kSource / "tests/data/template_goldens.jsonl");
  ASSERT_GT(lines.size(), 700u);
  const Json& variables = lines.front()["variables"];
  for (size_t i = 1; i < lines.size(); ++i) {
    expect_golden(lines[i]["template"].get<std::string>(), variables, lines[i]);
  }
}

TEST(TemplateGolden, TemplatesOfRealModelsRenderAsInJinja) {
  if (!fs::exists(kShared)) GTEST_SKIP() << "the templates are in " << kShared << ", which is not here";
  const std::vector<Json> lines = read_lines(kSource / "tests/data/template_model_goldens.jsonl");
  ASSERT_GT(lines.size(), 80u);
  for (const Json& line : lines) {
    const fs::path file = kShared / "chat_templates" / line["file"].get<std::string>();
    expect_golden(read_text(file), line["variables"], line);
  }
}

class ModelFolder : public testing::TestWithParam<const char*> {};

TEST_P(ModelFolder, RendersEveryGoldenChat) {
  const fs::path folder = kShared / GetParam();
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not here";
  const std::string source = read_text(folder / "chat_template.jinja");
  const std::vector<Json> lines = read_lines(folder / "golden_chat.jsonl");
  ASSERT_FALSE(lines.empty());
  for (Json variables : lines) {
    const std::string text = variables["text"];
    for (const char* key : {"text", "ids", "user_spells_control_token"}) variables.erase(key);
    variables["bos_token"] = "<s>";
    EXPECT_EQ(outcome(source, variables), "text: " + text) << variables.dump();
  }
}

INSTANTIATE_TEST_SUITE_P(TemplateGolden, ModelFolder,
                         testing::Values("qwen2.5-0.5b-instruct", "qwen3", "internlm2", "smollm2"));

}  // namespace
}  // namespace whippet
