// What Jinja2 renders, case by case: tools/make_template_goldens.py wrote the files in tests/data.
#include <gtest/gtest.h>

#include <algorithm>
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

// The text with letters and angle brackets moved to where no template writes: U+E000 and on.
std::string disguised(const std::string& text) {
  std::string moved;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '<' || c == '>';
    if (letter) moved += "\xee\x80";
    moved += letter ? static_cast<char>(c | 0x80) : c;
  }
  return moved;
}

// Disguises what users write freely: all strings but those that templates look at.
void disguise(Json& value) {
  if (value.is_string()) value = disguised(value.get<std::string>());
  if (!value.is_structured()) return;
  for (const auto& [key, element] : value.items()) {
    if (key != "role" && key != "type") disguise(value.is_array() ? value[std::stoul(key)] : value[key]);
  }
}

TEST(TemplateGolden, RealTemplatesMarkAllThatUsersWroteAndNothingOfTheirs) {
  if (!fs::exists(kShared)) GTEST_SKIP() << "the templates are in " << kShared << ", which is not here";
  size_t marked = 0;
  for (const Json& line : read_lines(kSource / "tests/data/template_model_goldens.jsonl")) {
    if (line.contains("error")) continue;
    Json variables = line["variables"];
    for (const char* key : {"messages", "tools"}) {
      if (variables.contains(key)) disguise(variables[key]);
    }
    const auto parsed =
        ChatTemplate::parse(read_text(kShared / "chat_templates" / line["file"].get<std::string>()));
    ASSERT_TRUE(parsed.ok());
    const auto rendered = parsed->render(variables, kNow);
    ASSERT_TRUE(rendered.ok()) << rendered.error().message;
    std::string outside = rendered->text;
    for (auto span = rendered->user_spans.rbegin(); span != rendered->user_spans.rend(); ++span) {
      const std::string inside = outside.substr(span->begin, span->end - span->begin);
      EXPECT_EQ(inside.find('<'), std::string::npos) << inside << "\n" << line;
      marked += inside.size();
      outside.erase(span->begin, span->end - span->begin);
    }
    EXPECT_EQ(outside.find("\xee\x80"), std::string::npos) << outside << "\n" << line;
  }
  EXPECT_GT(marked, 10'000u);
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

TEST_P(ModelFolder, TellsASpelledControlTokenFromItsOwn) {
  const fs::path folder = kShared / GetParam();
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not here";
  const auto parsed = ChatTemplate::parse(read_text(folder / "chat_template.jinja"));
  ASSERT_TRUE(parsed.ok());
  const std::string token = "<|im_end|>";
  size_t spelled = 0;
  for (Json variables : read_lines(folder / "golden_chat.jsonl")) {
    if (!variables.contains("user_spells_control_token")) continue;
    const std::string content = variables["messages"][0]["content"];
    const auto rendered = parsed->render(variables, kNow);
    ASSERT_TRUE(rendered.ok());
    const std::string& text = rendered->text;
    for (size_t at = text.find(token); at != std::string::npos; at = text.find(token, at + 1)) {
      const bool in_content = at == text.find(content) + content.find(token);
      const bool marked =
          std::any_of(rendered->user_spans.begin(), rendered->user_spans.end(),
                      [&](TextSpan span) { return at < span.end && span.begin < at + token.size(); });
      EXPECT_EQ(marked, in_content) << at << " in " << text;
      spelled += in_content ? 1 : 0;
    }
  }
  EXPECT_GT(spelled, 0u);
}

INSTANTIATE_TEST_SUITE_P(TemplateGolden, ModelFolder,
                         testing::Values("qwen2.5-0.5b-instruct", "qwen3", "internlm2", "smollm2"));

}  // namespace
}  // namespace whippet
