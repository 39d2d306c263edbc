// What the codec takes from an engine.
#include "openai/api.h"
#include "whippet/whippet.h"

namespace whippet::openai {

Context make_context(const Engine& engine) {
  Context context;
  context.max_model_len = engine.max_model_len();
  context.vocab_size = engine.vocab_size();
  context.default_sampling = engine.default_sampling_params();
  context.default_max_tokens = engine.default_chat_tokens();
  context.encode = [&engine](const std::string& text, bool parse_special, bool add_special) {
    return engine.encode(text, parse_special, add_special);
  };
  context.decode = [&engine](const std::vector<int32_t>& ids, bool skip_special) {
    return engine.decode(ids, skip_special);
  };
  context.render = [&engine](const Request& chat) { return engine.render(chat); };
  const auto is_token = [&engine](const char* text) {
    try {
      return engine.encode(text, true, false).size() == 1;
    } catch (const Failure&) {  // a model without a tokenizer
      return false;
    }
  };
  context.knows_thinking = is_token("<think>") && is_token("</think>");
  context.prepare_grammar = [&engine](const StructuredOutputs& asked) { engine.prepare(asked); };
  context.token_bytes = [&engine](int32_t id) { return engine.token_bytes(id); };
  return context;
}

}  // namespace whippet::openai
