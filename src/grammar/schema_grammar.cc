// What a schema as a whole says: its references, alternatives and constants, and which type decides.
#include "grammar/schema_grammar.h"

#include <algorithm>
#include <utility>

#include "base/json_nesting.h"
#include "grammar/schema_reader.h"

namespace whippet::grammar {
namespace {

bool has_type(const Schema& value, std::string_view type) {
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "number") return value.is_number();
  return value.is_number_integer();
}

// The type that its keywords speak of; "" where they speak of none.
std::string type_meant(const Schema& schema) {
  static const std::vector<std::pair<const char*, std::vector<const char*>>> kOf = {
      {"object",
       {"properties", "required", "additionalProperties", "patternProperties", "propertyNames",
        "minProperties", "maxProperties"}},
      {"array", {"items", "prefixItems", "minItems", "maxItems"}},
      {"string", {"pattern", "format", "minLength", "maxLength"}},
      {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}}};
  for (const auto& [type, keywords] : kOf)
    for (const char* keyword : keywords)
      if (schema.contains(keyword)) return type;
  return "";
}

bool stands_alone(const Schema& schema, std::string_view keyword) {
  return std::ranges::all_of(
      schema.items(), [&](const auto& item) { return item.key() == keyword || is_annotation(item.key()); });
}

}  // namespace

Result<std::string> SchemaReader::value(const SchemaAt& place) {
  if (place.schema == true) return json_.any();
  if (place.schema == false)
    return make_error(Code::kInvalidArgument, "JSON schema: false at {} allows no value at all", place.path);
  if (!place.schema.is_object())
    return make_error(Code::kInvalidArgument, "JSON schema: expected an object at {}, found {}", place.path,
                      place.schema.type_name());
  if (place.depth > kMostSchemaDepth)
    return make_error(Code::kInvalidArgument, "JSON schema: {} is more than {} levels deep", place.path,
                      kMostSchemaDepth);
  if (++steps_ > kMostSteps)
    return make_error(Code::kInvalidArgument, "JSON schema: more than {} parts", kMostSteps);
  WH_TRY(json_.rules().check());
  WH_TRY(check_keywords(place));
  return of_object_schema(place);
}

Result<std::string> SchemaReader::of_object_schema(const SchemaAt& place) {
  if (place.has("$ref") && stands_alone(place.schema, "$ref")) return reference(place);
  if (place.has("$ref") || place.has("allOf")) {
    WH_ASSIGN(Schema flat, flatten(place));
    const Schema& made = made_.emplace_back(std::move(flat));
    return of_object_schema({made, place.path, place.depth + 1});
  }
  if (place.has("const") || place.has("enum")) return constants(place);
  if (place.has("anyOf")) return alternatives(place, "anyOf", place.schema.at("anyOf"));
  if (place.has("oneOf")) {
    WH_ASSIGN(const Schema list, apart(place));
    return alternatives(place, "oneOf", list);
  }
  if (!place.has("type")) {
    const std::string meant = type_meant(place.schema);
    return meant.empty() ? json_.any() : of_type(place, meant);
  }
  const Schema& type = place.schema.at("type");
  const Schema types = type.is_array() ? type : Schema::array({type});
  if (types.empty()) return schema_error(place.path, "type", "expected at least one type");
  std::vector<std::string> parts;
  for (const Schema& one : types) {
    if (!one.is_string()) return schema_error(place.path, "type", "expected the name of a type");
    WH_ASSIGN(parts.emplace_back(), of_type(place, one.get<std::string>()));
  }
  return parts.size() == 1 ? parts[0] : choices(parts);
}

Result<std::string> SchemaReader::of_type(const SchemaAt& place, const std::string& type) {
  if (type == "string") return string(place);
  if (type == "integer") return integer(place);
  if (type == "number") return number(place);
  if (type == "boolean") return std::string("(\"true\" | \"false\")");
  if (type == "null") return std::string("\"null\"");
  if (type == "array") return array(place);
  if (type == "object") return object(place);
  return schema_error(place.path, "type", "expected string, integer, number, boolean, null, array or object");
}

