// The parts of JSON that every schema is made of, as grammar rules that are written when first asked for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "grammar/rules.h"

namespace whippet::grammar {

class JsonRules {
 public:
  // white_space: between the tokens of JSON there may be nothing, one blank, or one line end with an
  // indentation; behind them all it is bounded, so that a model cannot fill an answer with it. Without: none.
  JsonRules(Rules& rules, bool white_space) : rules_(rules), white_space_(white_space) {}

  Rules& rules() { return rules_; }
  // Names of rules, or expressions.
  std::string space();
  std::string string();
  // low..high characters; high -1: no end. A rule a character: for counts of a few hundred at most.
  std::string string_of(int64_t low, int64_t high);
  std::string plain_character();  // of a string, one that needs no escape
  std::string integer();
  std::string number();
  std::string any();         // value
  std::string any_object();  // {...}
  // A constant.
  std::string constant(const nlohmann::ordered_json& value);
  // The string whose text this expression describes (RegexPlace::kJsonString).
  std::string quoted(const std::string& expression);
  // [low..high items, separated]; high -1: no end. `first` stands before them.
  std::string list(const std::vector<std::string>& first, const std::string& item, int64_t low, int64_t high);
  // "key": value, and the , before a further one.
  std::string member(const std::string& key, const std::string& value);
  std::string comma();
  // { members }, which may not be empty; with `or_empty` also {}.
  std::string braces(const std::string& members, bool or_empty);

 private:
  std::string once(const char* name, std::string (JsonRules::*body)());
  std::string space_body();
  std::string string_end();  // any more characters, and the quote
  std::string characters_body();
  std::string characters(bool may_end, const std::string& next);
  std::string escape_body();
  std::string integer_body();
  std::string number_body();
  std::string any_body();
  std::string any_object_body();
  std::string brackets(const std::string& items, bool or_empty);

  Rules& rules_;
  bool white_space_;
};

}  // namespace whippet::grammar
