#include "text/chat_template.h"

#include <algorithm>
#include <utility>

#include "text/template_json.h"
#include "text/template_parser.h"
#include "text/template_renderer.h"
#include "text/template_text.h"
#include "text/template_token.h"

namespace whippet {
namespace {

constexpr size_t kLongestSource = 256 * 1024;  // bytes; the longest real ones have 30 KiB

Error in_template(const Error& error) { return {error.code, "chat template, " + error.message}; }

// Spellings that come with the checkpoint, not with a request.
bool is_token_spelling(std::string_view name) {
  return name == "bos_token" || name == "eos_token" || name == "pad_token" || name == "unk_token";
}

Status check_source(std::string_view source) {
  if (source.size() > kLongestSource) {
    return make_error(Code::kResourceExhausted, "the chat template has {} bytes, more than {}", source.size(),
                      kLongestSource);
  }
  int line = 1;
  for (size_t at = 0; at < source.size();) {
    const Utf8Character c = jinja::char_at(source, at);
    if (c.code == kInvalidCharacter) {
      return make_error(Code::kInvalidArgument, "chat template, line {}: the text is no UTF-8", line);
    }
    line += c.code == '\n' ? 1 : 0;
    at += c.size;
  }
  return {};
}

}  // namespace

struct ChatTemplate::Impl {
  jinja::Program program;
  TemplateLimits limits;

  Status bind(const TemplateVariables& variables, jinja::Runtime& runtime, jinja::Renderer& renderer) const {
    for (const char* name : {"tools", "documents"}) {
      const auto found = program.symbols.find(name);
      if (found != program.symbols.end()) renderer.set_variable(found->second, jinja::None{});
    }
    // What the template never names costs nothing.
    for (const auto& [name, json] : variables.items()) {
      const auto found = program.symbols.find(name);
      if (found == program.symbols.end()) continue;
      auto value = jinja::from_json(runtime, json, !(json.is_string() && is_token_spelling(name)));
      if (!value.ok()) {
        return make_error(value.error().code, "chat template, variable '{}': {}", name,
                          value.error().message);
      }
      renderer.set_variable(found->second, *value);
    }
    return {};
  }
};

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, TemplateLimits limits) {
  WH_TRY(check_source(source));
  auto tokens = jinja::tokenize(source);
  if (!tokens.ok()) return in_template(tokens.error());
  auto program = jinja::Parser(*std::move(tokens), limits).parse();
  if (!program.ok()) return in_template(program.error());
  return ChatTemplate(std::make_unique<const Impl>(Impl{*std::move(program), limits}));
}

ChatTemplate::ChatTemplate(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<MarkedText> ChatTemplate::render(const TemplateVariables& variables) const {
  return render(variables, std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()));
}

Result<MarkedText> ChatTemplate::render(const TemplateVariables& variables,
                                        std::chrono::sys_seconds now) const {
  if (!variables.is_object()) {
    return make_error(Code::kInvalidArgument, "the variables of a chat template must be an object, not {}",
                      variables.type_name());
  }
  jinja::Runtime runtime(impl_->limits, now);
  jinja::Renderer renderer(impl_->program, runtime);
  WH_TRY(impl_->bind(variables, runtime, renderer));
  const Status status = renderer.run();
  if (status.ok()) return renderer.take_output();
  return make_error(status.error().code, "chat template, line {}: {}", renderer.line(),
                    status.error().message);
}

}  // namespace whippet
