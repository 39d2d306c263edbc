// Chat templates: the Jinja subset that real checkpoints use, compiled once, rendered many times.
// A template is untrusted input: parsing and rendering are bounded in depth, steps, output and memory.
// Immutable after construction; render is safe from any thread.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/marked_text.h"
#include "text/template_limits.h"

namespace whippet {

// Ordered, since `tojson` must keep the order in which a client wrote its keys.
using TemplateVariables = nlohmann::ordered_json;

class ChatTemplate {
 public:
  // Every error names the line. kUnsupported: a construct, filter or test that is not implemented;
  // kInvalidArgument: a syntax error, or text that is no UTF-8; kResourceExhausted: too deep or too long.
  static Result<ChatTemplate> parse(std::string_view source, TemplateLimits limits = {});

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // variables: an object: "messages", "tools", "add_generation_prompt", "bos_token", and whatever else the
  // template asks for; "tools" and "documents" are none where they are absent, as Hugging Face has it.
  // Every string in it, keys of objects too, counts as written by a user and is marked in the result, except
  // the token spellings that the checkpoint gives: bos_token, eos_token, pad_token, unk_token.
  // now: what strftime_now() of the template shows; local time is the caller's business.
  // Every error names the line: kInvalidArgument for what the template refuses (raise_exception) or cannot do
  // with these values, kUnsupported, kResourceExhausted for a limit.
  Result<MarkedText> render(const TemplateVariables& variables, std::chrono::sys_seconds now) const;
  Result<MarkedText> render(const TemplateVariables& variables) const;  // now: the system's clock, UTC

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace whippet
