#include "openai/fake_context.h"

#include <utility>

#include "api/json_file.h"
#include "text/prompt_template.h"
#include "text/utf8.h"
#include "whippet/whippet.h"

namespace whippet::openai {
namespace {

constexpr const char* kTemplate =
    "{% if messages[0].role != 'system' and not tools %}<|im_start|>system\nBe nice.<|im_end|>\n{% endif %}"
    "{% if tools %}<|im_start|>tools\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}<|im_end|>\n{% endif "
    "%}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.arguments | tojson }}</call>{% endfor %}"
    "{% if m.mood %}({{ m.mood }}){% endif %}<|im_end|>\n{% endfor %}"
    "{% if thinking %}<think>{{ thinking }}{% endif %}"
    "{% if forbidden %}{{ raise_exception('that is forbidden') }}{% endif %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

// Control tokens and their ids.
using Special = std::vector<std::pair<std::string, int32_t>>;

std::vector<int32_t> encode(const Special& tokens, std::string_view text, bool parse_special) {
  std::vector<int32_t> ids;
  while (!text.empty()) {
    size_t length = 1;
    int32_t id = static_cast<unsigned char>(text.front());
    for (const auto& [spelling, special] : tokens) {
      if (!parse_special || !text.starts_with(spelling)) continue;
      length = spelling.size();
      id = special;
    }
    ids.push_back(id);
    text.remove_prefix(length);
  }
  return ids;
}

std::string token_bytes(const Special& tokens, int32_t id) {
  if (id >= 0 && id < 256) return std::string(1, static_cast<char>(id));
  for (const auto& [spelling, special] : tokens)
    if (special == id) return spelling;
  return "";
}

std::string decode(const Special& tokens, const std::vector<int32_t>& ids, bool skip_special) {
  std::string bytes, text;
  for (const int32_t id : ids)
    if (id < 256 || !skip_special) bytes += token_bytes(tokens, id);
  append_repaired_utf8(text, bytes);
  return text;
}

template <class T>
T value_or_throw(Result<T> result) {
  if (!result.ok()) throw Failure(code_name(result.error().code), result.error().message);
  return std::move(result).value();
}

std::pair<std::string, std::vector<int32_t>> render(const Special& tokens, const ChatTemplate& chat,
                                                    const Request& request) {
  auto variables = value_or_throw(parse_json<TemplateVariables>(request.template_variables_json));
  variables["messages"] = value_or_throw(parse_json<TemplateVariables>(request.messages_json));
  const PromptTemplates templates;
  const PromptTemplate* prompt = value_or_throw(templates.find(request.prompt_template));
  MarkedText text = value_or_throw(render_prompt(*prompt, chat, variables));
  auto ids = encode(tokens, text.text, true);
  return {std::move(text.text), std::move(ids)};
}

}  // namespace

Context fake_context(const char* chat_template, const std::vector<std::string>& more_special) {
  Special tokens = {{"<|im_start|>", kFakeStart}, {"<|im_end|>", kFakeEnd}};
  for (const std::string& spelling : more_special)
    tokens.emplace_back(spelling, 256 + static_cast<int32_t>(tokens.size()));
  Context context;
  context.served_names = {"tiny", "other"};
  context.created = 1700000000;
  context.max_model_len = 512;
  context.vocab_size = 256 + static_cast<int32_t>(tokens.size());
  context.encode = [tokens](const std::string& text, bool parse_special, bool) {
    return encode(tokens, text, parse_special);
  };
  context.decode = [tokens](const std::vector<int32_t>& ids, bool skip_special) {
    return decode(tokens, ids, skip_special);
  };
  context.token_bytes = [tokens](int32_t id) { return token_bytes(tokens, id); };
  // Shared by the copies of the function.
  auto chat = std::make_shared<const ChatTemplate>(
      *ChatTemplate::parse(chat_template == nullptr ? kTemplate : chat_template));
  context.render = [tokens, chat](const Request& request) { return render(tokens, *chat, request); };
  return context;
}

}  // namespace whippet::openai
