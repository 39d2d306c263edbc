// Chat templates: the Jinja subset that real checkpoints use, compiled once, rendered many times.
// A template is untrusted input: parsing and rendering are bounded in depth, steps and output.
// Immutable after construction; render is safe from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/marked_text.h"

namespace whippet {

struct TemplateLimits {
  int64_t max_steps = 1'000'000;         // evaluated nodes and loop iterations
  size_t max_output = 16 * 1024 * 1024;  // bytes, of the output and of any value on the way
  int max_depth = 100;                   // nesting of expressions, blocks and macro calls
};

// Ordered, since `tojson` must keep the order in which a client wrote its keys.
using TemplateVariables = nlohmann::ordered_json;

class ChatTemplate {
 public:
  // kUnsupported names the construct and the line; kInvalidArgument is a syntax error with its line.
  static Result<ChatTemplate> parse(std::string_view source, TemplateLimits limits = {});

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // variables: an object: "messages", "tools", "add_generation_prompt", "bos_token", and whatever else the
  // template asks for. Every string in it counts as written by a user and is marked in the result, except the
  // token spellings that the checkpoint gives: bos_token, eos_token, pad_token, unk_token.
  // Errors: raise_exception of the template, a limit, a type error, each with its line.
  Result<MarkedText> render(const TemplateVariables& variables) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace whippet
