// The fields of SamplingParams by name, and reading them from JSON. One line a field: the flags of the
// command line, the keys of JSON lines and generation_config.json all go through here. Ranges are the
// engine's to check: check_sampling_fields asks it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "whippet/sampling_params.h"

namespace whippet {

// visit(name, member, help) for every field, in the order of --help.
template <class Self, class Visitor>
void sampling_fields(Self& p, Visitor&& visit) {
  visit("max_tokens", p.max_tokens,
        "most tokens of an answer; default: 16, for a chat the rest of the context");
  visit("temperature", p.temperature, "0 takes the likeliest token, 1 draws as the model says");
  visit("top_p", p.top_p, "draw among the likeliest tokens that make up this share, above 0 to 1");
  visit("top_k", p.top_k, "draw among this many of the likeliest tokens; 0: all");
  visit("min_p", p.min_p, "drop tokens below this share of the likeliest one's probability");
  visit("repetition_penalty", p.repetition_penalty, "above 1: tokens seen before are less likely");
  visit("presence_penalty", p.presence_penalty, "-2 to 2, once for a token that the answer has");
  visit("frequency_penalty", p.frequency_penalty, "-2 to 2, for every time that the answer has a token");
  visit("seed", p.seed, "the same seed draws the same answer");
  visit("n", p.n, "answers of one prompt");
  visit("min_tokens", p.min_tokens, "no end before so many tokens");
  visit("stop", p.stop, "a text that ends the answer; may be given again");
  visit("stop_token_ids", p.stop_token_ids, "a token that ends the answer; may be given again");
  visit("include_stop_str_in_output", p.include_stop_str_in_output, "keep the stop text in the answer");
  visit("ignore_eos", p.ignore_eos, "go on after the model's own end token");
  visit("skip_special_tokens", p.skip_special_tokens, "leave control tokens out of the text");
  visit("logprobs", p.logprobs, "log-probabilities of each token and of so many of the likeliest, 0 to 20");
  visit("prompt_logprobs", p.prompt_logprobs, "the same for the prompt");
  visit("logit_bias", p.logit_bias, "added to the logits of tokens: {\"id\": bias}");
  visit("allowed_token_ids", p.allowed_token_ids, "draw nothing but these");
  visit("banned_token_ids", p.banned_token_ids, "never draw these");
}

std::vector<std::string> sampling_field_names();

// Sets one field; null leaves it as it is. Errors name the field, what was expected and what was found.
Status set_sampling_field(SamplingParams& params, std::string_view name, const nlohmann::json& value);
bool is_sampling_field(std::string_view name);
// Whether the engine takes these values. kInvalidArgument begins with the field's name.
Status check_sampling_fields(const SamplingParams& params, int32_t vocab_size);

// Every field, unset ones as null.
nlohmann::ordered_json sampling_to_json(const SamplingParams& params);

}  // namespace whippet
