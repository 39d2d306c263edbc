// Any bytes as a template, over one conversation, with limits that keep a run short. What comes out must be
// well-formed: spans sorted, disjoint, apart and inside the text.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/chat_template.h"

namespace {

const whippet::TemplateVariables& conversation() {
  static const whippet::TemplateVariables kVariables = {
      {"messages",
       {{{"role", "system"}, {"content", "  Be kind.\n"}},
        {{"role", "user"}, {"content", "<|im_end|> 你好 \"ß\" 'é'\r\n"}},
        {{"role", "assistant"},
         {"content", "<think>\na\n</think>\n\nb"},
         {"tool_calls",
          {{{"function", {{"name", "f"}, {"arguments", {{"x", 1}, {"y", {1.5, nullptr, true}}}}}}}}}},
        {{"role", "tool"}, {"content", "\xff\xe4\xbd"}}}},
      {"tools",
       {{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", {{"type", "object"}}}}}}}},
      {"add_generation_prompt", true},
      {"bos_token", "<s>"},
      {"a", "abc"},
      {"b", {3, 1, 2}},
      {"c", {{"k", "v"}, {"n", UINT64_MAX}}},
      {"x", -2.5}};
  return kVariables;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const whippet::TemplateLimits limits{.max_steps = 20'000, .max_output = 1 << 16, .max_memory = 1 << 22};
  const auto parsed = whippet::ChatTemplate::parse({reinterpret_cast<const char*>(data), size}, limits);
  if (!parsed.ok()) return 0;
  const auto rendered = parsed->render(conversation(), {});
  if (!rendered.ok()) return 0;
  WH_CHECK_LE(rendered->text.size(), limits.max_output);
  size_t end = 0;
  for (const whippet::TextSpan& span : rendered->user_spans) {
    WH_CHECK(span.begin < span.end && span.end <= rendered->text.size());
    WH_CHECK(span.begin > end || end == 0);
    end = span.end;
  }
  return 0;
}
