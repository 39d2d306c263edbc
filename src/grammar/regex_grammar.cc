// A recursive descent over alternatives, sequences and what may be repeated; each gives an EBNF expression.
#include "grammar/regex_grammar.h"

#include <algorithm>
#include <vector>

#include "grammar/regex_classes.h"
#include "grammar/rules.h"

namespace whippet::grammar {
namespace {

constexpr int kMostDepth = 50;            // of parentheses
constexpr size_t kMostBytes = 16 * 1024;  // of an expression

// How a character that JSON escapes is spelled in a string; "" for the others.
std::string json_escape(uint32_t point) {
  switch (point) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\f':
      return "\\f";
    case '\b':
      return "\\b";
    default:
      return point < 0x20 ? fmt::format("\\u{:04x}", point) : "";
  }
}

const CodePoints& escaped_in_json() {
  static const CodePoints kEscaped{{1, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  return kEscaped;
}

class RegexReader {
 public:
  RegexReader(std::string_view regex, RegexPlace place) : cursor_{regex}, place_(place) {}

  Result<std::string> read() {
    if (cursor_.text.size() > kMostBytes)
      return make_error(Code::kInvalidArgument, "the regular expression has {} bytes, at most {} are taken",
                        cursor_.text.size(), kMostBytes);
    WH_ASSIGN(std::string expression, alternatives(0));
    if (!cursor_.done()) return cursor_.error("a ) without its (");
    return expression;
  }

 private:
  Result<std::string> alternatives(int depth) {
    if (depth > kMostDepth) return cursor_.error(fmt::format("more than {} parentheses deep", kMostDepth));
    std::vector<std::string> parts;
    do {
      WH_ASSIGN(parts.emplace_back(), one_sequence(depth));
    } while (cursor_.skip("|"));
    return parts.size() == 1 ? parts[0] : choices(parts);
  }

  // ^ and $ bound the whole: they may stand at the ends of the outermost alternatives.
  Result<std::string> one_sequence(int depth) {
    std::vector<std::string> parts;
    while (depth == 0 && cursor_.skip("^")) {
    }
    while (!cursor_.done() && cursor_.peek() != '|' && cursor_.peek() != ')') {
      if (cursor_.peek() == '^') return cursor_.error("^ inside is not supported:");
      if (cursor_.peek() == '$') {
        ++cursor_.at;
        const bool ends = cursor_.done() || cursor_.peek() == '|';
        if (!ends || depth > 0) return cursor_.error("$ inside is not supported:");
        continue;
      }
      WH_ASSIGN(parts.emplace_back(), repeated(depth));
    }
    return sequence(parts);
  }

  Result<std::string> repeated(int depth) {
    const int64_t outer = repeats_;
    repeats_ = 1;
    WH_ASSIGN(std::string part, atom(depth));
    int64_t low = 1, high = 1;
    WH_ASSIGN(const bool counted, quantifier(low, high));
    repeats_ *= std::max({low, high, int64_t{1}});
    if (repeats_ > kMostRepeats)
      return cursor_.error(fmt::format("more than {} repetitions, nested ones multiplied,", kMostRepeats));
    repeats_ = std::max(outer, repeats_);
    if (!counted) return part;
    const bool holds_class = part.front() == '(' && part.find('[') != std::string::npos;
    if (holds_class && std::max(low, high) > kMostGroupRepeats)
      return cursor_.error(fmt::format("more than {} repetitions of a group", kMostGroupRepeats));
    cursor_.skip("?");  // a lazy one matches the same texts
    const char next = cursor_.peek();
    if (next == '*' || next == '+' || next == '?') return cursor_.error("a repetition of a repetition");
    return repeat(part, low, high);
  }

  Result<bool> quantifier(int64_t& low, int64_t& high) {
    if (cursor_.skip("*")) {
      low = 0, high = -1;
    } else if (cursor_.skip("+")) {
      low = 1, high = -1;
    } else if (cursor_.skip("?")) {
      low = 0, high = 1;
    } else if (cursor_.peek() == '{' && cursor_.peek(1) >= '0' && cursor_.peek(1) <= '9') {
      ++cursor_.at;
      WH_ASSIGN(low, number());
      high = low;
      if (cursor_.skip(",")) {
        high = -1;
        if (cursor_.peek() != '}') {
          WH_ASSIGN(high, number());
          if (high < low) return cursor_.error("a repetition whose end is below its beginning");
        }
      }
      if (!cursor_.skip("}")) return cursor_.error("a { without its }");
    } else {
      return false;
    }
    return true;
  }

  Result<int64_t> number() {
    int64_t value = 0;
    const size_t begin = cursor_.at;
    while (cursor_.peek() >= '0' && cursor_.peek() <= '9') {
      value = value * 10 + (cursor_.peek() - '0');
      if (value > kMostRepeats) return cursor_.error(fmt::format("more than {} repetitions", kMostRepeats));
      ++cursor_.at;
    }
    if (cursor_.at == begin) return cursor_.error("expected a number");
    return value;
  }

  Result<std::string> atom(int depth) {
    if (cursor_.skip("(")) return parenthesis(depth);
    if (cursor_.skip("[")) {
      WH_ASSIGN(const CodePoints points, read_class(cursor_));
      return one_of(points, !points.contains(kLastCodePoint));
    }
    if (cursor_.skip(".")) return one_of(dot(), false);
    if (cursor_.skip("\\")) {
      WH_ASSIGN(const CodePoints points, read_escape(cursor_));
      return one_of(points, false);
    }
    const char c = cursor_.peek();
    if (c == '*' || c == '+' || c == '?') return cursor_.error("nothing to repeat");
    return letters();
  }

  // A run of plain characters becomes one literal; one that is repeated stands alone.
  Result<std::string> letters() {
    constexpr std::string_view kSpecial = "()[].\\*+?|^$";
    std::string run;
    size_t before = cursor_.at;
    while (!cursor_.done() && kSpecial.find(cursor_.peek()) == std::string_view::npos) {
      if (cursor_.peek() == '{' && cursor_.peek(1) >= '0' && cursor_.peek(1) <= '9') break;
      const size_t here = cursor_.at;
      WH_ASSIGN(const uint32_t point, read_character(cursor_));
      const char next = cursor_.peek();
      const bool repeats = next == '*' || next == '+' || next == '?' ||
                           (next == '{' && cursor_.peek(1) >= '0' && cursor_.peek(1) <= '9');
      if (repeats && !run.empty()) {
        cursor_.at = here;
        break;
      }
      const std::string escaped = place_ == RegexPlace::kJsonString ? json_escape(point) : "";
      run += escaped.empty() ? std::string(cursor_.text.substr(here, cursor_.at - here)) : escaped;
      before = cursor_.at;
      if (repeats) break;
    }
    cursor_.at = before;
    if (run.empty()) return cursor_.error("nothing to repeat");
    return literal(run);
  }

  Result<std::string> parenthesis(int depth) {
    if (cursor_.skip("?")) {
      if (cursor_.skip("P<") || (cursor_.peek() == '<' && cursor_.peek(1) != '=' && cursor_.peek(1) != '!')) {
        const size_t end = cursor_.text.find('>', cursor_.at);
        if (end == std::string_view::npos) return cursor_.error("a group name without its >");
        cursor_.at = end + 1;
      } else if (!cursor_.skip(":")) {
        return cursor_.error("(?" + std::string(1, cursor_.peek()) + " is not supported:");
      }
    }
    WH_ASSIGN(std::string inner, alternatives(depth + 1));
    if (!cursor_.skip(")")) return cursor_.error("a ( without its )");
    return group(inner);
  }

  // keep_escaped: spell what JSON escapes too where the expression names it.
  Result<std::string> one_of(const CodePoints& points, bool keep_escaped) {
    if (place_ == RegexPlace::kText) return character_class(points);
    const CodePoints plain = points.minus(escaped_in_json());
    std::vector<std::string> parts;
    if (!plain.empty()) parts.push_back(character_class(plain));
    if (keep_escaped || plain.empty()) {
      for (uint32_t point = 1; point <= '\\'; ++point) {
        if (points.contains(point) && escaped_in_json().contains(point))
          parts.push_back(literal(json_escape(point)));
      }
    }
    return parts.size() == 1 ? parts[0] : choices(parts);
  }

  RegexCursor cursor_;
  RegexPlace place_;
  int64_t repeats_ = 1;  // of what stands innermost, nested ones multiplied
};

}  // namespace

Result<std::string> regex_to_grammar(std::string_view regex, RegexPlace place) {
  return RegexReader(regex, place).read();
}

}  // namespace whippet::grammar
