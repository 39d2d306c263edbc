// What the bodies of both routes say beside their prompts. Internal to openai.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "openai/body_reader.h"
#include "openai/field_table.h"
#include "openai/refusal.h"
#include "whippet/sampling_params.h"

namespace whippet::openai {

struct RequestFields {
  std::string model;  // as asked for, or the first served one
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;  // usage in every chunk
  bool echo = false;
  bool tokens_as_ids = false;  // return_tokens_as_token_ids: logprobs say "token_id:5"
  bool return_token_ids = false;
  std::optional<int32_t> truncate;  // keep that many tokens of a prompt's end; -1: as many as fit
  int32_t priority = 0;
  double timeout_s = 0;
  std::string cache_salt;
  SamplingParams params;
  std::string structured_param;  // the field that asks for params.structured_outputs
  std::vector<std::string> ignored;
};

// Fields first: their types, and which are known. A model that is not served is a 404.
Refusal read_request_fields(const Context& context, const Json& body, Route route, RequestFields& fields);
Refusal read_model(const Context& context, const Json& body, std::string& model);

// What each route spells in its own way: max_tokens and max_completion_tokens, logprobs and top_logprobs of a
// chat.
Refusal read_chat_lengths(const Json& body, SamplingParams& params);
Refusal read_chat_logprobs(const Json& body, SamplingParams& params);
// max_tokens of a completion, which may be 0 where only the prompt is asked about (prompt_only); its logprobs
// are a number.
Refusal read_completion_lengths(const Json& body, SamplingParams& params, bool& prompt_only);

// A list of ids of the vocabulary; `where` names it.
Refusal read_token_ids(const Context& context, const Json& list, const std::string& where,
                       std::vector<int32_t>& ids);

// Once params are complete: the engine's ranges.
Refusal check_ranges(const Context& context, const RequestFields& fields, Route route);

// Against the context; sets max_tokens where the request has none: to what is left of the context, at most
// `otherwise`. Tokens of the prompt are dropped where the request wants so.
Refusal fit_prompt(const Context& context, const RequestFields& fields, std::optional<int32_t> otherwise,
                   std::string_view param, std::vector<int32_t>& prompt, SamplingParams& params);

}  // namespace whippet::openai
