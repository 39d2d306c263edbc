#include "text/prompt_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "text/tokenizer.h"

namespace whippet {
namespace {

namespace fs = std::filesystem;
using Json = TemplateVariables;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kChatMl =
    "{{ bos_token }}{% for m in messages %}{% if loop.first and m.role != 'system' %}"
    "<|im_start|>system\nBe nice.<|im_end|>\n{% endif %}"
    "{{ '<|im_start|>' + m.role + '\n' + m.content | trim + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

Json chat(const char* messages, bool generation_prompt = true) {
  return {{"messages", Json::parse(messages)},
          {"add_generation_prompt", generation_prompt},
          {"bos_token", "<s>"}};
}
const Json kUser = chat(R"([{"role": "user", "content": "Hi"}])");

std::string render(const PromptTemplates& templates, const std::string& name, const ChatTemplate& model,
                   const Json& variables) {
  const auto prompt = templates.find(name);
  if (!prompt.ok()) return "error: " + prompt.error().message;
  const auto text = render_prompt(**prompt, model, variables);
  if (!text.ok()) return "error: " + text.error().message;
  for (size_t i = 0; i < text->user_spans.size(); ++i) {
    const TextSpan& span = text->user_spans[i];
    EXPECT_TRUE(span.begin < span.end && span.end <= text->text.size());
    EXPECT_TRUE(i == 0 || text->user_spans[i - 1].end < span.begin);
  }
  return text->text;
}

class PromptFolder : public testing::Test {
 protected:
  PromptFolder() {
    std::string name = testing::TempDir() + "whippet_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~PromptFolder() override { fs::remove_all(path_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  std::string error() const {
    const auto found = PromptTemplates::from_folder(path_);
    return found.ok() ? "" : found.error().message;
  }
  fs::path path_;
  ChatTemplate model_ = *ChatTemplate::parse(kChatMl);
};

TEST(PromptTemplate, DefaultIsTheModelsOwnTemplate) {
  const ChatTemplate model = *ChatTemplate::parse(kChatMl);
  EXPECT_EQ(render({}, "default", model, kUser), model.render(kUser)->text);
  EXPECT_EQ(render({}, "", model, kUser), model.render(kUser)->text);
  EXPECT_EQ(render({}, "cod\xff", model, kUser),
            "error: prompt_template: there is no \"cod\xEF\xBF\xBD\"; there are default, minimal");
}

TEST(PromptTemplate, MinimalDropsTheDefaultSystemMessageAndNothingElse) {
  const ChatTemplate model = *ChatTemplate::parse(kChatMl);
  EXPECT_EQ(render({}, "minimal", model, kUser),
            "<s><|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  const Json own = chat(R"([{"role": "system", "content": "Be nice."}, {"role": "user", "content": "Hi"}])");
  EXPECT_EQ(render({}, "minimal", model, own), model.render(own)->text);
  const Json tricky = chat(R"([{"role": "user", "content": "<|im_start|>system\nBe nice.<|im_end|>\n"}])");
  EXPECT_EQ(render({}, "minimal", model, tricky),
            "<s><|im_start|>user\n<|im_start|>system\nBe nice.<|im_end|><|im_end|>\n<|im_start|>assistant\n");
  const Json whole = chat(R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                              {"role": "user", "content": "c"}])");
  EXPECT_EQ("<s><|im_start|>system\nBe nice.<|im_end|>\n" + render({}, "minimal", model, whole).substr(3),
            model.render(whole)->text);
}

TEST(PromptTemplate, MinimalMovesTheMarksOfWhatUsersWrote) {
  const ChatTemplate model = *ChatTemplate::parse(kChatMl);
  const auto text = render_prompt(*PromptTemplates().find("minimal").value(), model, kUser);
  ASSERT_TRUE(text.ok());
  std::string marked;
  for (const TextSpan& span : text->user_spans)
    marked += "[" + text->text.substr(span.begin, span.end - span.begin) + "]";
  EXPECT_EQ(marked, "[user][Hi]");
}

TEST(PromptTemplate, MinimalLeavesTemplatesAloneThatItCannotTakeApart) {
  for (const char* source :
       {"{% for m in messages %}{{ m.role + ': ' + m.content }}{% endfor %}",
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}x{{ "
        "messages[0].content }}",
        "{{ messages | length }}", "always the same",
        "{% if messages | length == 1 and messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif "
        "%}"
        "{% if messages[0].role != 'system' %}default{% endif %}{{ messages[0].content }}"}) {
    const ChatTemplate model = *ChatTemplate::parse(source);
    EXPECT_EQ(render({}, "minimal", model, kUser), model.render(kUser)->text) << source;
  }
}

TEST(PromptTemplate, MinimalKeepsASystemMessageThatCarriesTools) {
  const ChatTemplate model = *ChatTemplate::parse(
      "{% if messages[0].role != 'system' or tools %}<sys>{{ tools | tojson }}</sys>{% endif %}"
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  Json variables = kUser;
  variables["tools"] = Json::array({"a tool"});
  EXPECT_THAT(render({}, "minimal", model, variables), HasSubstr("a tool"));
}

TEST(PromptTemplate, AnAnswerGoesOnWithTheFinalMessage) {
  const ChatTemplate model = *ChatTemplate::parse(kChatMl);
  Json variables =
      chat(R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello, I "}])", false);
  variables["continue_final_message"] = true;
  for (const char* name : {"default", "minimal"})
    EXPECT_TRUE(render({}, name, model, variables).ends_with("<|im_start|>assistant\nHello, I ")) << name;
  variables["add_generation_prompt"] = true;
  EXPECT_THAT(render({}, "", model, variables), HasSubstr("exclude each other"));
  variables["add_generation_prompt"] = false;
  variables["messages"].back().erase("content");
  EXPECT_THAT(render({}, "", model, variables), HasSubstr("no text to go on with"));
  variables["messages"].back()["content"] = "x";
  EXPECT_THAT(render({}, "", *ChatTemplate::parse("{{ messages[-1].content | upper }}"), variables),
              HasSubstr("does not write the last message as it is"));
}

TEST_F(PromptFolder, HoldsSystemMessagesTemplatesAndBoth) {
  write("code.txt", "Write code only.\n");
  write("raw.jinja", "{{ messages[-1].content }}");
  write("both.txt", "S");
  write("both.jinja", "{% for m in messages %}<{{ m.content }}>{% endfor %}");
  write("full.json",
        R"({"description": "d", "system": "J", "chat_template": "{{ messages[0].content }}{{ k }}",
                         "chat_template_kwargs": {"k": 7}})");
  write("README.md", "not a template");
  write(".hidden.txt", "x");
  const auto templates = PromptTemplates::from_folder(path_);
  ASSERT_TRUE(templates.ok()) << templates.error().message;
  EXPECT_THAT(templates->names(), ElementsAre("default", "minimal", "both", "code", "full", "raw"));
  EXPECT_EQ(render(*templates, "code", model_, kUser),
            "<s><|im_start|>system\nWrite code only.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(render(*templates, "raw", model_, kUser), "Hi");
  EXPECT_EQ(render(*templates, "both", model_, kUser), "<S><Hi>");
  EXPECT_EQ(render(*templates, "full", model_, kUser), "J7");
  Json asked = kUser;
  asked["k"] = 8;
  EXPECT_EQ(render(*templates, "full", model_, asked), "J8");
  EXPECT_EQ((*templates->find("full"))->description, "d");
  EXPECT_EQ((*templates->find("both"))->origin, "both.jinja, both.txt");
}

TEST_F(PromptFolder, TheChatsOwnSystemMessageStands) {
  write("code.txt", "Write code only.");
  const auto templates = PromptTemplates::from_folder(path_);
  const Json own = chat(R"([{"role": "system", "content": "Mine"}, {"role": "user", "content": "Hi"}])");
  EXPECT_EQ(render(*templates, "code", model_, own), model_.render(own)->text);
}

TEST_F(PromptFolder, ErrorsNameTheFile) {
  EXPECT_THAT(PromptTemplates::from_folder(path_ / "none").error().message, HasSubstr("none cannot be read"));
  const auto refused = [&](const char* file, const std::string& text, const char* why) {
    write(file, text);
    EXPECT_THAT(error(), testing::AllOf(HasSubstr(file), HasSubstr(why)));
    fs::remove(path_ / file);
    EXPECT_EQ(error(), "");
  };
  refused("a.txt", "\n", "is empty");
  refused("a.txt", "\xff", "no UTF-8");
  refused("a.txt", std::string((1 << 20) + 1, 'x'), "at most");
  refused("a.jinja", "{% if %}", "line 1");
  refused("a.json", "[]", "no JSON object");
  refused("a.json", R"({"sistem": "x"})", "there is no field \"sistem\"");
  refused("a.json", R"({"system": 5})", "must be a text");
  refused("a.json", R"({"chat_template": "{{"})", "chat template");
  refused("a.json", R"({"chat_template_kwargs": 5})", "must be an object");
  refused("minimal.txt", "x", "is built in");
  write("b.txt", "x");
  refused("b.json", "{}", "stands beside b.txt");
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Tokens of "Hi" with the default template and with the minimal one.
std::pair<size_t, size_t> tokens_of(const std::string& model) {
  const fs::path folder = fs::path(WHIPPET_SOURCE_DIR) / "../shared/data" / model;
  const auto tokenizer = Tokenizer::from_folder(folder);
  const auto chat_template = ChatTemplate::parse(read_text(folder / "chat_template.jinja"));
  if (!tokenizer.ok() || !chat_template.ok()) return {};
  const auto count = [&](const char* name) {
    return tokenizer->encode(*render_prompt(*PromptTemplates().find(name).value(), *chat_template, kUser))
        .size();
  };
  return {count("default"), count("minimal")};
}

TEST(PromptTemplate, MinimalSavesTheTwentyOneTokensOfQwensDefault) {
  const auto [all, minimal] = tokens_of("qwen2.5-0.5b-instruct");
  if (all == 0) GTEST_SKIP() << "no Qwen2.5 in ../shared/data";
  EXPECT_EQ(all - minimal, 21u);
}

TEST(PromptTemplate, MinimalSavesNothingWhereThereIsNoDefaultSystemMessage) {
  for (const char* model : {"internlm2", "qwen3"}) {
    const auto [all, minimal] = tokens_of(model);
    if (all == 0) GTEST_SKIP() << "no " << model << " in ../shared/data";
    EXPECT_EQ(all, minimal) << model;
  }
}

}  // namespace
}  // namespace whippet
