// A grammar while it is written: named rules in the EBNF that the grammar library reads, and how its literals
// and classes are spelled. Expressions are texts; whoever joins them says where parentheses are needed.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "grammar/code_points.h"

namespace whippet::grammar {

// "text" as a literal; "" for an empty one. The text is UTF-8 without NUL.
std::string literal(std::string_view text);
// [a-z...] of a set that is not empty.
std::string character_class(const CodePoints& points);
// a b c, (a | b | c), a{low,high}; high -1: no end. Operands are atoms or made by these.
std::string sequence(const std::vector<std::string>& parts);
std::string choices(const std::vector<std::string>& parts);
std::string repeat(const std::string& part, int64_t low, int64_t high);
// ( text )
std::string group(const std::string& text);

class Rules {
 public:
  // kInvalidArgument once there are more than `most` rules, or more than `most_bytes` of them.
  Rules(size_t most, size_t most_bytes) : most_(most), most_bytes_(most_bytes) {}

  // A new rule under a name made from `hint`; the name, which stands for it in expressions.
  std::string add(std::string_view hint, std::string body);
  // A rule whose body comes later, because it is part of itself.
  std::string reserve(std::string_view hint);
  void define(const std::string& name, std::string body);
  void redefine(const std::string& name, std::string body);
  // A rule of that very name.
  bool has(const std::string& name) const { return bodies_.contains(name); }

  Status check() const;
  // All of it, the rule `root` made of `root_body` first.
  std::string text(const std::string& root_body) const;

 private:
  size_t most_;
  size_t most_bytes_;
  size_t bytes_ = 0;
  size_t serial_ = 0;
  std::vector<std::string> order_;
  std::map<std::string, std::string> bodies_;
};

}  // namespace whippet::grammar
