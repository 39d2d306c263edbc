#include "grammar/grammar_checks.h"

#include <algorithm>
#include <vector>

#include "grammar/regex_grammar.h"

namespace whippet::grammar {
namespace {

constexpr size_t kMostText = 64 * 1024;
constexpr size_t kMostDepth = 100;

// Steps over "..." and [...] with their escapes, and comments.
size_t end_of_token(std::string_view text, size_t at) {
  const char open = text[at];
  if (open == '#') return std::min(text.find('\n', at), text.size());
  const char close = open == '"' ? '"' : ']';
  for (++at; at < text.size() && text[at] != close; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at, text.size());  // the last byte may begin an escape
}

// The largest number in {n,m}; `at` stands on the brace. Moves it to the closing one.
int64_t largest_count(std::string_view text, size_t& at) {
  int64_t largest = 1, value = 0;
  for (++at; at < text.size() && text[at] != '}'; ++at) {
    const bool digit = text[at] >= '0' && text[at] <= '9';
    value = digit ? std::min<int64_t>(value * 10 + (text[at] - '0'), kMostRepeats + 1) : 0;
    largest = std::max(largest, value);
  }
  return largest;
}

}  // namespace

Status check_ebnf(std::string_view text) {
  if (text.size() > kMostText)
    return make_error(Code::kInvalidArgument, "{} bytes, at most {} are taken", text.size(), kMostText);
  if (text.find('\0') != std::string_view::npos) return make_error(Code::kInvalidArgument, "a NUL in it");
  // Of each open parenthesis, the largest product of repetitions inside it; what stands before a { ended
  // last.
  std::vector<int64_t> inside{1};
  int64_t last = 1;
  for (size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '"':
      case '[':
      case '#':
        at = end_of_token(text, at);
        last = 1;
        break;
      case '(':
        inside.push_back(1);
        if (inside.size() > kMostDepth)
          return make_error(Code::kInvalidArgument, "more than {} parentheses deep", kMostDepth);
        break;
      case ')':
        last = inside.back();
        if (inside.size() > 1) inside.pop_back();
        inside.back() = std::max(inside.back(), last);
        break;
      case '{': {
        const bool plain = at > 0 && (text[at - 1] == ']' || text[at - 1] == '"');
        const int64_t count = largest_count(text, at);
        if (!plain && count > kMostGroupRepeats)
          return make_error(Code::kInvalidArgument, "more than {} repetitions of a rule or group",
                            kMostGroupRepeats);
        last *= count;
        if (last > kMostRepeats)
          return make_error(Code::kInvalidArgument, "more than {} repetitions, nested ones multiplied",
                            kMostRepeats);
        inside.back() = std::max(inside.back(), last);
        break;
      }
      default:
        break;
    }
  }
  return {};
}

}  // namespace whippet::grammar
