#include "grammar/json_rules.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "grammar/number_grammar.h"

namespace whippet::grammar {
namespace {

constexpr int kMostIndentation = 20;  // blanks behind a line end

// Of a string as it stands.
constexpr const char* kPlainCharacter = "[^\\u0000-\\u001f\\u0022\\u005c]";

}  // namespace

std::string JsonRules::once(const char* name, std::string (JsonRules::*body)()) {
  if (!rules_.has(name)) {
    rules_.define(name, "");  // it may be part of itself
    rules_.redefine(name, (this->*body)());
  }
  return name;
}

std::string JsonRules::space() { return white_space_ ? once("json_space", &JsonRules::space_body) : "\"\""; }
std::string JsonRules::space_body() {
  return fmt::format("\"\" | \" \" | \"\\n\" \" \"{{0,{}}}", kMostIndentation);
}

std::string JsonRules::string() { return sequence({"[\"]", string_end()}); }
std::string JsonRules::string_end() { return once("json_characters", &JsonRules::characters_body); }
std::string JsonRules::characters_body() { return characters(true, "json_characters"); }

// The look-ahead lets the library decide most tokens that end a string when it compiles.
std::string JsonRules::characters(bool may_end, const std::string& next) {
  std::vector<std::string> ways;
  if (may_end) ways.push_back("\"\\\"\"");
  if (!next.empty()) {
    const std::string escape = once("json_escape", &JsonRules::escape_body);
    ways.push_back(sequence({kPlainCharacter, next}));
    ways.push_back(sequence({"\"\\\\\"", escape, next}));
  }
  return fmt::format("{} (= {} [,}}\\]:])", choices(ways), space());
}

// A rule for what is left of each count, shared by all strings that come to the same rest. One rule whose
// counter the library unrolls is decided token by token near its end, which takes milliseconds.
std::string JsonRules::string_of(int64_t low, int64_t high) {
  const auto name = [this](int64_t least, int64_t most) {
    return least == 0 && most < 0 ? string_end() : fmt::format("json_characters_{}_{}", least, most);
  };
  int64_t least = low, most = high;
  const std::string first = name(least, most);
  while ((least > 0 || most > 0) && !rules_.has(name(least, most))) {
    const int64_t then_least = std::max<int64_t>(least - 1, 0), then_most = most < 0 ? -1 : most - 1;
    rules_.define(name(least, most), characters(least == 0, name(then_least, then_most)));
    least = then_least;
    most = then_most;
  }
  if (most == 0 && !rules_.has(name(0, 0))) rules_.define(name(0, 0), characters(true, ""));
  return sequence({"[\"]", first});
}
std::string JsonRules::escape_body() {  // never half a surrogate pair
  return "[\"\\\\/bfnrt] | \"u\" ([0-9A-CEFa-cef] [0-9A-Fa-f] | [Dd] [0-7]) [0-9A-Fa-f] [0-9A-Fa-f]";
}

std::string JsonRules::plain_character() { return kPlainCharacter; }

std::string JsonRules::integer() { return once("json_integer", &JsonRules::integer_body); }
std::string JsonRules::integer_body() { return grammar::any_integer(); }
std::string JsonRules::number() { return once("json_number", &JsonRules::number_body); }
std::string JsonRules::number_body() { return grammar::any_number(); }

std::string JsonRules::any() { return once("json_any", &JsonRules::any_body); }
std::string JsonRules::any_body() {
  return choices(
      {string(), number(), "\"true\"", "\"false\"", "\"null\"", any_object(), list({}, "json_any", 0, -1)});
}

std::string JsonRules::any_object() { return once("json_object", &JsonRules::any_object_body); }
std::string JsonRules::any_object_body() {
  const std::string one = member(string(), any());
  return braces(sequence({one, repeat(sequence({comma(), one}), 0, -1)}), true);
}

std::string JsonRules::constant(const nlohmann::ordered_json& value) { return literal(value.dump()); }

std::string JsonRules::quoted(const std::string& expression) {
  return sequence({"\"\\\"\"", group(expression), "\"\\\"\""});
}

std::string JsonRules::brackets(const std::string& items, bool or_empty) {
  const std::string full = sequence({"\"[\"", space(), items, space(), "\"]\""});
  return or_empty ? choices({full, "\"[]\""}) : full;
}

std::string JsonRules::list(const std::vector<std::string>& first, const std::string& item, int64_t low,
                            int64_t high) {
  std::vector<std::string> parts;
  for (const std::string& one : first) {
    if (!parts.empty()) parts.push_back(comma());
    parts.push_back(group(one));
  }
  if (high == 0) return parts.empty() ? "\"[]\"" : brackets(sequence(parts), false);
  const std::string further = sequence({comma(), group(item)});
  if (!parts.empty()) {
    parts.push_back(repeat(further, low, high));
    return brackets(sequence(parts), false);
  }
  const int64_t rest = high < 0 ? -1 : high - 1;
  return brackets(sequence({group(item), repeat(further, std::max<int64_t>(low - 1, 0), rest)}), low == 0);
}

std::string JsonRules::comma() { return sequence({"\",\"", space()}); }

std::string JsonRules::member(const std::string& key, const std::string& value) {
  return sequence({key, "\":\"", space(), group(value)});
}

std::string JsonRules::braces(const std::string& members, bool or_empty) {
  const std::string full = sequence({"\"{\"", space(), group(members), space(), "\"}\""});
  return or_empty ? choices({full, "\"{}\""}) : full;
}

}  // namespace whippet::grammar
