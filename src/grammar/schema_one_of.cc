// oneOf is a choice where no value can be valid against two of its alternatives; where that is not sure it is
// refused.
#include <algorithm>

#include "grammar/schema_reader.h"

namespace whippet::grammar {
namespace {

// The values that a schema is left with; null: many.
Schema listed_values(const Schema& schema) {
  if (!schema.is_object()) return {};
  if (schema.contains("const")) return Schema::array({schema.at("const")});
  return schema.contains("enum") ? schema.at("enum") : Schema();
}

bool no_common_value(const Schema& a, const Schema& b) {
  return a.is_array() && b.is_array() &&
         std::ranges::none_of(a, [&](const Schema& one) { return std::ranges::find(b, one) != b.end(); });
}

std::string type_of_value(const Schema& value) {
  if (value.is_string()) return "string";
  if (value.is_number()) return "number";
  if (value.is_boolean()) return "boolean";
  if (value.is_null()) return "null";
  return value.is_array() ? "array" : "object";
}

// Names of types, integer as number; empty: not known.
std::vector<std::string> types_of(const Schema& schema) {
  std::vector<std::string> types;
  const Schema values = listed_values(schema);
  for (const Schema& value : values) types.push_back(type_of_value(value));
  if (!types.empty() || !schema.is_object() || !schema.contains("type")) return types;
  const Schema& type = schema.at("type");
  for (const Schema& one : type.is_array() ? type : Schema::array({type})) {
    if (!one.is_string()) return {};
    types.push_back(one == "integer" ? "number" : one.get<std::string>());
  }
  return types;
}

bool apart_by_type(const Schema& a, const Schema& b) {
  const auto left = types_of(a), right = types_of(b);
  if (left.empty() || right.empty()) return false;
  return std::ranges::none_of(left,
                              [&](const auto& t) { return std::ranges::find(right, t) != right.end(); });
}

Schema member(const Schema& schema, const std::string& name) {
  if (!schema.contains("properties") || !schema.at("properties").is_object()) return {};
  const Schema& members = schema.at("properties");
  return members.contains(name) ? members.at(name) : Schema();
}

template <class Apart>
bool all_pairs(const std::vector<Schema>& list, Apart apart) {
  for (size_t i = 0; i < list.size(); ++i)
    for (size_t j = i + 1; j < list.size(); ++j)
      if (!apart(list[i], list[j])) return false;
  return true;
}

// A member whose value tells all alternatives from each other; "": there is none.
std::string telling_member(const std::vector<Schema>& list) {
  if (!list.front().contains("properties") || !list.front().at("properties").is_object()) return "";
  for (const auto& [name, schema] : list.front().at("properties").items()) {
    const bool tells = all_pairs(list, [&name = name](const Schema& a, const Schema& b) {
      return no_common_value(listed_values(member(a, name)), listed_values(member(b, name)));
    });
    if (tells) return name;
  }
  return "";
}

}  // namespace

// The alternatives, and that no value is in two. A member that tells them apart is required in all of them.
Result<Schema> SchemaReader::apart(const SchemaAt& place) {
  constexpr size_t kMost = 100;
  const Schema& list = place.schema.at("oneOf");
  if (!list.is_array() || list.empty())
    return schema_error(place.path, "oneOf", "expected a list of schemas");
  if (list.size() == 1) return list;
  if (list.size() > kMost)
    return schema_error(place.path, "oneOf", fmt::format("at most {} alternatives are supported", kMost));
  std::vector<Schema> flat;
  for (size_t i = 0; i < list.size(); ++i) {
    const SchemaAt part{list[i], fmt::format("{}/oneOf/{}", place.path, i), place.depth + 1};
    if (!part.schema.is_object()) return schema_error(part.path, "oneOf", "expected an object");
    WH_ASSIGN(flat.emplace_back(), flatten(part));
  }
  const bool apart = all_pairs(flat, [](const Schema& a, const Schema& b) {
    return apart_by_type(a, b) || no_common_value(listed_values(a), listed_values(b));
  });
  if (apart) return list;
  const std::string name = telling_member(flat);
  if (name.empty())
    return schema_error(
        place.path, "oneOf",
        "a value could be valid against two alternatives: use anyOf, or give each a member whose "
        "const differs");
  Schema narrowed = Schema::array();
  for (Schema& one : flat) {
    Schema& required = one["required"];
    if (!required.is_array()) required = Schema::array();
    if (std::ranges::find(required, Schema(name)) == required.end()) required.push_back(name);
    narrowed.push_back(std::move(one));
  }
  return narrowed;
}

}  // namespace whippet::grammar