Result<std::string> SchemaReader::reference(const SchemaAt& place) {
  WH_ASSIGN(const SchemaAt target, resolve(place));
  if (std::ranges::find(open_, target.path) != open_.end())
    return schema_error(place.path, "$ref", target.path + " is only another name of itself");
  if (const auto known = references_.find(target.path); known != references_.end()) return known->second;
  const std::string rule = json_.rules().reserve("ref");
  references_[target.path] = rule;
  open_.push_back(target.path);
  WH_ASSIGN(std::string body, value(target));
  open_.pop_back();
  json_.rules().define(rule, std::move(body));
  return rule;
}

Result<std::string> SchemaReader::alternatives(const SchemaAt& place, const char* keyword,
                                               const Schema& list) {
  if (!list.is_array() || list.empty())
    return schema_error(place.path, keyword, "expected a list of schemas");
  Schema beside = place.schema;
  beside.erase(keyword);
  const bool alone = stands_alone(place.schema, keyword);
  std::vector<std::string> parts;
  for (size_t i = 0; i < list.size(); ++i) {
    const SchemaAt part{list[i], fmt::format("{}/{}/{}", place.path, keyword, i), place.depth + 1};
    if (alone) {
      WH_ASSIGN(parts.emplace_back(), value(part));
    } else {
      if (!part.schema.is_object()) return schema_error(part.path, keyword, "expected an object");
      WH_ASSIGN(const Schema flat, flatten(part));
      WH_ASSIGN(Schema joined, merge(beside, flat, place.path, keyword));
      const Schema& made = made_.emplace_back(std::move(joined));
      WH_ASSIGN(parts.emplace_back(), value({made, part.path, part.depth}));
    }
  }
  return parts.size() == 1 ? parts[0] : choices(parts);
}

Result<std::string> SchemaReader::constants(const SchemaAt& place) {
  const char* keyword = place.has("const") ? "const" : "enum";
  const Schema& given = place.schema.at(keyword);
  if (*keyword == 'e' && (!given.is_array() || given.empty()))
    return schema_error(place.path, "enum", "expected a list of values");
  for (const auto& [name, other] : place.schema.items())
    if (name != keyword && name != "type" && !is_annotation(name))
      return schema_error(place.path, name, fmt::format("not supported beside {}", keyword));
  const Schema types = !place.has("type")                   ? Schema()
                       : place.schema.at("type").is_array() ? place.schema.at("type")
                                                            : Schema::array({place.schema.at("type")});
  std::vector<std::string> parts;
  for (const Schema& one : *keyword == 'e' ? given : Schema::array({given})) {
    const bool fits = types.is_null() || std::ranges::any_of(types, [&](const Schema& type) {
                        return type.is_string() && has_type(one, type.get_ref<const std::string&>());
                      });
    if (fits) parts.push_back(json_.constant(one));
  }
  if (parts.empty())
    return schema_error(place.path, keyword, "none of its values has the type that is asked for");
  return parts.size() == 1 ? parts[0] : choices(parts);
}

Result<std::string> schema_to_grammar(std::string_view json_schema, bool white_space, Rules& rules) {
  if (json_schema.size() > kMostSchemaBytes)
    return make_error(Code::kInvalidArgument, "JSON schema: {} bytes, at most {} are taken",
                      json_schema.size(), kMostSchemaBytes);
  if (json_nesting(json_schema) > 4 * kMostSchemaDepth)
    return make_error(Code::kInvalidArgument, "JSON schema: nested too deep");
  const Schema schema = Schema::parse(json_schema, nullptr, false);
  if (schema.is_discarded()) return make_error(Code::kInvalidArgument, "JSON schema: this is no JSON");
  JsonRules json(rules, white_space);
  SchemaReader reader(schema, json);
  WH_ASSIGN(std::string root, reader.value({schema, "#", 0}));
  WH_TRY(rules.check());
  return root;
}

std::string object_grammar(bool white_space, Rules& rules) {
  return JsonRules(rules, white_space).any_object();
}

}  // namespace whippet::grammar
