// The walk over a JSON schema; one for each schema. Its parts are spread over schema_*.cc.
#pragma once

#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "grammar/json_rules.h"

namespace whippet::grammar {

using Schema = nlohmann::ordered_json;

// A schema and where it stands.
struct SchemaAt {
  const Schema& schema;
  std::string path;  // "#/properties/name"
  int depth = 0;

  SchemaAt at(const char* keyword) const { return {schema.at(keyword), path + "/" + keyword, depth}; }
  bool has(const char* keyword) const { return schema.contains(keyword); }
};

Error schema_error(const std::string& path, std::string_view keyword, std::string_view why);

// Whether a keyword says nothing about what is valid.
bool is_annotation(std::string_view keyword);
// Refuses keywords that could not be held to, and names the first.
Status check_keywords(const SchemaAt& place);
// A whole number of 0 or more under this keyword; `otherwise` where there is none.
Result<int64_t> count_at(const SchemaAt& place, const char* keyword, int64_t otherwise);

// Both schemas in one, where a keyword that stands in both can be joined. `keyword` names what joins them.
Result<Schema> merge(const Schema& a, const Schema& b, const std::string& path, const char* keyword);

constexpr int kMostSteps = 20'000;  // parts of a schema that are looked at, followed references included

class SchemaReader {
 public:
  SchemaReader(const Schema& root, JsonRules& json) : root_(root), json_(json) {}

  // An expression of the values that are valid.
  Result<std::string> value(const SchemaAt& place);

 private:
  Result<std::string> of_object_schema(const SchemaAt& place);
  Result<std::string> reference(const SchemaAt& place);
  Result<SchemaAt> resolve(const SchemaAt& place) const;
  Result<Schema> flatten(const SchemaAt& place);
  Result<std::string> alternatives(const SchemaAt& place, const char* keyword, const Schema& list);
  Result<Schema> apart(const SchemaAt& place);
  Result<std::string> constants(const SchemaAt& place);
  Result<std::string> of_type(const SchemaAt& place, const std::string& type);
  Result<std::string> integer(const SchemaAt& place);
  Result<std::string> number(const SchemaAt& place);
  Result<std::string> multiples(const SchemaAt& place, int64_t of, int64_t low, int64_t high, bool bounded);
  Result<std::string> string(const SchemaAt& place);
  Result<std::string> array(const SchemaAt& place);
  Result<std::string> object(const SchemaAt& place);
  Result<std::string> named_members(const SchemaAt& place, const std::string& other_value);
  Result<std::string> map_of(const SchemaAt& place, const std::string& key, const std::string& value);
  Result<std::string> other_value(const SchemaAt& place, bool open);
  std::string members_in_order(const std::vector<std::string>& member, const std::vector<bool>& must,
                               const std::string& other);
  Result<std::string> other_key(const SchemaAt& place, const Schema& properties);

  const Schema& root_;
  JsonRules& json_;
  std::map<std::string, std::string> references_;  // JSON pointer -> rule
  std::vector<std::string> open_;  // pointers that have been followed with nothing read in between
  std::deque<Schema> made_;        // by merging; they stay where they are
  int steps_ = 0;
};

}  // namespace whippet::grammar
