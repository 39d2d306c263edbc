#include <algorithm>

#include "text/template_string_literal.h"
#include "text/template_text.h"
#include "text/template_token.h"

namespace whippet::jinja {
namespace {

constexpr size_t kNone = std::string_view::npos;

// Every line end as \n, and without the one at the very end.
std::string with_plain_line_ends(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    const bool carriage_return = source[i] == '\r';
    if (carriage_return && i + 1 < source.size() && source[i + 1] == '\n') ++i;
    text += carriage_return ? '\n' : source[i];
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(with_plain_line_ends(source)), text_(source_) {}

  Result<std::vector<Token>> run() {
    while (at_ < text_.size()) WH_TRY(scan_text());
    add(TokenType::kEnd, "");
    return std::move(tokens_);
  }

 private:
  template <class... Args>
  Error error(fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(Code::kInvalidArgument, "line {}: {}", line_,
                      fmt::format(format, std::forward<Args>(args)...));
  }

  bool here(std::string_view what, size_t offset = 0) const {
    return at_ + offset <= text_.size() && text_.substr(at_ + offset).starts_with(what);
  }
  size_t skip_spaces(size_t at) const {
    while (at < text_.size()) {
      const Utf8Character c = char_at(text_, at);
      if (!is_space(c.code)) break;
      at += c.size;
    }
    return at;
  }
  void add(TokenType type, std::string text) { tokens_.push_back({type, std::move(text), line_}); }
  // Goes on to a place, counting lines.
  void move_to(size_t at) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                                         text_.begin() + static_cast<ptrdiff_t>(at), '\n'));
    at_ = at;
  }
  // After the end of a tag whose bracket ends at `at`: what goes with it, by its sign and its kind.
  void finish_tag(size_t at, char sign, bool trims_line_end) {
    if (sign == '-') {
      at = skip_spaces(at);
    } else if (sign != '+' && trims_line_end && at < text_.size() && text_[at] == '\n') {
      ++at;
    }
    line_starts_ = at > 0 && text_[at - 1] == '\n';
    move_to(at);
  }

  // Adds the text up to a tag, without what its sign takes away; strips_line: lstrip_blocks applies.
  void add_text(size_t end, char sign, bool strips_line) {
    std::string_view text = text_.substr(at_, end - at_);
    if (sign == '-') {
      text = text.substr(0, strip_range(text, nullptr, false, true).second);
    } else if (sign != '+' && strips_line) {
      const size_t last_line = text.rfind('\n') + 1;  // 0 when there is no line end
      const bool blank =
          strip_range(text.substr(last_line), nullptr, true, false).first == text.size() - last_line;
      if (blank && (last_line > 0 || line_starts_)) text = text.substr(0, last_line);
    }
    if (!text.empty()) add(TokenType::kText, std::string(text));
    move_to(end);
  }

  char sign_at(size_t at) const {
    return at < text_.size() && (text_[at] == '-' || text_[at] == '+') ? text_[at] : 0;
  }

  // If the tag {% that begins at `at` is {% name %}: the end of its bracket, and the sign before that.
  size_t end_of_plain_tag(size_t at, std::string_view name, char& sign) const {
    at += 2;
    if (sign_at(at) != 0) ++at;
    at = skip_spaces(at);
    if (!text_.substr(at).starts_with(name)) return kNone;
    at = skip_spaces(at + name.size());
    sign = sign_at(at);
    if (sign != 0) ++at;
    return text_.substr(at).starts_with("%}") ? at + 2 : kNone;
  }

  size_t find_tag(size_t at) const {
    for (at = text_.find('{', at); at != kNone; at = text_.find('{', at + 1)) {
      const char kind = at + 1 < text_.size() ? text_[at + 1] : 0;
      if (kind == '{' || kind == '%' || kind == '#') return at;
    }
    return kNone;
  }

  // Text, then one tag.
  Status scan_text() {
    const size_t tag = find_tag(at_);
    if (tag == kNone) {
      add_text(text_.size(), '+', false);
      return {};
    }
    const char kind = text_[tag + 1];
    const char sign = sign_at(tag + 2);
    char end_sign = 0;
    const size_t raw = kind == '%' ? end_of_plain_tag(tag, "raw", end_sign) : kNone;
    add_text(tag, sign, kind != '{');
    if (raw != kNone && end_sign != '+') return scan_raw(raw, end_sign);
    const size_t inside = tag + 2 + (sign != 0 ? 1 : 0);
    if (kind == '#') return scan_comment(inside);
    add(kind == '{' ? TokenType::kOutputBegin : TokenType::kBlockBegin, "");
    move_to(inside);
    return scan_expression(kind == '{');
  }

  Status scan_comment(size_t inside) {
    const size_t end = text_.find("#}", inside);
    if (end == kNone) return error("a comment has no end");
    finish_tag(end + 2, end > inside ? sign_at(end - 1) : 0, true);
    return {};
  }

  Status scan_raw(size_t inside, char sign) {
    finish_tag(inside, sign, false);
    for (size_t tag = text_.find("{%", at_); tag != kNone; tag = text_.find("{%", tag + 1)) {
      char end_sign = 0;
      const size_t end = end_of_plain_tag(tag, "endraw", end_sign);
      if (end == kNone) continue;
      add_text(tag, sign_at(tag + 2), true);
      finish_tag(end, end_sign, true);
      return {};
    }
    return error("a raw block has no end");
  }

  // From inside a tag to behind its end.
  Status scan_expression(bool output) {
    const std::string_view close = output ? "}}" : "%}";
    std::string open_brackets;
    while (true) {
      move_to(skip_spaces(at_));
      if (at_ >= text_.size()) return error("a tag has no end");
      const bool signed_end = (here("-") || (here("+") && !output)) && here(close, 1);
      if (open_brackets.empty() && (signed_end || here(close))) {
        const char sign = signed_end ? text_[at_] : 0;
        add(output ? TokenType::kOutputEnd : TokenType::kBlockEnd, "");
        finish_tag(at_ + close.size() + (signed_end ? 1 : 0), sign, !output);
        return {};
      }
      WH_TRY(scan_token(open_brackets));
    }
  }

  Status scan_token(std::string& open_brackets) {
    const char c = text_[at_];
    if (is_digit(c)) {
      scan_number();
      return {};
    }
    if (starts_name(c)) {
      size_t end = at_;
      while (end < text_.size() && (starts_name(text_[end]) || is_digit(text_[end]))) ++end;
      add(TokenType::kName, std::string(text_.substr(at_, end - at_)));
      at_ = end;
      return {};
    }
    if (c == '"' || c == '\'') return scan_string();
    return scan_operator(open_brackets);
  }

  void scan_number() {
    const auto digits = [&](size_t at) {
      while (at < text_.size() && (is_digit(text_[at]) ||
                                   (text_[at] == '_' && at + 1 < text_.size() && is_digit(text_[at + 1])))) {
        ++at;
      }
      return at;
    };
    const bool after_dot = at_ > 0 && text_[at_ - 1] == '.';
    size_t end = digits(at_);
    const size_t whole = end;
    const auto digit_at = [&](size_t at) { return at < text_.size() && is_digit(text_[at]); };
    if (!after_dot && end < text_.size() && text_[end] == '.' && digit_at(end + 1)) end = digits(end + 1);
    if (!after_dot && end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      const size_t exponent = end + 1 + (sign_at(end + 1) != 0 ? 1 : 0);
      if (digit_at(exponent)) end = digits(exponent);
    }
    std::string text(text_.substr(at_, end - at_));
    std::erase(text, '_');
    add(end == whole ? TokenType::kInteger : TokenType::kFloat, std::move(text));
    at_ = end;
  }

  Status scan_string() {
    const char quote = text_[at_];
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return error("a string has no end");
    auto value = unescape(text_.substr(at_ + 1, end - at_ - 1));
    if (!value.ok()) return make_error(value.error().code, "line {}: {}", line_, value.error().message);
    add(TokenType::kString, *std::move(value));
    move_to(end + 1);
    return {};
  }

  Status scan_operator(std::string& open_brackets) {
    for (const std::string_view two : {"//", "**", "==", "!=", ">=", "<="}) {
      if (!here(two)) continue;
      add(TokenType::kOperator, std::string(two));
      at_ += 2;
      return {};
    }
    const char c = text_[at_];
    if (std::string_view("+-/*%~[](){}><=.:|,").find(c) == kNone) {
      return error("unexpected character '{}'", text_.substr(at_, char_at(text_, at_).size));
    }
    static constexpr std::string_view kOpening = "([{";
    static constexpr std::string_view kClosing = ")]}";
    if (kOpening.find(c) != kNone) open_brackets += kClosing[kOpening.find(c)];
    if (kClosing.find(c) != kNone) {
      if (open_brackets.empty()) return error("unexpected '{}'", c);
      if (open_brackets.back() != c) return error("unexpected '{}', expected '{}'", c, open_brackets.back());
      open_brackets.pop_back();
    }
    add(TokenType::kOperator, std::string(1, c));
    ++at_;
    return {};
  }

  std::string source_;
  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  // what was read last ended with a line end
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace whippet::jinja
