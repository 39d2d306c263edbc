#include "openai/tool_call_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "openai/body_reader.h"
#include "openai/field_table.h"

namespace whippet::openai {
namespace {

constexpr int32_t kDeepest = 64;
constexpr std::string_view kSpace = " \t\r\n";

bool is_space(char byte) { return kSpace.find(byte) != std::string_view::npos; }

// Bytes at the end of `text` that may become `mark`, all of it excluded.
size_t beginning_at_end(std::string_view text, std::string_view mark) {
  size_t size = std::min(text.size(), mark.empty() ? 0 : mark.size() - 1);
  while (size > 0 && text.substr(text.size() - size) != mark.substr(0, size)) --size;
  return size;
}

std::optional<ToolCall> read_call(const Json& object, const ToolOffer& offer, bool bare) {
  if (!object.is_object()) return std::nullopt;
  const Json* name = field(object, "name");
  if (name == nullptr || !name->is_string()) return std::nullopt;
  ToolCall call{.name = name->get<std::string>(), .arguments = "{}"};
  if (std::find(offer.names.begin(), offer.names.end(), call.name) == offer.names.end()) return std::nullopt;
  const Json* arguments = field(object, offer.format->arguments);
  for (const char* key : {"arguments", "parameters"})
    if (arguments == nullptr) arguments = field(object, key);
  if (arguments == nullptr) return bare ? std::nullopt : std::optional(std::move(call));
  if (arguments->is_string()) {  // JSON in a text, as it travels in OpenAI's API
    const Outcome<Json> inner = read_body(arguments->get_ref<const std::string&>());
    if (inner.index() != 0) return std::nullopt;
    call.arguments = std::get<0>(inner).dump();
    return call;
  }
  if (!arguments->is_object()) return std::nullopt;
  call.arguments = arguments->dump();
  return call;
}

// An object is a call, an array of objects several. Empty: it is none.
std::vector<ToolCall> read_calls(std::string_view json, const ToolOffer& offer, bool bare) {
  const Outcome<Json> read = read_body("{\"calls\":" + std::string(json) + "}");
  if (read.index() != 0) return {};
  const Json& value = std::get<0>(read)["calls"];
  std::vector<ToolCall> calls;
  for (const Json& object : value.is_array() ? value : Json::array({value})) {
    std::optional<ToolCall> call = read_call(object, offer, bare);
    if (!call) return {};
    calls.push_back(std::move(*call));
  }
  return calls;
}

}  // namespace

ToolCallParser::ToolCallParser(const ToolOffer& offer) : offer_(&offer) {}

void ToolCallParser::push(std::string_view text, std::string& content, std::vector<ToolCall>& calls) {
  held_ += text;
  for (bool goes_on = true; goes_on && !held_.empty();) {
    switch (state_) {
      case State::kText:
        goes_on = step_text(content);
        break;
      case State::kCall:
        goes_on = step_call(content, calls);
        break;
      case State::kAfterCall:
        goes_on = step_after_call();
        break;
    }
  }
}

void ToolCallParser::finish(std::string& content) {
  if (state_ == State::kAfterCall) held_.clear();  // half of what closes a call
  say(raw_ + held_, content);
  raw_.clear();
  held_.clear();
  state_ = State::kText;
  if (!after_call_) content += space_;
  space_.clear();
}

// Each step takes something from held_ and says whether the next can.
bool ToolCallParser::step_text(std::string& content) {
  if (at_start_ && offer_->format->bare) {
    const size_t first = held_.find_first_not_of(kSpace);
    if (first == std::string::npos) return false;
    at_start_ = false;
    if (held_[first] == '{') {
      open_call(first, 0, content);
      bare_ = true;
      return true;
    }
  }
  const std::string_view open = offer_->format->open;
  const size_t found = held_.find(open);
  if (found != std::string::npos) {
    open_call(found, open.size(), content);
    return true;
  }
  const size_t certain = held_.size() - beginning_at_end(held_, open);
  say(std::string_view(held_).substr(0, certain), content);
  held_.erase(0, certain);
  return false;
}

// The call begins at held_[begin], with a mark of `size` bytes.
void ToolCallParser::open_call(size_t begin, size_t size, std::string& content) {
  say(std::string_view(held_).substr(0, begin), content);
  raw_ = held_.substr(begin, size);
  held_.erase(0, begin + size);
  object_ = raw_.size();
  depth_ = 0;
  bare_ = in_string_ = escaped_ = checked_ = false;
  at_start_ = false;
  state_ = State::kCall;
}

ToolCallParser::Scan ToolCallParser::scan(char byte) {
  if (in_string_) {
    if (static_cast<unsigned char>(byte) < 0x20) return Scan::kBroken;
    if (escaped_) {
      escaped_ = false;
    } else if (byte == '\\') {
      escaped_ = true;
    } else if (byte == '"') {
      in_string_ = false;
    }
    return Scan::kMore;
  }
  if (is_space(byte)) return Scan::kMore;
  const bool opens = byte == '{' || (byte == '[' && !bare_);
  if (depth_ == 0 && !opens) return Scan::kBroken;
  if (byte == '{' || byte == '[') return ++depth_ > kDeepest ? Scan::kBroken : Scan::kMore;
  if (byte == '}' || byte == ']') return --depth_ == 0 ? Scan::kWhole : Scan::kMore;
  if (byte == '"') {
    in_string_ = true;
    return Scan::kMore;
  }
  // Numbers, true, false, null, and what stands between.
  constexpr std::string_view kOthers = ",:+-.0123456789Eaeflnrstu";
  return kOthers.find(byte) == std::string_view::npos ? Scan::kBroken : Scan::kMore;
}

// An answer that is JSON of another kind need not be held back until its end: its first key tells.
bool ToolCallParser::may_be_bare() const {
  const size_t begin = raw_.find('"');
  const std::string key = raw_.substr(begin + 1, raw_.size() - begin - 2);
  for (const std::string_view known : {"name", "type", "function", "arguments", "parameters"})
    if (key == known) return true;
  return false;
}

bool ToolCallParser::step_call(std::string& content, std::vector<ToolCall>& calls) {
  for (size_t i = 0; i < held_.size(); ++i) {
    const Scan state = scan(held_[i]);
    const bool taken = state != Scan::kBroken;  // what broke the JSON may begin the next call
    if (taken) raw_ += held_[i];
    const bool first_key = bare_ && !checked_ && held_[i] == '"' && !in_string_;
    checked_ |= first_key;
    if (state == Scan::kMore && !(first_key && !may_be_bare())) continue;
    held_.erase(0, i + (taken ? 1 : 0));
    std::vector<ToolCall> found;
    if (state == Scan::kWhole) found = read_calls(std::string_view(raw_).substr(object_), *offer_, bare_);
    if (found.empty()) {
      say(raw_, content);
      state_ = State::kText;
    } else {
      take_call(std::move(found), calls);
    }
    raw_.clear();
    return true;
  }
  held_.clear();
  return false;
}

void ToolCallParser::take_call(std::vector<ToolCall> found, std::vector<ToolCall>& calls) {
  for (ToolCall& call : found)
    if (offer_->several || calls_ == 0) {
      calls.push_back(std::move(call));
      ++calls_;
    }
  space_.clear();
  after_call_ = true;
  state_ = State::kAfterCall;
}

bool ToolCallParser::step_after_call() {
  held_.erase(0, std::min(held_.find_first_not_of(kSpace), held_.size()));
  const std::string_view close = offer_->format->close;
  if (held_.size() < close.size() && close.starts_with(held_)) return false;
  if (held_.starts_with(close)) held_.erase(0, close.size());
  at_start_ = true;
  state_ = State::kText;
  return true;
}

void ToolCallParser::say(std::string_view text, std::string& content) {
  const size_t last = text.find_last_not_of(kSpace);
  if (last == std::string_view::npos) {
    space_ += text;
    return;
  }
  space_ += text.substr(0, last + 1);
  if (after_call_ && said_something_) content += '\n';
  content.append(space_, after_call_ ? space_.find_first_not_of(kSpace) : 0);
  space_ = text.substr(last + 1);
  said_something_ = true;
  after_call_ = false;
}

}  // namespace whippet::openai
