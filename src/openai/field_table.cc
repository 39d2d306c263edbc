#include "openai/field_table.h"

#include <algorithm>
#include <array>

#include "base/fields.h"

namespace whippet::openai {
namespace {

constexpr size_t kMostIgnored = 32;
constexpr size_t kLongestName = 64;

// What a value must be; kAny is checked by its reader.
enum class Kind : uint8_t { kAny, kText, kSwitch, kNumber, kWhole, kObject, kList };

constexpr uint8_t kBoth = kChat | kCompletion;

struct Field {
  std::string_view name;
  uint8_t routes;
  Kind kind;
  // Why a value other than null, false, 0, "", [] and {} is refused; nullptr: the field is understood.
  const char* refusal = nullptr;
};

constexpr const char* kUseStructured =
    "not a field of its own here: send it in \"response_format\" or \"structured_outputs\"";
constexpr const char* kNoSound = "this server takes and gives text only";
constexpr const char* kUseTools = "deprecated and not supported: send \"tools\" and \"tool_choice\"";
constexpr const char* kNoBeams = "beam search is not supported: draw several answers with \"n\"";

constexpr Field kFields[] = {
    // Read.
    {"model", 15, Kind::kText},
    {"messages", kChat | kTokenize, Kind::kList},
    {"prompt", kCompletion | kTokenize, Kind::kAny},
    {"tokens", kDetokenize, Kind::kList},
    {"stream", kBoth, Kind::kSwitch},
    {"stream_options", kBoth, Kind::kObject},
    {"echo", kBoth, Kind::kSwitch},
    {"best_of", kBoth, Kind::kWhole},
    {"max_completion_tokens", kChat, Kind::kAny},
    {"logprobs", kBoth, Kind::kAny},
    {"top_logprobs", kChat, Kind::kAny},
    {"tools", kChat | kTokenize, Kind::kList},
    {"tool_choice", kChat, Kind::kAny},
    {"parallel_tool_calls", kChat, Kind::kSwitch},
    {"include_reasoning", kChat, Kind::kSwitch},
    {"response_format", kChat | kCompletion, Kind::kObject},
    {"structured_outputs", kBoth, Kind::kObject},
    {"guided_json", kBoth, Kind::kAny},
    {"guided_regex", kBoth, Kind::kText},
    {"guided_choice", kBoth, Kind::kList},
    {"guided_grammar", kBoth, Kind::kText},
    {"modalities", kChat, Kind::kList},
    {"continue_final_message", kChat | kTokenize, Kind::kSwitch},
    {"add_generation_prompt", kChat | kTokenize, Kind::kSwitch},
    {"add_special_tokens", kBoth | kTokenize, Kind::kSwitch},
    {"chat_template_kwargs", kChat | kTokenize, Kind::kObject},
    {"documents", kChat, Kind::kList},
    {"reasoning_effort", kChat, Kind::kText},
    {"prompt_template", kChat | kTokenize, Kind::kText},
    {"truncate_prompt_tokens", kBoth, Kind::kWhole},
    {"return_tokens_as_token_ids", kBoth, Kind::kSwitch},
    {"return_token_ids", kBoth, Kind::kSwitch},
    {"return_token_strs", kTokenize, Kind::kSwitch},
    {"priority", kBoth, Kind::kWhole},
    {"cache_salt", kBoth, Kind::kText},
    {"timeout", kBoth, Kind::kNumber},
    // Sampling: SamplingParams' own names.
    {"max_tokens", kBoth, Kind::kAny},
    {"temperature", kBoth, Kind::kAny},
    {"top_p", kBoth, Kind::kAny},
    {"top_k", kBoth, Kind::kAny},
    {"min_p", kBoth, Kind::kAny},
    {"repetition_penalty", kBoth, Kind::kAny},
    {"presence_penalty", kBoth, Kind::kAny},
    {"frequency_penalty", kBoth, Kind::kAny},
    {"seed", kBoth, Kind::kAny},
    {"n", kBoth, Kind::kAny},
    {"min_tokens", kBoth, Kind::kAny},
    {"stop", kBoth, Kind::kAny},
    {"stop_token_ids", kBoth, Kind::kAny},
    {"include_stop_str_in_output", kBoth, Kind::kAny},
    {"ignore_eos", kBoth, Kind::kAny},
    {"skip_special_tokens", kBoth, Kind::kAny},
    {"prompt_logprobs", kBoth, Kind::kAny},
    {"logit_bias", kBoth, Kind::kAny},
    {"allowed_token_ids", kBoth, Kind::kAny},
    {"banned_token_ids", kBoth, Kind::kAny},
    // Accepted: they ask for nothing that a server of one's own could do or leave undone.
    {"user", kBoth, Kind::kText},
    {"store", kBoth, Kind::kSwitch},
    {"metadata", kBoth, Kind::kObject},
    {"service_tier", kBoth, Kind::kText},
    {"prompt_cache_key", kBoth, Kind::kText},
    {"prompt_cache_retention", kBoth, Kind::kText},
    {"safety_identifier", kBoth, Kind::kText},
    {"prediction", kChat, Kind::kObject},
    {"spaces_between_special_tokens", kBoth, Kind::kSwitch},
    // Refused.
    {"suffix", kCompletion, Kind::kText, "text cannot be filled in before a suffix"},
    {"audio", kChat, Kind::kAny, kNoSound},
    {"functions", kChat, Kind::kAny, kUseTools},
    {"function_call", kChat, Kind::kAny, kUseTools},
    {"web_search_options", kChat, Kind::kAny, "this server searches nothing"},
    {"chat_template", kBoth | kTokenize, Kind::kAny,
     "a template of the request's own is not taken: name one of the server's with \"prompt_template\""},
    {"prompt_embeds", kCompletion, Kind::kAny, "a prompt is text or token ids"},
    {"mm_processor_kwargs", kBoth, Kind::kAny, kNoSound},
    {"logits_processors", kBoth, Kind::kAny, "there are no custom logits processors"},
    {"bad_words", kBoth, Kind::kAny, "words cannot be banned: ban tokens with \"banned_token_ids\""},
    {"use_beam_search", kBoth, Kind::kAny, kNoBeams},
    {"structural_tag", kBoth, Kind::kAny, kUseStructured},
    {"json_schema", kBoth, Kind::kAny, kUseStructured},
    {"grammar", kBoth, Kind::kAny, kUseStructured},
};

// null, false, 0, "", [] and {} ask for nothing.
bool is_neutral(const Json& value) {
  if (value.is_number()) return value == 0;
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  return value == false || (value.is_structured() && value.empty());
}

const char* expectation(Kind kind, const Json& value) {
  switch (kind) {
    case Kind::kAny:
      return nullptr;
    case Kind::kText:
      return value.is_string() ? nullptr : "a text";
    case Kind::kSwitch:
      return value.is_boolean() ? nullptr : "true or false";
    case Kind::kNumber:
      return value.is_number() ? nullptr : "a number";
    case Kind::kWhole:
      return value.is_number_integer() ? nullptr : "a whole number";
    case Kind::kObject:
      return value.is_object() ? nullptr : "an object";
    case Kind::kList:
      return value.is_array() ? nullptr : "an array";
  }
  return nullptr;
}

std::vector<std::string> names_on(Route route) {
  std::vector<std::string> names;
  for (const Field& known : kFields)
    if (known.routes & route) names.emplace_back(known.name);
  return names;
}

Refusal check_field(const std::string& name, const Json& value, const Field& known) {
  if (known.refusal != nullptr && !is_neutral(value))
    return unsupported(name, fmt::format("{}: {}", name, known.refusal));
  if (const char* expected = expectation(known.kind, value)) return wrong_type(name, expected, value);
  return std::nullopt;
}

}  // namespace

std::string printable(std::string_view name) {
  std::string result(name.substr(0, kLongestName));
  for (char& byte : result)
    if (byte <= ' ' || byte > '~' || byte == ',' || byte == '"') byte = '?';
  return result;
}

void add_ignored(std::vector<std::string>& ignored, std::string_view name) {
  std::string shown_name = printable(name);
  if (ignored.size() < kMostIgnored && std::find(ignored.begin(), ignored.end(), shown_name) == ignored.end())
    ignored.push_back(std::move(shown_name));
}

Refusal check_fields(const Json& body, Route route, bool strict, std::vector<std::string>& ignored) {
  for (const auto& field : body.items()) {
    const std::string& name = field.key();
    const Json& value = field.value();
    const auto* known = std::find_if(std::begin(kFields), std::end(kFields), [&](const Field& f) {
      return f.name == name && (f.routes & route) != 0;
    });
    if (known != std::end(kFields)) {
      if (value.is_null()) continue;
      if (Refusal refusal = check_field(name, value, *known)) return refusal;
    } else if (strict) {
      ApiError error = wrong_value(
          printable(name),
          fmt::format("there is no field '{}' here{}", printable(name), did_you_mean(name, names_on(route))));
      error.code = "unknown_parameter";
      return error;
    } else {
      add_ignored(ignored, name);
    }
  }
  return std::nullopt;
}

const Json* field(const Json& object, std::string_view name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

bool flag(const Json& body, std::string_view name, bool otherwise) {
  const Json* value = field(body, name);
  return value == nullptr ? otherwise : value->get<bool>();
}

std::string text(const Json& body, std::string_view name) {
  const Json* value = field(body, name);
  return value == nullptr ? "" : value->get<std::string>();
}

}  // namespace whippet::openai
