#include "cli/answer_json.h"

#include <fmt/format.h>

#include <string>

namespace whippet {
namespace {

using nlohmann::ordered_json;

// The shortest decimal that is this float.
double shortest(float value) { return std::stod(fmt::format("{}", value)); }

ordered_json logprobs_to_json(const std::vector<TokenLogprob>& logprobs) {
  ordered_json list = ordered_json::array();
  for (const TokenLogprob& token : logprobs) {
    ordered_json entry = {
        {"token_id", token.token_id}, {"logprob", shortest(token.logprob)}, {"rank", token.rank}};
    for (const auto& [id, logprob] : token.top)
      entry["top"].push_back({{"token_id", id}, {"logprob", shortest(logprob)}});
    list.push_back(std::move(entry));
  }
  return list;
}

ordered_json completion_to_json(const Completion& answer) {
  ordered_json object = {
      {"text", answer.text}, {"token_ids", answer.token_ids}, {"finish_reason", answer.finish_reason}};
  if (!answer.stop_reason.empty()) object["stop_reason"] = answer.stop_reason;
  if (!answer.logprobs.empty()) object["logprobs"] = logprobs_to_json(answer.logprobs);
  return object;
}

}  // namespace

ordered_json answer_to_json(const RequestOutput& output) {
  if (!output.error.empty()) return {{"error", output.error}};
  ordered_json object = ordered_json::object();
  if (output.outputs.size() == 1) {
    object = completion_to_json(output.outputs.front());
  } else {
    object["answers"] = ordered_json::array();
    for (const Completion& answer : output.outputs) object["answers"].push_back(completion_to_json(answer));
  }
  if (!output.prompt_logprobs.empty()) object["prompt_logprobs"] = logprobs_to_json(output.prompt_logprobs);
  object["usage"] = {{"prompt_tokens", output.usage.prompt_tokens},
                     {"completion_tokens", output.usage.completion_tokens},
                     {"total_tokens", output.usage.prompt_tokens + output.usage.completion_tokens},
                     {"cached_tokens", output.usage.cached_tokens}};
  return object;
}

}  // namespace whippet
