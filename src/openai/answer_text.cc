// How an exchange's answers are written: chunks of a stream and whole bodies. append_chunk is the token path:
// it appends to a string that is reused, and builds no tree.
#include "openai/exchange_impl.h"
#include "openai/json_text.h"

namespace whippet::openai {
namespace {

void append_ids(std::string& out, const std::vector<int32_t>& ids) {
  out += '[';
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    append_number(out, ids[i]);
  }
  out += ']';
}

}  // namespace

std::string Exchange::Impl::opening(std::string_view object) const {
  std::string out = "{\"id\":";
  append_json_string(out, id);
  out += ",\"object\":";
  append_json_string(out, object);
  out += ",\"created\":";
  append_number(out, created);
  out += ",\"model\":";
  append_json_string(out, fields.model);
  out += ',';
  if (!context.system_fingerprint.empty()) {
    out += "\"system_fingerprint\":";
    append_json_string(out, context.system_fingerprint);
    out += ',';
  }
  return out;
}

void Exchange::Impl::append_usage(std::string& out) const {
  const Usage sum = usage();
  out += ",\"usage\":{\"prompt_tokens\":";
  append_number(out, sum.prompt_tokens);
  out += ",\"completion_tokens\":";
  append_number(out, sum.completion_tokens);
  out += ",\"total_tokens\":";
  append_number(out, int64_t{sum.prompt_tokens} + sum.completion_tokens);
  out += ",\"prompt_tokens_details\":{\"cached_tokens\":";
  append_number(out, sum.cached_tokens);
  out += '}';
  if (format.may_think) {
    int64_t reasoning = 0;
    for (const Answer& answer : answers)
      if (answer.parser) reasoning += answer.parser->reasoning_tokens();
    out += ",\"completion_tokens_details\":{\"reasoning_tokens\":";
    append_number(out, reasoning);
    out += '}';
  }
  out += '}';
}

void Exchange::Impl::append_choice_end(size_t choice, std::string& out) const {
  const Answer& answer = answers[choice];
  out += ",\"logprobs\":";
  if (!has_logprobs) {
    out += "null";
  } else if (is_chat()) {
    out += "{\"content\":[";
    out += answer.chat_logprobs;
    out += "],\"refusal\":null}";
  } else {
    answer.logprobs.append(out);
  }
  if (answer.finish_reason.empty()) {
    out += ",\"finish_reason\":null";
  } else {
    out += ",\"finish_reason\":\"";
    out += answer.finish_reason;
    out += "\",\"stop_reason\":";
    out += answer.stop_reason;
  }
  if (fields.return_token_ids) {
    out += ",\"token_ids\":";
    append_ids(out, answer.ids);
  }
}

void Exchange::Impl::append_role_chunk(size_t choice, std::string& out) const {
  out += chunk_opening;
  out += "{\"index\":";
  append_number(out, static_cast<int64_t>(choice));
  out += ",\"delta\":{\"role\":\"assistant\",\"content\":";
  append_json_string(out, prompt_of(choice).echo);
  out += "},\"logprobs\":null,\"finish_reason\":null}]";
  if (fields.return_token_ids) {
    out += ",\"prompt_token_ids\":";
    append_ids(out, prompt_of(choice).ids);
  }
  if (fields.include_usage) fields.continuous_usage ? append_usage(out) : void(out += ",\"usage\":null");
  out += "}\n\n";
}

void Exchange::Impl::append_chunk_end(std::string& out) const {
  out += "}]";
  if (fields.continuous_usage) {
    append_usage(out);
  } else if (fields.include_usage) {
    out += ",\"usage\":null";
  }
  out += "}\n\n";
}

void Exchange::Impl::append_chunk(size_t choice, std::string& out) const {
  if (format.has_parts()) return append_parts_chunks(choice, out);
  const Answer& answer = answers[choice];
  out += chunk_opening;
  out += "{\"index\":";
  append_number(out, static_cast<int64_t>(choice));
  if (!is_chat()) {
    out += ",\"text\":\"";
    append_json_escaped(out, answer.text);
    out += '"';
  } else if (answer.text.empty()) {
    out += ",\"delta\":{}";
  } else {
    out += ",\"delta\":{\"content\":\"";
    append_json_escaped(out, answer.text);
    out += "\"}";
  }
  append_choice_end(choice, out);
  append_chunk_end(out);
}

void Exchange::Impl::append_ids_and_prompt(size_t choice, std::string& out) const {
  if (fields.params.prompt_logprobs) {
    out += ",\"prompt_logprobs\":";
    append_prompt_logprobs(out, names, prompt_of(choice).logprobs);
  }
  if (fields.return_token_ids) {
    out += ",\"prompt_token_ids\":";
    append_ids(out, prompt_of(choice).ids);
  }
}

void Exchange::Impl::append_whole(std::string& out) const {
  out += opening(is_chat() ? "chat.completion" : "text_completion");
  out += "\"choices\":[";
  for (size_t choice = 0; choice < answers.size(); ++choice) {
    out += choice > 0 ? ",{\"index\":" : "{\"index\":";
    append_number(out, static_cast<int64_t>(choice));
    out += is_chat() ? ",\"message\":" : ",\"text\":";
    if (is_chat()) {
      append_message(answers[choice], out);
    } else {
      append_json_string(out, answers[choice].text);
    }
    append_choice_end(choice, out);
    if (!is_chat()) append_ids_and_prompt(choice, out);
    out += '}';
  }
  out += ']';
  append_usage(out);
  if (is_chat()) append_ids_and_prompt(0, out);
  out += '}';
}

}  // namespace whippet::openai
