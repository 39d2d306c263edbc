// /v1/models, /tokenize and /detokenize.
#include <algorithm>
#include <utility>

#include "openai/api.h"
#include "openai/chat_request.h"
#include "openai/field_table.h"
#include "openai/json_text.h"
#include "openai/logprob_text.h"
#include "openai/request_fields.h"
#include "whippet/whippet.h"

namespace whippet::openai {
namespace {

Json model_card(const Context& context, const std::string& name) {
  return {{"id", name},
          {"object", "model"},
          {"created", context.created},
          {"owned_by", "whippet"},
          {"root", context.served_names.front()},
          {"parent", nullptr},
          {"max_model_len", context.max_model_len}};
}

Refusal read_head(const Context& context, const Json& body, Route route) {
  std::vector<std::string> ignored;
  std::string model;
  if (Refusal refusal = check_fields(body, route, context.strict_fields, ignored)) return refusal;
  return read_model(context, body, model);
}

Outcome<std::vector<int32_t>> ids_of_body(const Context& context, Json& body) {
  const Json* prompt = field(body, "prompt");
  const bool chat = field(body, "messages") != nullptr;
  if ((prompt == nullptr) != chat)
    return missing("prompt",
                   chat ? "prompt and messages exclude each other" : "prompt or messages is missing");
  if (chat) {
    Outcome<RenderedChat> rendered = render_chat(context, body);
    if (auto* error = std::get_if<ApiError>(&rendered)) return std::move(*error);
    return std::get<0>(std::move(rendered)).ids;
  }
  if (!prompt->is_string()) return wrong_type("prompt", "a text", *prompt);
  return context.encode(prompt->get<std::string>(), true, flag(body, "add_special_tokens", true));
}

Outcome<std::string> tokenize_body(const Context& context, Json& body) {
  if (Refusal refusal = read_head(context, body, kTokenize)) return std::move(*refusal);
  const bool strings = flag(body, "return_token_strs", false);
  Outcome<std::vector<int32_t>> found = ids_of_body(context, body);
  if (auto* error = std::get_if<ApiError>(&found)) return std::move(*error);
  const std::vector<int32_t>& ids = std::get<0>(found);
  std::string out = "{\"count\":";
  append_number(out, static_cast<int64_t>(ids.size()));
  out += ",\"max_model_len\":";
  append_number(out, context.max_model_len);
  out += ",\"tokens\":[";
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    append_number(out, ids[i]);
  }
  out += strings ? "],\"token_strs\":[" : "],\"token_strs\":null";
  const TokenNames names{&context, false};
  for (size_t i = 0; strings && i < ids.size(); ++i) {
    if (i > 0) out += ',';
    names.append_name(out, ids[i], names.bytes(ids[i]));
  }
  return out + (strings ? "]}" : "}");
}

Outcome<std::string> detokenize_body(const Context& context, const Json& body) {
  if (Refusal refusal = read_head(context, body, kDetokenize)) return std::move(*refusal);
  const Json* tokens = field(body, "tokens");
  if (tokens == nullptr) return missing("tokens", "tokens: an array of token ids is missing");
  std::vector<int32_t> ids;
  if (Refusal refusal = read_token_ids(context, *tokens, "tokens", ids)) return std::move(*refusal);
  std::string out = "{\"prompt\":";
  append_json_string(out, context.decode(ids, false));
  return out + "}";
}

Outcome<std::string> answer(std::string_view body, Outcome<std::string> (*write)(const Context&, Json&),
                            const Context& context) {
  Outcome<Json> read = read_body(body);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  try {
    return write(context, std::get<0>(read));
  } catch (const Failure& failure) {
    return refused(make_error(Code::kInvalidArgument, "{}", failure.what()), "prompt");
  }
}

}  // namespace

std::string models_body(const Context& context) {
  Json cards = Json::array();
  for (const std::string& name : context.served_names) cards.push_back(model_card(context, name));
  return Json{{"object", "list"}, {"data", std::move(cards)}}.dump();
}

Outcome<std::string> model_body(const Context& context, std::string_view id) {
  std::string model;
  if (Refusal refusal = read_model(context, {{"model", id.empty() ? "?" : id}}, model))
    return std::move(*refusal);
  return model_card(context, model).dump();
}

Outcome<std::string> tokenize(const Context& context, std::string_view body) {
  return answer(body, tokenize_body, context);
}

Outcome<std::string> detokenize(const Context& context, std::string_view body) {
  return answer(
      body, [](const Context& c, Json& tree) { return detokenize_body(c, tree); }, context);
}

}  // namespace whippet::openai
